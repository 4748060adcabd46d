"""The candidates of mentions and their order: of the knowledge base, functions, lists, vectors."""

from types import SimpleNamespace

import numpy as np
import pytest

from spacy_luke.errors import InputError
from spacy_luke.pipeline.confidence import Confidence
from spacy_luke.pipeline.entity_vectors import make_name_vectors
from spacy_luke.pipeline.link_scores import ranked
from tests.pipeline.linker_data import (
    TEXTS,
    linked,
    links,
    make_docs,
    make_linker,
)


@pytest.fixture
def nlp(bert_dir, tmp_path):
    return make_linker(bert_dir, tmp_path / "kb")


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ([], "candidates of 0 mentions for 2"),
        (
            [[SimpleNamespace(entity_="ada", prior_prob=float("nan"))], []],
            "The prior of the candidate 'ada' is nan",
        ),
        (
            [[SimpleNamespace(entity_="ada", prior_prob=2.0)], []],
            "The prior of the candidate 'ada' is 2.0",
        ),
        (None, "returned None instead of the candidates of every mention"),
        ([None, []], "returned None instead of the candidates of a mention"),
        ([["ada"], []], "returned 'ada', which is no candidate"),
    ],
)
def test_what_a_function_returns_is_checked(nlp, found, message):
    nlp.get_pipe("luke_linker").get_candidates_batch = lambda kb, mentions: found
    with pytest.raises(InputError, match=message):
        nlp(make_docs(nlp, TEXTS[:1])[0])


def test_candidates_that_the_knowledge_base_lacks_are_logged_once(nlp, caplog):
    def candidates(kb, mention):
        return [SimpleNamespace(entity_=x, prior_prob=0.5) for x in ("unheard", "ada")]

    nlp.get_pipe("luke_linker").get_candidates = candidates
    for _ in range(2):
        doc = nlp(make_docs(nlp, TEXTS[:1])[0])
        assert [x for x, _ in doc.ents[0]._.candidates] == ["ada"]
    (message,) = [x for x in caplog.messages if "unheard" in x]
    assert "returned 'unheard', which is not in the knowledge base" in message


def test_a_list_of_allowed_ids_replaces_aliases(nlp, caplog):
    doc = make_docs(nlp, TEXTS[:1])[0]
    doc.ents[0]._.allowed_ids = ["band"]
    doc.ents[1]._.allowed_ids = ["kyoto", "city", "unheard"]
    nlp.get_pipe("luke_linker").nil_bias = 1000.0
    doc = nlp(doc)
    assert doc.ents[0]._.candidates[0][0] == "band" and len(doc.ents[0]._.candidates) == 1
    assert {x for x, _ in doc.ents[1]._.candidates} == {"kyoto", "city"}  # Japan: no alias
    assert "1 Span._.allowed_ids are not in the knowledge base" in caplog.text
    assert "'unheard'" in caplog.text
    # Whatever they are called, and whatever else is called like the mention.
    scores = dict(doc.ents[1]._.candidates)
    doc.ents[1]._.allowed_ids = ["city", "kyoto"]
    assert dict(nlp(doc).ents[1]._.candidates) == pytest.approx(scores)
    features = nlp.get_pipe("luke_linker").predict([doc])[0].features
    assert not features[1, :2, 1].any()
    doc.ents[0]._.allowed_ids = []
    assert links(nlp(doc))[0] == "NIL"
    doc.ents[0]._.allowed_ids = None
    assert len(nlp(doc).ents[0]._.candidates) == 2


def test_generators_of_spacy_can_be_used(bert_dir, tmp_path):
    generator = {"@misc": "spacy.CandidateGenerator.v1"}
    nlp = make_linker(bert_dir, tmp_path / "kb", get_candidates=generator)
    default = make_linker(bert_dir, tmp_path / "kb")
    assert list(map(links, linked(nlp))) == list(map(links, linked(default)))


@pytest.mark.parametrize("prior, known", [(0.4, True), (0.0, False)])
def test_a_prior_of_another_generator_is_known_if_there_is_one(nlp, prior, known):
    pipe = nlp.get_pipe("luke_linker")
    pipe.get_candidates = lambda kb, mention: [SimpleNamespace(entity_="city", prior_prob=prior)]
    query, _ = pipe.predict(make_docs(nlp, TEXTS[:1]))
    assert query.prior_known[0].tolist() == [known]


def test_names_that_are_written_differently_are_found_by_their_vectors(nlp):
    pipe = nlp.get_pipe("luke_linker")
    text = ("the capital of France sang", [(1, 4, "")])
    assert linked(nlp, [text])[0].ents[0]._.candidates == ()
    make_name_vectors(nlp, pipe.kb, component="luke_linker")
    doc = linked(nlp, [text])[0]
    assert {x for x, _ in doc.ents[0]._.candidates} == {"city", "band", "ada", "kyoto"}
    pipe.nearest = 1
    nearest = linked(nlp, [text])[0].ents[0]._.candidates
    assert len(nearest) == 1
    # Mentions that equal an alias have its entities alone.
    assert len(linked(nlp, [("Tokyo sang", [(0, 1, "")])])[0].ents[0]._.candidates) == 2
    allowed = make_docs(nlp, [text])[0]
    allowed.ents[0]._.allowed_ids = ["ada"]
    assert [x for x, _ in nlp(allowed).ents[0]._.candidates] == ["ada"]


def test_equal_candidates_are_in_their_order_whatever_rounding_changes():
    """Of those behind the best, too, and if the best is "NIL"."""
    ids = ["a", "b", "c", "d"]
    rows = np.array([[0, 1, 2, 3], [0, 1, 2, -1]])
    logits = np.array([[0.0, 1.0, 0.5, 0.5 + 1e-6, 2.0], [9.0, 1.0, 1.0 + 1e-6, 1.0, -np.inf]])
    confidence = Confidence([""], 0.0, {}, None)
    first, second = ranked(logits, rows, ids, confidence, 0.0)
    assert first[0] and [x for x, _ in first[1]] == ["d", "a", "b", "c"]
    assert not second[0] and [x for x, _ in second[1]] == ["a", "b", "c"]
