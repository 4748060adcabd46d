"""Asking about given spans: what is held in memory, what fits, and what a sequence shows."""

import gc
import weakref
from typing import Any

import numpy as np
import pytest
import torch
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_luke.errors import ConfigError
from spacy_luke.layers import encoder_run
from tests.pipeline.conftest import fit
from tests.pipeline.relation_data import annotate, make_examples, make_pipeline

FACTORIES = ("luke_relation", "luke_entity_typing")
MODES = ("markers", "probe")
ANY_DISTANCE = {"@misc": "spacy-luke.relation_candidates.v1", "max_distance": None}


def make(factory: str, directory: Any, mode: str, **config: Any) -> Language:
    if factory == "luke_relation":
        config = {"pair_order": "text", "candidates": ANY_DISTANCE, **config}
    nlp = make_pipeline(factory, directory, mode, **config)
    nlp.initialize(lambda: make_examples(nlp))
    return nlp


def crowd(nlp: Language, n: int) -> Doc:
    doc = Doc(nlp.vocab, words=["Tokyo", "met"] * n)
    return annotate(doc, [(2 * i, 2 * i + 1, "LOC", ["/place"]) for i in range(n)])


class Watch:
    """The rows of every call of the network, and the states that are still in memory."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rows: list[int] = []
        self.made: list[weakref.ref] = []
        self.entities: list[torch.Tensor] = []
        encode = encoder_run.EncoderRun.encode

        def watched(own: Any, inputs: Any, attention: Any) -> Any:
            states = encode(own, inputs, attention)
            self.rows.append(len(inputs.words.piece_ids) + len(inputs.entities.ids))
            self.made.append(weakref.ref(states.words))
            self.entities.append(states.entities.detach().clone())
            return states

        monkeypatch.setattr(encoder_run.EncoderRun, "encode", watched)

    def alive(self) -> int:
        gc.collect()
        return sum(made() is not None for made in self.made)


# Memory


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("factory", FACTORIES)
def test_two_hundred_entities_are_asked_about_a_bounded_number_of_rows_at_a_time(
    bert_dir, monkeypatch, factory, mode
):
    limits = {"max_distance": 20} if mode == "markers" else {"max_distance": None}
    config = {"candidates": {**ANY_DISTANCE, **limits}} if factory == "luke_relation" else {}
    nlp = make(factory, bert_dir, mode, threshold=0.0, view="sentence", **config)
    doc = crowd(nlp, 200)
    for i, token in enumerate(doc):
        token.is_sent_start = i % 40 == 0
    watch = Watch(monkeypatch)
    query, scores = nlp.get_pipe(factory).predict([doc])
    questions = query.pairs if factory == "luke_relation" else query.spans
    assert len(scores.rows) == len(questions)
    if factory == "luke_relation":
        assert len(questions) == (199 * 100 if mode == "probe" else 1945)
    assert max(watch.rows) <= encoder_run.MAX_ROWS
    assert np.isfinite(scores.logits).all()


@pytest.mark.parametrize("factory", FACTORIES)
def test_training_between_markers_keeps_no_sequences_in_memory(bert_dir, monkeypatch, factory):
    monkeypatch.setattr(encoder_run, "MAX_ROWS", 200)
    nlp = make(factory, bert_dir, "markers")
    pipe = nlp.get_pipe(factory)
    docs = [crowd(nlp, 14), crowd(nlp, 8)]
    watch = Watch(monkeypatch)
    query = pipe._query(docs)
    scores, backprop = pipe.model.begin_update(query)
    n_calls = len(watch.rows)
    assert n_calls > 2 and max(watch.rows) <= 200
    assert watch.alive() == 0
    backprop(scores._replace(logits=np.ones_like(scores.logits)))
    assert len(watch.rows) == 2 * n_calls and watch.alive() == 0


@pytest.mark.parametrize("factory", FACTORIES)
def test_what_is_computed_again_has_the_dropout_it_had(bert_dir, monkeypatch, factory):
    monkeypatch.setattr(encoder_run, "MAX_ROWS", 60)
    nlp = make(factory, bert_dir, "markers")
    examples = make_examples(nlp)
    watch = Watch(monkeypatch)
    nlp.update(examples, sgd=False, drop=0.5)
    n = len(watch.entities) // 2
    assert n > 1
    first, again = watch.entities[:n], watch.entities[n:]
    for one in first:
        assert any(one.shape == x.shape and torch.equal(one, x) for x in again)


def test_what_is_computed_again_has_the_random_state_of_the_device_it_is_on(bert_dir, monkeypatch):
    """Torch restores the state of those devices only that the tensors given are on."""
    seen = []
    checkpoint = encoder_run.checkpoint

    def spy(run: Any, *args: Any, **settings: Any) -> Any:
        seen.append([x.device for x in args])
        return checkpoint(run, *args, **settings)

    monkeypatch.setattr(encoder_run, "checkpoint", spy)
    monkeypatch.setattr(encoder_run, "MAX_ROWS", 60)
    nlp = make("luke_relation", bert_dir, "markers")
    nlp.update(make_examples(nlp), sgd=False)
    network = nlp.get_pipe("luke_relation").model.layers[0].shims[0].module.network
    assert seen and all(devices == [network.device] for devices in seen)


# Positions


@pytest.mark.parametrize("factory", FACTORIES)
def test_positions_of_a_long_mention_stop_where_they_are_told_to(bert_dir, monkeypatch, factory):
    """Its markers count: of 10 positions, one is that of the opening marker."""
    lengths = {}
    encode = encoder_run.EncoderRun.encode

    def watched(own: Any, inputs: Any, attention: Any) -> Any:
        given = inputs.entities
        lengths.setdefault(limit, set()).update((given.ends - given.starts).tolist())
        return encode(own, inputs, attention)

    monkeypatch.setattr(encoder_run.EncoderRun, "encode", watched)
    for limit in (None, 10, 1):
        nlp = make(factory, bert_dir, "markers", max_mention_pieces=limit)
        doc = Doc(nlp.vocab, words=["London", *["Tokyo"] * 20])
        annotate(doc, [(0, 1, "LOC", []), (1, 21, "LOC", [])])
        lengths.pop(limit, None)  # of initialisation
        nlp.get_pipe(factory).predict([doc])
    n_london, n_tokyo = sorted(lengths[None])
    assert n_tokyo > 20 > n_london
    assert lengths[10] == {n_london, 10} and lengths[1] == {1}
    with pytest.raises(ConfigError, match="max_mention_pieces is 0"):
        make(factory, bert_dir, "markers", max_mention_pieces=0)


# What fits


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("factory", FACTORIES)
def test_what_is_too_long_is_counted_without_running_the_network(
    bert_dir, monkeypatch, factory, mode
):
    nlp = make_pipeline(factory, bert_dir, mode, encoder={"window": 24, "overlap": 6})
    examples = make_examples(nlp)
    doc = Doc(nlp.vocab, words=["London"] * 60)
    places = [(0, 40, "LOC", ["/place"]), (50, 51, "LOC", ["/place"]), (52, 53, "LOC", ["/place"])]
    annotate(doc, places, [(0, 1, "borders"), (1, 2, "borders")])
    watch = Watch(monkeypatch)
    nlp.initialize(lambda: [*examples, Example(doc.copy(), doc)])
    assert nlp.get_pipe(factory).limits["too long"] == 1
    assert not watch.rows


def test_a_pair_that_is_not_asked_about_is_mentioned_once(bert_dir, caplog):
    nlp = make("luke_relation", bert_dir, "markers", threshold=0.0)
    words = ["Tokyo", *["is"] * 200, "Japan", "."]
    for _ in range(2):
        doc = Doc(nlp.vocab, words=words)
        doc.ents = [Span(doc, 0, 1, "LOC"), Span(doc, 201, 202, "LOC"), Span(doc, 202, 203, "LOC")]
        _, doc = nlp.pipe([nlp.make_doc("Tokyo"), doc])
        assert {frozenset((r.head.start, r.tail.start)) for r in doc._.relations} <= {
            frozenset((201, 202))
        }
    assert caplog.text.count("2 of 3 rows are not scored") == 1
    assert "counted from 0: 1)" in caplog.text


@pytest.mark.parametrize("mode", MODES)
def test_of_an_entitys_mentions_those_that_fit_are_asked_about(bert_dir, mode):
    nlp = make(
        "luke_relation", bert_dir, mode, merge_entities=True, encoder={"window": 24, "overlap": 6}
    )
    words = ["Tokyo", "is", "Japan", *["met"] * 30, "\n", "Japan"]
    doc = Doc(nlp.vocab, words=words)
    doc.ents = [
        Span(doc, 0, 1, "LOC", kb_id="tokyo"),
        Span(doc, 2, 3, "LOC", kb_id="japan"),
        Span(doc, 4, 33, "LOC", kb_id="japan"),  # longer than a window
        Span(doc, 33, 34, "LOC", kb_id="tokyo"),  # without pieces, beside the next
        Span(doc, 34, 35, "LOC", kb_id="japan"),
    ]
    query, scores = nlp.get_pipe("luke_relation").predict([doc])
    assert query.pairs.tolist() == [[0, 1]] and scores.rows.tolist() == [0]


def test_the_head_of_probe_is_not_looked_for_in_a_checkpoint(make_checkpoint):
    names = {0: "no_relation", 1: "born_in", 2: "located_in", 3: "borders"}
    directory = make_checkpoint(
        "luke", "LukeForEntityPairClassification", id2label=names, num_labels=4
    )
    for mode in MODES:
        nlp = make("luke_relation", directory, mode)
        assert nlp.get_pipe("luke_relation").labels == ("borders", "born_in", "located_in")
        assert np.isfinite(fit(nlp, make_examples(nlp), 2)["luke_relation"])
    with pytest.raises(ValueError, match="no labels"):
        make_pipeline("luke_relation", directory, "probe").initialize()


# What a sequence shows


def two_sentences(nlp: Language, second: list[str]) -> Doc:
    words = ["Tokyo", "is", "in", "Japan", ".", *second]
    doc = Doc(nlp.vocab, words=words, sent_starts=[i in (0, 5) for i in range(len(words))])
    doc.ents = [Span(doc, 0, 1, "LOC"), Span(doc, 3, 4, "LOC")]
    return doc


@pytest.mark.parametrize("tokenization", ["tokens", "mentions"])
@pytest.mark.parametrize("factory", FACTORIES)
def test_a_view_is_the_sentence_or_the_document(bert_dir, factory, tokenization):
    for view in ("sentence", "document"):
        nlp = make(factory, bert_dir, "markers", view=view, encoder={"tokenization": tokenization})
        pipe = nlp.get_pipe(factory)
        logits = [
            pipe.predict([two_sentences(nlp, text.split())])[1].logits
            for text in ("She disagreed !", "London met Paris .")
        ]
        assert np.allclose(*logits, atol=1e-5) == (view == "sentence")


@pytest.mark.parametrize("tokenization", ["tokens", "mentions"])
@pytest.mark.parametrize("view", ["sentence", "document"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("factory", FACTORIES)
def test_answers_do_not_depend_on_the_other_documents_or_their_order(
    bert_dir, factory, mode, view, tokenization
):
    nlp = make(
        factory,
        bert_dir,
        mode,
        view=view,
        typed_markers=True,
        encoder={"tokenization": tokenization, "window": 30, "overlap": 8},
    )
    pipe = nlp.get_pipe(factory)
    docs = [eg.predicted for eg in make_examples(nlp)]
    docs += [nlp.make_doc(""), crowd(nlp, 12), two_sentences(nlp, ["She", "met", "London"])]

    def logits(order: list[int]) -> dict[int, np.ndarray]:
        query, scores = pipe.predict([docs[i] for i in order])
        of_doc = query.of_doc[scores.rows]
        return {i: scores.logits[of_doc == at] for at, i in enumerate(order)}

    alone = {i: logits([i])[i] for i in range(len(docs))}
    order = list(range(len(docs)))
    for found in (logits(order), logits(order[::-1]), logits(order[::2])):
        for i, values in found.items():
            assert values.shape == alone[i].shape
            assert np.allclose(values, alone[i], atol=1e-5)


@pytest.mark.parametrize("factory", FACTORIES)
def test_typed_markers_tell_labels_apart(bert_dir, factory):
    for typed in (True, False):
        nlp = make(factory, bert_dir, "markers", typed_markers=typed)
        logits = []
        for label in ("LOC", "PER", "NEW_thing"):
            doc = two_sentences(nlp, ["."])
            doc.ents = [Span(doc, ent.start, ent.end, label) for ent in doc.ents]
            logits.append(nlp.get_pipe(factory).predict([doc])[1].logits)
        assert np.isfinite(logits).all()
        for i, j in ((0, 1), (0, 2), (1, 2)):
            assert np.allclose(logits[i], logits[j], atol=1e-5) != typed


# Odd training data


@pytest.mark.parametrize("multi_label", [True, False])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("factory", FACTORIES)
def test_data_without_a_single_relation_or_type_is_learned(bert_dir, factory, mode, multi_label):
    nlp = make_pipeline(factory, bert_dir, mode, multi_label=multi_label)
    nlp.config["initialize"]["components"][factory] = {"labels": ["never", "neither"]}
    examples = make_examples(nlp)
    for eg in examples:
        eg.reference._.relations = []
        for ent in eg.reference.ents:
            ent._.types = {}
    nlp.initialize(lambda: examples)
    assert np.isfinite(fit(nlp, examples, 20)[factory])
    docs = list(nlp.pipe([eg.predicted for eg in make_examples(nlp)]))
    assert not any(doc._.relations for doc in docs)
    if multi_label:
        assert not any(ent._.types for doc in docs for ent in doc.ents)
    assert (
        nlp.evaluate(examples)[f"{'rels' if factory == FACTORIES[0] else 'types_micro'}_f"] is None
    )


def test_settings_of_the_other_way_to_ask_are_warned_of(bert_dir, caplog):
    make_pipeline("luke_relation", bert_dir, "markers", typed_markers=True)
    assert not caplog.messages
    make_pipeline("luke_relation", bert_dir, "probe", typed_markers=True)
    assert "PairScorer: view, typed_markers and" in caplog.text
