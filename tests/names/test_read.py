"""Names of files: records, patterns, knowledge bases, saved lists."""

import json

import pytest
import spacy

from spacy_luke.errors import CorpusError
from spacy_luke.kb.entity import Findings
from spacy_luke.names.listed_name import ListedName
from spacy_luke.names.name_list import NameList
from spacy_luke.names.read import SKIPPED, read_names
from tests.kb.conftest import ENTITIES, build, write_jsonl


def read(path, label="", findings=None) -> list[tuple]:
    names = read_names(path, Findings() if findings is None else findings, label)
    return [(x.text, x.label, x.id) for x in names]


def test_json_lines_and_csv(tmp_path):
    records = [
        {"name": "Ada", "label": "PERSON", "id": "Q1", "aliases": ["Countess", "Ada King"]},
        {"name": "Bo", "label": "DOG", "id": 7, "aliases": {"Bobo": 3}},
        {"name": "Cy", "label": "DOG", "id": None, "aliases": None},
        {"name": "", "label": "DOG"},
    ]
    expected = [
        ("Ada", "PERSON", "Q1"),
        ("Countess", "PERSON", "Q1"),
        ("Ada King", "PERSON", "Q1"),
        ("Bo", "DOG", "7"),
        ("Bobo", "DOG", "7"),
        ("Cy", "DOG", ""),
        ("", "DOG", ""),
    ]
    assert read(write_jsonl(tmp_path / "a.jsonl", records)) == expected  # fmt: skip
    path = tmp_path / "a.csv"
    path.write_text("\ufeffname,label,id,aliases\nAda,PERSON,Q1,Countess|Ada King\n"
                    "Bo,DOG,7,Bobo\nCy,DOG,,\n,DOG,,\n", "utf8")  # fmt: skip
    assert read(path) == expected


def test_spaces_around_values_of_csv_and_of_ids_mean_nothing(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('name, label, id\nAda, "PERSON", Q1 \nBo,DOG, \n', "utf8")
    assert read(path) == [("Ada", "PERSON", "Q1"), ("Bo", "DOG", "")]
    record = {"name": "Ada", "label": "PERSON", "id": " Q1"}
    assert read(write_jsonl(tmp_path / "a.jsonl", [record])) == [("Ada", "PERSON", "Q1")]


def test_a_label_for_names_without(tmp_path):
    path = write_jsonl(tmp_path / "a.jsonl", [{"name": "Ada"}, {"name": "Bo", "label": "DOG"}])
    assert read(path, "PERSON") == [("Ada", "PERSON", ""), ("Bo", "DOG", "")]
    with pytest.raises(CorpusError, match=r"a\.jsonl, line 1: label is missing"):
        read(path)
    (tmp_path / "a.csv").write_text("name\nAda\n")
    assert read(tmp_path / "a.csv", "PERSON") == [("Ada", "PERSON", "")]
    with pytest.raises(CorpusError, match=r"a\.csv, line 1: label missing"):
        read(tmp_path / "a.csv")


def test_empty_files_are_empty_lists(tmp_path):
    (tmp_path / "a.jsonl").write_text("\n")
    (tmp_path / "a.csv").write_text("name,label\n")
    assert read(tmp_path / "a.jsonl") == [] == read(tmp_path / "a.csv")


@pytest.mark.parametrize(
    "line,message",
    [
        ("{", "is not a JSON object"),
        ("[1]", "is a list, not a JSON object"),
        ('{"label": "X"}', "name missing. Required keys: name; optional: label, id, aliases"),
        ('{"name": 3, "label": "X"}', "name is 3, not text"),
        ('{"name": "a", "label": 3}', "label is 3, not text"),
        ('{"name": "a", "label": " "}', "label is missing or empty"),
        ('{"name": "a", "label": "X", "id": [1]}', r"id is \[1\], not text"),
        ('{"name": "a", "label": "X", "id": "NIL"}', 'id is "NIL"'),
        ('{"name": "a", "label": "X", "aliases": "b"}', "aliases is 'b'. It must be a list"),
        ('{"name": "a", "label": "X", "aliases": [4]}', "name is 4, not text"),
        ('{"name": "a", "name": "b", "label": "X"}', "the key 'name' occurs twice"),
        ('{"pattern": 3, "label": "X"}', "pattern is 3. It must be a text or a list"),
        ('{"pattern": ["a"], "label": "X"}', r"pattern is \['a'\]"),
        ('{"pattern": "a"}', "label is missing"),
    ],
)
def test_bad_lines_are_named(tmp_path, line, message):
    (tmp_path / "a.jsonl").write_text('{"name": "ok", "label": "X"}\n' + line + "\n")
    with pytest.raises(CorpusError, match=rf"a\.jsonl, line 2.*{message}"):
        read(tmp_path / "a.jsonl")


def test_other_files_are_refused(tmp_path):
    (tmp_path / "a.txt").touch()
    for path, message in (
        (tmp_path / "a.txt", "neither JSON lines"),
        (tmp_path / "b.jsonl", "cannot be read: No such file"),
        (tmp_path / "patterns", "cannot be read: No such file"),
        (tmp_path, "a folder without a knowledge base"),
    ):
        with pytest.raises(CorpusError, match=message):
            read(path)


def test_unknown_keys_are_counted(tmp_path):
    findings = Findings()
    record = {"name": "Ada", "label": "X", "note": 1}
    read(write_jsonl(tmp_path / "a.jsonl", [record, record]), findings=findings)
    assert findings.counts == {"values of 'note', which is not read": 2}


PATTERNS = [
    {"label": "ORG", "pattern": "Apple", "id": "apple"},
    {"label": "GPE", "pattern": [{"LOWER": "san"}, {"TEXT": "Francisco"}]},
    {"label": "GPE", "pattern": [{"orth": "Rome"}]},
    {"label": "X", "pattern": [{"LOWER": {"IN": ["a", "b"]}}]},
    {"label": "X", "pattern": [{"LOWER": "a", "OP": "?"}]},
    {"label": "X", "pattern": [{"IS_DIGIT": True}, {"TEXT": "km"}]},
    {"label": "X", "pattern": [{}]},
]


def test_patterns_of_spacy_that_are_plain_text(tmp_path):
    findings = Findings()
    names = read(write_jsonl(tmp_path / "mine.jsonl", PATTERNS), findings=findings)
    assert names == [("Apple", "ORG", "apple"), ("san Francisco", "GPE", ""),
                     ("Rome", "GPE", "")]  # fmt: skip
    assert findings.counts == {SKIPPED: 4} and findings.first[SKIPPED].endswith("line 4")


@pytest.mark.parametrize("factory", ["entity_ruler", "span_ruler"])
def test_folders_of_rulers(tmp_path, factory):
    ruler = spacy.blank("en").add_pipe(factory)
    ruler.add_patterns(PATTERNS[:3])
    ruler.to_disk(tmp_path / "ruler")
    names = read(tmp_path / "ruler")
    assert sorted(names) == [("Apple", "ORG", "apple"), ("Rome", "GPE", ""),
                             ("san Francisco", "GPE", "")]  # fmt: skip


def test_knowledge_bases(tmp_path):
    build(tmp_path / "kb", ENTITIES)
    names = read(tmp_path / "kb", "THING")
    assert names[:3] == [
        ("Paris", "place", "Q1"), ("City of Light", "place", "Q1"), ("Paris, Texas", "THING", "Q3")
    ]  # fmt: skip
    assert len(names) == 13 and ("Munich", "THING", "7") in names
    with pytest.raises(CorpusError, match="the entity 'Q3' has no type"):
        read(tmp_path / "kb")


def test_saved_lists(tmp_path):
    entries = [ListedName("Ada", "PERSON", "Q1"), ListedName("Bo", "DOG")]
    NameList.build(entries).to_disk(tmp_path / "names")
    assert list(read_names(tmp_path / "names", Findings())) == entries


def test_json_of_any_script(tmp_path):
    (tmp_path / "a.ndjson").write_text(
        json.dumps({"name": "北京", "label": "GPE"}, ensure_ascii=False), "utf8"
    )
    assert read(tmp_path / "a.ndjson") == [("北京", "GPE", "")]
