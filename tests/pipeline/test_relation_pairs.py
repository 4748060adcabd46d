"""Which pairs are asked about, and what is made of them."""

import numpy as np
import pytest
from spacy.tokens import Doc, Span

from spacy_luke.errors import ConfigError
from spacy_luke.pipeline import entity_task
from tests.pipeline.relation_data import annotate, make_examples, make_pipeline

MODES = ("markers", "probe")


def make(directory, mode="probe", **config):
    return make_pipeline("luke_relation", directory, mode, **config)


def test_every_ordered_pair_is_asked_about_or_every_pair_once(bert_dir):
    doc_of_four = 3
    for order, expected in (("both", 12), ("text", 6)):
        nlp = make(bert_dir, pair_order=order)
        docs = [eg.predicted for eg in make_examples(nlp)]
        query = nlp.get_pipe("luke_relation")._query([docs[doc_of_four]])
        assert len(query.pairs) == expected


@pytest.mark.parametrize("pair_order, expected", [("both", [[0, 1], [1, 0]]), ("text", [[0, 1]])])
def test_pairs_of_any_function_are_asked_about_once(bert_dir, pair_order, expected):
    nlp = make(bert_dir, pair_order=pair_order)
    pipe = nlp.get_pipe("luke_relation")
    pipe.candidates = lambda doc, entities: [[1, 0], [0, 1], [1, 0], [1, 1]]
    doc = make_examples(nlp)[0].reference
    assert pipe._query([doc]).pairs.tolist() == expected
    pipe.candidates = lambda doc, entities: []
    assert pipe._query([doc]).pairs.tolist() == []


@pytest.mark.parametrize("mode", MODES)
def test_a_large_batch_is_asked_about_in_groups_of_documents(bert_dir, monkeypatch, mode):
    nlp = make(bert_dir, mode, threshold=0.0, encoder={"window": 16, "overlap": 4})
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    docs = [eg.predicted for eg in examples]
    # Questions without an answer shift no others: a mention that no window holds.
    long = Doc(nlp.vocab, words=["Ada"] * 40)
    annotate(long, [(0, 30, "PER", []), (32, 33, "LOC", []), (34, 35, "LOC", [])])
    docs.insert(2, long)
    pipe = nlp.get_pipe("luke_relation")
    sizes = []
    part = pipe._part
    monkeypatch.setattr(pipe, "_part", lambda *x: sizes.append(x[2] - x[1]) or part(*x))
    _, whole = pipe.predict(docs)
    missing = pipe.n_unscored
    # In the order of words and against it; other documents have more where pieces are short.
    assert not sizes and missing >= 4
    monkeypatch.setattr(entity_task, "MAX_WORDS", 14)
    # A function of candidates may say something else each time: it is asked once.
    calls = []
    candidates = pipe.candidates
    monkeypatch.setattr(pipe, "candidates", lambda *x: calls.append(x) or candidates(*x))
    query, parts = pipe.predict(docs)
    assert len(calls) == len(docs)
    assert pipe.n_unscored == 2 * missing and sum(sizes) == len(docs) and len(sizes) > 2
    assert np.array_equal(whole.rows, parts.rows)
    assert np.allclose(whole.logits, parts.logits, atol=1e-5)
    assert len(query.pairs) == len(parts.rows) + missing


@pytest.mark.parametrize("multi_label", [False, True])
def test_in_text_order_too_only_candidates_are_related(bert_dir, multi_label):
    """A pair is asked about if one direction is a candidate, and then related in no other."""
    from_people = {"@misc": "spacy-luke.relation_candidates.v1", "label_pairs": [["PER", "LOC"]]}
    nlp = make(
        bert_dir,
        pair_order="text",
        multi_label=multi_label,
        threshold=0.0,
        symmetric=["borders"],
        candidates=from_people,
    )
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    pipe = nlp.get_pipe("luke_relation")
    # Only one gold relation is that of a person to a place.
    assert (pipe.limits["gold"], pipe.limits["no candidate"]) == (5, 4)
    doc = Doc(nlp.vocab, words=["London", "is", "where", "Ada", "Lovelace", "met", "Tokyo"])
    annotate(doc, [(0, 1, "LOC", []), (3, 5, "PER", []), (6, 7, "LOC", [])])
    query, scores = pipe.predict([doc])
    assert query.pairs.tolist() == [[0, 1], [1, 2]]
    assert query.directions.tolist() == [[False, True], [True, False]]
    for favoured in range(scores.logits.shape[1]):
        logits = np.zeros_like(scores.logits)
        logits[:, favoured] = 9.0
        pipe.set_annotations([doc], (query, scores._replace(logits=logits)))
        directed = [x for x in doc._.relations if x.label != "borders"]
        assert all((x.head.label_, x.tail.label_) == ("PER", "LOC") for x in directed)
        if multi_label:  # everything that is possible, at this threshold
            assert len(directed) == 4
            assert {x.label for x in doc._.relations} == {"born_in", "located_in", "borders"}


def test_a_document_of_many_entities_is_scored_in_bounded_chunks(bert_dir, monkeypatch):
    from spacy_luke.layers import pair_scorer

    n = 40
    nlp = make(bert_dir, threshold=0.0, pair_order="text")
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    doc = Doc(nlp.vocab, words=["Tokyo", "met"] * n)
    doc.ents = [Span(doc, 2 * i, 2 * i + 1, "LOC") for i in range(n)]
    pipe = nlp.get_pipe("luke_relation")
    _, whole = pipe.predict([doc])
    assert len(whole.rows) == n * (n - 1) // 2
    monkeypatch.setattr(pair_scorer, "MAX_PAIRS", 7)
    _, parts = pipe.predict([doc])
    assert np.allclose(whole.logits, parts.logits, atol=1e-5)


def test_a_pair_of_no_entities_is_an_error(bert_dir):
    nlp = make(bert_dir)
    nlp.initialize(lambda: make_examples(nlp))
    pipe = nlp.get_pipe("luke_relation")
    pipe.candidates = lambda doc, entities: [(0, len(entities))]
    with pytest.raises(ConfigError, match="not one of the 2 entities"):
        doc = Doc(nlp.vocab, words=["Ada", "met", "Tokyo"])
        pipe.predict([annotate(doc, [(0, 1, "PER", []), (2, 3, "LOC", [])])])


@pytest.mark.parametrize(
    "given",
    [
        np.ones((2, 2), dtype=bool),
        np.zeros((2, 3), dtype=int),
        [(0, 1, 1), (1, 0, 1)],
        [(0, 1), (1,)],
        [[0.9, 1.7]],
        [0, 1],
        None,
        iter([(0, 1)]),
    ],
)
def test_pairs_of_another_form_are_an_error(bert_dir, given):
    nlp = make(bert_dir)
    pipe = nlp.get_pipe("luke_relation")
    pipe.candidates = lambda doc, entities: given
    doc = make_examples(nlp)[0].reference
    with pytest.raises(ConfigError, match="luke_relation.candidates must give pairs"):
        pipe._query([doc])
    for empty in ([], (), np.zeros((0, 2)), np.zeros((0, 2), dtype=int)):
        pipe.candidates = lambda doc, entities, empty=empty: empty
        assert pipe._query([doc]).pairs.shape == (0, 2)
