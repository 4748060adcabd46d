"""Lists of names: built, saved, opened, changed."""

import os
import pickle
from pathlib import Path

import pytest

from spacy_luke.errors import CorpusError, InputError, KnowledgeBaseError
from spacy_luke.kb.entity import Findings
from spacy_luke.kb.store import verify
from spacy_luke.names.layout import NAMES
from spacy_luke.names.listed_name import ListedName
from spacy_luke.names.name_list import NameList
from tests.names.conftest import listed, texts

ENTRIES = [
    ListedName("Ada", "PERSON", "Q1"),
    ListedName("Countess", "PERSON", "Q1"),
    ListedName("Ada", "LANGUAGE"),
    ListedName("x", "LETTER", "24"),
    ListedName("北京", "GPE"),
]


def contents(folder: Path) -> dict[str, bytes]:
    return {x.name: x.read_bytes() for x in folder.iterdir()}


def test_a_list_has_its_entries_in_order():
    names = NameList.build(ENTRIES, "en")
    assert list(names) == ENTRIES and len(names) == 5 and names.lang == "en"
    assert names.labels == ("PERSON", "LANGUAGE", "LETTER", "GPE")


def test_what_is_left_out_or_noteworthy_is_counted():
    findings = Findings()
    odd = [ListedName(" ", "X"), ListedName("Ada ", "PERSON", "Q1"), ListedName("a\0b", "X")]
    assert list(NameList.build([*ENTRIES, *odd], "en", findings)) == ENTRIES
    assert findings.lines() == [
        "names left out because they are empty: 1",
        "names left out because they occurred before with the same label and id: 1 (first: Ada)",
        "names left out because they contain the character NUL: 1 (first: a\0b)",
        "names: 4",
        "names of one character, which are found wherever it is a word: 1 (first: x)",
        "names with several labels or ids: 1 (first: Ada)",
    ]


@pytest.mark.parametrize(
    "name,message",
    [
        (ListedName("Ada", " "), "label is empty"),
        (ListedName("Ada", 1), "label is 1, not text"),
        (ListedName("Ada", "X", "NIL"), 'id is "NIL"'),
        (ListedName("Ada", "X", " "), "id is empty"),
        (ListedName(None, "X"), "name is None"),
        (ListedName("\ud800", "X"), "not valid text"),
    ],
)
def test_invalid_names_are_errors(name, message):
    with pytest.raises(CorpusError, match=message):
        NameList.build([name])


@pytest.mark.parametrize("names", [ENTRIES, []])
def test_files_and_bytes_are_the_same_list(tmp_path, names):
    made = NameList.build(names, "en")
    made.to_disk(tmp_path / "a")
    verify(tmp_path / "a", NAMES)
    opened = NameList.open(tmp_path / "a")
    for same in (opened, NameList.from_bytes(made.to_bytes()), pickle.loads(pickle.dumps(opened))):
        assert list(same) == list(names) and same.to_bytes() == made.to_bytes()
        assert (same.lang, same.labels) == (made.lang, made.labels)
    NameList.build(names, "en").to_disk(tmp_path / "b")
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_unchanged_files_are_linked(tmp_path):
    made = NameList.build(ENTRIES)
    made.to_disk(tmp_path / "a")
    made.to_disk(tmp_path / "b")
    NameList.open(tmp_path / "b").to_disk(tmp_path / "c")
    for path in (tmp_path / "a").glob("*.npy"):
        assert os.path.samefile(path, tmp_path / "c" / path.name)


def test_a_list_may_be_saved_over_itself_while_it_is_open(tmp_path):
    NameList.build(ENTRIES).to_disk(tmp_path / "a")
    opened = NameList.open(tmp_path / "a")
    NameList.build(ENTRIES[:1]).to_disk(tmp_path / "a")
    assert list(opened) == ENTRIES and list(NameList.open(tmp_path / "a")) == ENTRIES[:1]
    opened.to_disk(tmp_path / "a")
    assert list(NameList.open(tmp_path / "a")) == ENTRIES


def test_damaged_files_are_named(tmp_path):
    NameList.build(ENTRIES).to_disk(tmp_path / "a")
    with pytest.raises(KnowledgeBaseError, match=r"not a knowledge base: kb\.json is missing"):
        verify(tmp_path / "a")
    for name in ("forms", "entry_ids"):
        path = tmp_path / "a" / f"{name}.npy"
        data = path.read_bytes()
        path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        with pytest.raises(KnowledgeBaseError, match=f"{name} was changed, or is of another list"):
            NameList.open(tmp_path / "a")
        path.unlink()
        with pytest.raises(KnowledgeBaseError, match=f"{name}.npy cannot be read"):
            NameList.open(tmp_path / "a")
        path.write_bytes(data)
    meta = tmp_path / "a" / "names.json"
    text = meta.read_text("utf8")
    for old, new, message in (
        ('"version": 2', '"version": 9', "version is 9"),
        ('"longest"', '"other"', "longest is missing"),
        ('"labels"', '"other"', "lang or labels is missing"),
        ("list of names", "thing", "format is"),
    ):
        meta.write_text(text.replace(old, new, 1), "utf8")
        with pytest.raises(KnowledgeBaseError, match=message):
            NameList.open(tmp_path / "a")
    with pytest.raises(KnowledgeBaseError, match="list of names"):
        NameList.from_bytes(b"x")


def test_other_folders_are_not_replaced(tmp_path):
    (tmp_path / "notes.txt").touch()
    with pytest.raises(KnowledgeBaseError, match=r"not a list of names: it contains notes\.txt"):
        NameList.build(ENTRIES).to_disk(tmp_path)


def test_names_are_added_and_removed(nlp):
    names, findings = NameList.build(ENTRIES, "en"), Findings()
    edited = names.edited(
        [ListedName("Bo", "DOG"), ListedName("x", "LETTER", "24")],
        names=[" x ", "nobody"],
        ids=["Q1", "Q2", ""],
        labels=["GPE"],
        findings=findings,
    )
    kept = [ListedName("Ada", "LANGUAGE"), ListedName("Bo", "DOG"), ListedName("x", "LETTER", "24")]
    assert list(edited) == kept and list(names) == ENTRIES
    assert findings.counts["names removed"] == 4 and findings.counts["names"] == 3
    assert findings.first["unknown names, which were not removed"] == "nobody"
    assert findings.counts["unknown ids, which were not removed"] == 1
    assert texts(edited, nlp("ADA, bo, Countess, X")) == ["ADA", "bo", "X"]
    assert edited.to_bytes() == NameList.build(kept, "en").to_bytes()
    for what in ("names", "ids", "labels"):
        with pytest.raises(InputError, match=f"{what} is the text 'Ada'"):
            names.edited(**{what: "Ada"})


def test_a_large_list_is_found_again(nlp):
    names = listed(*((f"Name {i} of {i % 97}", f"L{i % 7}", f"Q{i % 1000}") for i in range(5000)))
    doc = nlp(" ; ".join(f"NAME {i} of {i % 97}" for i in range(0, 5000, 100)))
    assert len(texts(names, doc)) == 50 and len(names.labels) == 7
