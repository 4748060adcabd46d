"""``benchmarks.listed``: lists, and the table of results."""

import argparse

import pytest
import spacy
import srsly
from spacy.tokens import Doc

from benchmarks import listed, name_lists
from spacy_luke.errors import ConfigError


@pytest.fixture
def args(tmp_path):
    folder = tmp_path / "disease-ontology"
    folder.mkdir()
    srsly.write_jsonl(
        folder / "kb.jsonl", [{"name": "Ague", "aliases": ["Fever", "Ague"]}, {"name": "Gout"}]
    )
    return argparse.Namespace(data=tmp_path, work=tmp_path)


def train_docs():
    words = ["Gout", "and", "and", "Ada"]
    return [Doc(spacy.blank("en").vocab, words=words, ents=["B-Disease", "O", "O", "B-PER"])]


def test_lists(args):
    docs = train_docs()

    def names(which):
        return [(x["name"], x["label"]) for x in name_lists.names_of(args, "diseases", which, docs)]

    full = [(x, "Disease") for x in ("Ague", "Fever", "Gout")]
    assert names("full") == names("half") == full  # of half, half is drawn for training
    assert names("annotations") == [("Ada", "PER"), ("Gout", "Disease")]
    assert names("ordinary") == [("and", "Disease")]
    assert [x for x, _ in names("shuffled")] == ["Ague", "Fever", "Gout"]
    assert {x for _, x in names("shuffled")} <= {"Disease", "PER"}
    docs[0].ents = docs[0].ents[:1]
    with pytest.raises(ConfigError, match="diseases has one label"):
        names("shuffled")


def test_labels_and_ids_of_the_encyclopedias_names_can_be_left_out(args, monkeypatch):
    monkeypatch.setattr(name_lists, "PROJECT", args.work)
    record = {"id": "Ada Byrne", "name": "Ada Byrne", "aliases": {"Byrne": 2}, "type": "PERSON"}
    srsly.write_jsonl(args.work / "entities.jsonl", [record])

    def rows(which):
        names = name_lists.names_of(args, "encyclopedia", which, train_docs())
        return [(x["name"], x["label"], x["id"]) for x in names]

    assert rows("full") == [(x, "PERSON", "Ada Byrne") for x in ("Ada Byrne", "Byrne")]
    assert rows("labels") == [(x, "PERSON", "") for x in ("Ada Byrne", "Byrne")]
    assert rows("ids") == [(x, "name", "Ada Byrne") for x in ("Ada Byrne", "Byrne")]


def test_a_list_without_labels_annotates_with_the_most_frequent_one():
    names = [{"name": x, "label": name_lists.UNLABELLED} for x in ("Gout", "and", "Ada")]
    docs = [*train_docs(), Doc(spacy.blank("de").vocab, words=["gout"], ents=["B-Disease"])]
    found = name_lists.as_annotated(names, docs, name_lists.SOURCES["german"])
    assert {x["label"] for x in found} == {"Disease"}
    assert name_lists.as_annotated(names, docs, name_lists.SOURCES["places"]) == names


def test_the_table_compares_runs_of_the_same_seeds():
    def record(row, seed, **found):
        settings = {"size": 100, "words": 1, "tune": False}
        gold = [[0, 0, 1, "X"], [1, 0, 1, "X"]]
        place = {"data": "diseases", "row": row, "seed": seed, "settings": settings}
        return {**place, "gold": gold, "n_docs": 2, **found}

    half, all_right = [[0, 0, 1, "X"]], [[0, 0, 1, "X"], [1, 0, 1, "X"]]
    lines = listed.table(
        [
            record("none", 0, model=half),
            record("full", 0, known=all_right),
            record("ordinary", 0, known=half),
            record("ordinary", 1, known=all_right),  # there is no model with this seed
        ]
    ).splitlines()
    assert "| diseases | 100 | no | full | model | 1 | 66.7 | - | +33.3 [" in lines[2]
    assert "| diseases | 100 | no | full | known | 1 | 100.0 | +33.3 [" in lines[3]
    assert lines[3].endswith("] | - |")
    assert "| ordinary | known | 2 | 83.3 ± 23.6 | +0.0 [+0.0, +0.0] | - |" in lines[4]
