"""The forms of the test data change only what they say, and every row can be scored on them."""

import json

import pytest
import spacy
from spacy.tokens import Doc, Span

from benchmarks import forms, results
from benchmarks.datasets import store

ONE = {"f": 100.0, "p": 100.0, "r": 100.0}
NONE = {"f": 0.0, "p": 0.0, "r": 0.0}


@pytest.fixture
def docs():
    nlp = spacy.blank("en")
    words, starts = ["Ada", "ran", ".", "Rome", "fell"], [True, False, False, True, False]
    found = []
    for _ in range(30):
        doc = Doc(nlp.vocab, words=words, spaces=[True] * 5, sent_starts=starts)
        doc.ents = [Span(doc, 0, 1, "PER"), Span(doc, 3, 4, "LOC")]
        found.append(doc)
    return found


@pytest.fixture
def pipeline(tmp_path):
    """Finds names by their case."""
    nlp = spacy.blank("en")
    ruler = nlp.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": "PER", "pattern": "Ada"}, {"label": "LOC", "pattern": "Rome"}])
    nlp.to_disk(tmp_path / "ruler")
    return tmp_path / "ruler"


def test_every_form_has_all_entities_and_words(docs):
    found = forms.forms(docs)
    assert tuple(found) == forms.FORMS
    for part in found.values():
        assert sum(len(doc.ents) for doc in part) == 60
        assert sum(map(len, part)) == 150
    assert [len(part) for part in found.values()] == [30, 30, 30, 60, 3]
    assert found["lower"][0].text.islower() and found["upper"][0].text.isupper()
    assert [len(list(doc.sents)) for doc in found["documents"]] == [20, 20, 20]


def test_words_without_a_text_are_given_as_words_in_every_form(pipeline):
    nlp = spacy.load(pipeline)
    doc = Doc(nlp.vocab, words=["Ada.Rome", "Ada"], sent_starts=[True, False])
    doc.ents = [Span(doc, 1, 2, "PER")]
    for form, docs in forms.forms([doc] * 3).items():
        assert all(doc.has_unknown_spaces for doc in docs)
        assert forms.score(nlp, docs)["r"] == (0 if form in ("lower", "upper") else 100)


@pytest.mark.parametrize("gold_tokens", [False, True])
def test_a_saved_pipeline_is_scored_on_every_form(docs, pipeline, tmp_path, capsys, gold_tokens):
    store(tmp_path / "test.spacy", docs)
    file = tmp_path / "results.jsonl"
    arguments = ["--pipelines", str(pipeline), "--test", str(tmp_path / "test.spacy")]
    arguments += ["--results", str(file)] + ["--gold-tokens"] * gold_tokens
    assert forms.main(arguments) == 0
    (record,) = results.read([file])
    assert record["forms"] == {
        form: NONE if form in ("lower", "upper") else ONE for form in forms.FORMS
    }
    shown = capsys.readouterr().out
    assert forms.main(["--table", "--results", str(file)]) == 0
    assert capsys.readouterr().out == shown and "F1 upper" in shown


def test_a_pipeline_is_loaded_with_what_is_set(docs, pipeline, tmp_path, capsys):
    store(tmp_path / "test.spacy", docs)
    arguments = ["--pipelines", str(pipeline), "--test", str(tmp_path / "test.spacy")]
    arguments += ["--results", str(tmp_path / "results.jsonl"), "--set"]
    assert forms.main([*arguments, "components.entity_ruler.ent_id_sep", '"-"']) == 0
    assert "components.entity_ruler.ent_id_sep" in capsys.readouterr().out
    with pytest.raises(ValueError, match="unknown_setting"):
        forms.main([*arguments, "components.entity_ruler.unknown_setting", "1"])


def test_rows_with_other_settings_are_other_lines():
    record = {"kind": "recipe", "data": "few-nerd", "row": "shipped", "seed": 0}
    scores = dict.fromkeys(forms.FORMS, ONE)
    records = [
        {
            **record,
            "settings": {"size": 100, "given": "sentences", "set": [["lower", json.dumps(x)]]},
            "forms": scores,
        }
        for x in (0.0, 0.1)
    ]
    lines = forms.table(records).splitlines()
    assert len(lines) == 4 and "few-nerd, 100, sentences | shipped, lower 0.1 " in lines[3]


def test_there_is_nothing_to_score_without_pipelines():
    with pytest.raises(SystemExit):
        forms.parse(["--test", "test.spacy"])
