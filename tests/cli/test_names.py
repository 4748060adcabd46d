"""``spacy luke names``: the list of a saved pipeline is replaced, extended, reduced."""

import pytest
import spacy
import srsly
from typer.testing import CliRunner

from spacy_luke.cli import app
from spacy_luke.names.name_list import NameList
from tests.kb.conftest import write_jsonl

NAMES = [
    {"name": "Ada", "label": "PERSON", "id": "Q1", "aliases": ["Countess"]},
    {"name": "London", "label": "GPE"},
]


def run(*args, status=0) -> str:
    result = CliRunner().invoke(app, ["names", *map(str, args)])
    assert result.exit_code == status, result.output
    return " ".join(result.output.split())


def found(path) -> list[str]:
    doc = spacy.load(path)("Ada, Bo, the Countess, in London")
    return [x.text for x in doc.spans["known_names"]]


@pytest.fixture
def pipeline(tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("known_names").set_names(NAMES)
    nlp.to_disk(tmp_path / "model")
    return tmp_path / "model"


def test_names_of_a_saved_pipeline_are_changed(pipeline, tmp_path):
    assert run(pipeline) == "PERSON: 2 GPE: 1 names: 3"
    more = write_jsonl(tmp_path / "more.jsonl", [{"name": "Bo"}, {"name": "in", "label": "X"}])
    assert "line 1: label is missing" in run(pipeline, "--add", more, status=1)
    assert found(pipeline) == ["Ada", "Countess", "London"]
    output = run(pipeline, "--add", more, "--label", "DOG")
    assert "names: 5" in output and "Saved" in output
    assert found(pipeline) == ["Ada", "Bo", "Countess", "in", "London"]
    (tmp_path / "names.txt").write_text("Bo\nnobody\n")
    (tmp_path / "ids.txt").write_text(" Q1 \n")
    output = run(
        pipeline, "--remove", tmp_path / "names.txt", "--remove-ids", tmp_path / "ids.txt",
        "--remove-label", "X", "--remove-label", "Y",
    )  # fmt: skip
    assert "names removed: 4" in output and "unknown names, which were not removed: 1" in output
    assert found(pipeline) == ["London"]
    output = run(pipeline, "--set", write_jsonl(tmp_path / "new.jsonl", NAMES[:1]))
    assert output.startswith("names: 2") and found(pipeline) == ["Ada", "Countess"]
    run(pipeline, "--set", write_jsonl(tmp_path / "new.jsonl", []), "--add", more, "--label", "D")
    assert found(pipeline) == ["Bo", "in"]


def test_labels_in_the_meta_data_are_those_of_the_list(pipeline, tmp_path):
    run(pipeline, "--add", write_jsonl(tmp_path / "more.jsonl", [{"name": "Bo"}]), "--label", "DOG")
    meta = srsly.read_json(pipeline / "meta.json")
    assert meta["labels"]["known_names"] == ["PERSON", "GPE", "DOG"]
    assert "is missing" in run(pipeline, "--set", tmp_path / "nowhere", status=1)


def test_of_two_edits_at_once_the_second_is_refused(pipeline, tmp_path, monkeypatch):
    more, others = (
        write_jsonl(tmp_path / f"{x}.jsonl", [{"name": x, "label": "X"}]) for x in ("Bo", "in")
    )
    edited = NameList.edited

    def later(self, *args, **kwargs):
        monkeypatch.undo()
        run(pipeline, "--add", others)
        return edited(self, *args, **kwargs)

    monkeypatch.setattr(NameList, "edited", later)
    assert "was changed after it was opened" in run(pipeline, "--add", more, status=1)
    assert found(pipeline) == ["Ada", "Countess", "in", "London"]


def test_a_list_alone_and_one_of_a_knowledge_base(pipeline, tmp_path):
    names = pipeline / "known_names" / "names"
    one = write_jsonl(tmp_path / "one.jsonl", [{"name": "in"}])
    output = run(names, "--set", one, "--label", "X")
    assert "names: 1" in output and found(pipeline) == ["in"]
    entities = [{"id": "Q1", "name": "Ada", "type": "person"}]
    path = write_jsonl(tmp_path / "things.jsonl", entities)
    CliRunner().invoke(app, ["kb", str(path), str(tmp_path / "kb")])
    run(pipeline, "--add", tmp_path / "kb")
    assert found(pipeline) == ["Ada", "in"]


def test_a_pipeline_saved_without_its_list_gets_one(tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("known_names").set_names(NAMES)
    nlp.to_disk(tmp_path / "model")
    nlp.meta["performance"] = {"ents_f": 0.5}
    nlp.to_disk(tmp_path / "model")
    pipe = nlp.get_pipe("known_names")
    pipe.to_disk(tmp_path / "model" / "known_names", exclude=["names"])
    assert found(tmp_path / "model") == []
    assert run(tmp_path / "model") == "names: 0"
    run(tmp_path / "model", "--add", write_jsonl(tmp_path / "a.jsonl", NAMES))
    assert found(tmp_path / "model") == ["Ada", "Countess", "London"]
    assert spacy.load(tmp_path / "model").meta["performance"] == {}  # those of another list


def test_mistakes_are_one_message(pipeline, tmp_path):
    assert "neither a trained pipeline nor" in run(tmp_path, status=1)
    spacy.blank("en").to_disk(tmp_path / "other")
    assert "are: none." in run(tmp_path / "other", status=1)
    assert "--component is 'x'" in run(pipeline, "--component", "x", status=1)
    path = write_jsonl(tmp_path / "bad.jsonl", [{"name": 3, "label": "X"}])
    assert "bad.jsonl, line 1: name is 3" in run(pipeline, "--set", path, status=1)
    damaged = pipeline / "known_names" / "names" / "entry_ids.npy"
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"?")
    good = write_jsonl(tmp_path / "good.jsonl", NAMES)
    assert "SHA-256" in run(pipeline, "--add", good, status=1)
    run(pipeline, "--set", good)
    assert found(pipeline) == ["Ada", "Countess", "London"]
    assert "--label is for names" in run(pipeline, "--label", "X", status=1)
    (pipeline / "known_names" / "names" / "names.json").unlink()
    for args in ((), ("--add", good)):
        assert "names.json" in run(pipeline, *args, status=1)
    nlp = spacy.blank("en")
    nlp.add_pipe("known_names").set_names(NAMES)
    nlp.to_disk(tmp_path / "without", exclude=["known_names"])
    assert "saved without its component" in run(tmp_path / "without", "--add", good, status=1)


def test_several_components_are_told_apart(tmp_path):
    nlp = spacy.blank("en")
    for name in ("one", "two"):
        nlp.add_pipe("known_names", name=name, config={"spans_key": name}).set_names(NAMES)
    nlp.to_disk(tmp_path / "model")
    good = write_jsonl(tmp_path / "good.jsonl", NAMES[1:])
    assert "one, two. Choose one by --component" in run(tmp_path / "model", "--set", good, status=1)
    run(tmp_path / "model", "--set", good, "--component", "two")
    doc = spacy.load(tmp_path / "model")("Ada in London")
    assert [len(doc.spans[x]) for x in ("one", "two")] == [2, 1]
