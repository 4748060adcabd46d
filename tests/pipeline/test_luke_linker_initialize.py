"""luke_linker: what initialize reports of the training data and of the pipeline."""

import logging

import pytest
from spacy.training import Example

from spacy_luke.errors import ConfigError
from tests.pipeline.conftest import fit
from tests.pipeline.linker_data import TEXTS, make_doc, make_examples, make_linker


@pytest.fixture
def nlp(bert_dir, tmp_path):
    return make_linker(bert_dir, tmp_path / "kb")


def test_gold_links_out_of_reach_are_counted(bert_dir, tmp_path, caplog):
    texts = [
        *TEXTS,
        ("Tokyo sang", [(0, 1, "unheard")]),
        ("Tokyo sang", [(0, 1, "ada")]),
        ("Tokyo " * 199 + "Tokyo", [(0, 200, "city")]),
    ]
    nlp = make_linker(bert_dir, tmp_path / "kb")
    pipe = nlp.get_pipe("luke_linker")
    examples = make_examples(nlp, texts)
    missing = make_examples(nlp, [("Tokyo sang", [(0, 1, "city")])])[0]
    examples.append(Example(nlp.make_doc("Tokyo sang"), missing.reference))
    pipe.initialize(lambda: examples, nlp=nlp)
    assert pipe.limits == {
        "mentions": 12,
        "NIL": 2,
        "NIL out of reach": 1,  # London has no candidates
        "gold": 10,
        "no mention": 1,
        "too long": 1,
        "unknown id": 1,
        "no candidate": 1,
        "counted only there": 0,
    }
    assert "of 10 gold links 6 have the right entity among their candidates" in caplog.text
    assert "recall at 2, the most candidates of a mention: 60.0 %; at 1: " in caplog.text
    lost = make_examples(nlp, [("Tokyo sang", [(0, 1, "unheard")])])
    with pytest.raises(ConfigError, match="nothing can be learned"):
        pipe.initialize(lambda: lost, nlp=nlp)
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        pipe.initialize(lambda: make_examples(nlp, [("Tokyo sang", [(0, 1, "")])]), nlp=nlp)
    assert "none of the 1 mentions of the data has a kb_id_" in caplog.text


def test_nil_can_be_learned_where_no_link_can(nlp, caplog):
    pipe = nlp.get_pipe("luke_linker")
    texts = [("Tokyo sang", [(0, 1, "NIL")])] * 3 + [("Kyoto sang", [(0, 1, "unheard")])]
    examples = make_examples(nlp, texts)
    pipe.initialize(lambda: examples, nlp=nlp)
    assert "of 1 gold links 0 have the right entity" in caplog.text
    first = fit(nlp, examples, 1)["luke_linker"]
    assert fit(nlp, examples, 60)["luke_linker"] < 0.8 * first


def test_nil_without_candidates_teaches_nothing(nlp):
    texts = [("Nowhere sang", [(0, 1, "NIL")]), ("Kyoto sang", [(0, 1, "unheard")])]
    with pytest.raises(ConfigError, match="nothing can be learned"):
        nlp.initialize(lambda: make_examples(nlp, texts))
    nlp.initialize(lambda: make_examples(nlp, texts[:1]))  # as without data


def test_data_without_mentions_is_warned_of(bert_dir, tmp_path, caplog):
    nlp = make_linker(bert_dir, tmp_path / "kb", spans_key="sc", texts=())
    assert "has a mention" not in caplog.text  # without data it is not trained
    nlp.initialize(lambda: make_examples(nlp))
    assert (
        "none of the 6 documents of the data has a mention in the spans group 'sc'" in caplog.text
    )
    caplog.clear()
    examples = make_examples(nlp)
    for eg in examples:  # the reader does not give them to the predicted documents
        eg.reference.spans["sc"] = list(eg.reference.ents)
    nlp.initialize(lambda: examples)
    assert "has a mention" not in caplog.text
    assert "PresetEntsCorpus.v1 with spans_key = 'sc'" in caplog.text


def test_two_linkers_with_the_same_names_of_scores_are_warned_of(nlp, caplog):
    config = {"spans_key": "sc", "model": nlp.get_pipe_config("luke_linker")["model"]}
    prefix = {"@scorers": "spacy-luke.luke_linker_scorer.v1", "prefix": "group"}
    for name, scorer in (("same", {}), ("other", {"scorer": prefix})):
        pipe = nlp.add_pipe("luke_linker", name, config={**config, **scorer})
        pipe.set_kb(lambda vocab: nlp.get_pipe("luke_linker").kb)
    nlp.initialize(lambda: make_examples(nlp))
    assert "luke_linker and same have scores with the same names, nel_..." in caplog.text
    assert "and other have" not in caplog.text
    examples = make_examples(nlp)
    for eg in examples:
        for doc in (eg.predicted, eg.reference):
            doc.spans["sc"] = list(doc.ents)[:1]
    nlp.remove_pipe("same")
    caplog.clear()
    nlp.initialize(lambda: examples)
    assert "with the same names" not in caplog.text
    scores = nlp.evaluate(examples)
    assert scores["nel_acc"] != scores["group_acc"] and scores["group_micro_f"] is not None


def test_mentions_that_are_not_linked_are_not_counted_as_lost(bert_dir, tmp_path, caplog):
    """The labels of ``labels_discard``."""
    nlp = make_linker(bert_dir, tmp_path / "kb", labels_discard=["CITY"])
    examples = make_examples(nlp, TEXTS[:3])
    examples += [
        Example(make_doc(nlp, x, False, "CITY"), make_doc(nlp, x, True, "CITY")) for x in TEXTS
    ]
    caplog.clear()
    with caplog.at_level(logging.INFO):
        nlp.initialize(lambda: examples)
    assert (
        "3 gold links" in caplog.text
        and "recall at 2, the most candidates of a mention: 100.0 %" in caplog.text
    )
    # The label of the reference counts for what is learned, too.
    (pair,) = [Example(make_doc(nlp, x, False), make_doc(nlp, x, True, "CITY")) for x in TEXTS[1:2]]
    pipe = nlp.get_pipe("luke_linker")
    query = pipe.predict([pair.predicted])[0]
    assert not pipe._targets([pair], query)[1].any()
