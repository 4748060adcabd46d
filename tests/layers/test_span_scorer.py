"""The span scorer inside stock components, and against the published head."""

import math

import numpy as np
import pytest
import spacy
import torch
from spacy.pipeline.spancat import build_ngram_suggester
from spacy.tokens import Doc, Span
from spacy.training import Example
from thinc.types import Ragged

from spacy_luke.errors import ConfigError
from spacy_luke.layers.span_network import SpanQuery, best_per_sequence
from spacy_luke.layers.task_layer import encoder_below, fits, head_of
from spacy_luke.model.heads import LinearHead
from tests.pipeline.conftest import ANNOTATED, fit, make_examples, make_ner

SUGGESTER = {"@misc": "spacy-luke.sentence_spans_suggester.v1", "max_words": 4}


def stock(directory, factory: str, activation: str, mode: str, label_weight=None, **config):
    nlp = spacy.blank("en")
    model = {
        "@architectures": "spacy-luke.SpanScorer.v1",
        "mode": mode,
        "activation": activation,
        "label_weight": label_weight,
        "encoder": {"@architectures": "spacy-luke.LukeEncoder.v1", "name": str(directory)},
    }
    nlp.add_pipe(factory, config={"model": model, "suggester": SUGGESTER, **config})
    examples = make_examples(nlp)
    for eg in examples:
        eg.reference.spans["sc"] = [
            Span(eg.reference, ent.start, ent.end, ent.label_) for ent in eg.reference.ents
        ]
    return nlp, examples


@pytest.mark.parametrize("mode", ["two-stage", "probe", "full"])
@pytest.mark.parametrize(
    "factory,activation,label_weight",
    [
        ("spancat", "logistic", None),
        ("spancat_singlelabel", "softmax", None),
        ("spancat_singlelabel", "softmax", 3.0),
    ],
)
def test_it_trains_inside_stock_spancat(
    bert_dir, tmp_path, factory, activation, label_weight, mode
):
    nlp, examples = stock(bert_dir, factory, activation, mode, label_weight)
    nlp.initialize(lambda: examples)
    fit(nlp, examples, 60)
    assert nlp.evaluate(examples)["spans_sc_f"] > 0.9
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    for text, _ in ANNOTATED:
        one, two = (n(Doc(n.vocab, words=text.split(" "))) for n in (nlp, loaded))
        spans = [[(s.start, s.end, s.label_) for s in doc.spans["sc"]] for doc in (one, two)]
        assert spans[0] == spans[1]


@pytest.mark.parametrize(
    ("factory", "activation"), [("spancat", "logistic"), ("spancat_singlelabel", "softmax")]
)
def test_the_filter_keeps_what_stock_components_are_quite_sure_of(bert_dir, factory, activation):
    """The gradient of a gold span with a probability of 1 is 0."""
    nlp, examples = stock(bert_dir, factory, activation, "two-stage", None)
    nlp.initialize(lambda: examples)
    fit(nlp, examples, 60)
    model = nlp.get_pipe(factory).model
    head = head_of(model).part("head", LinearHead)
    with torch.no_grad():
        for weight in head.parameters():
            weight *= 20.0
    docs = [eg.reference.copy() for eg in examples]
    table = Ragged(
        np.asarray([(s.start, s.end) for doc in docs for s in doc.spans["sc"]]),
        np.asarray([len(doc.spans["sc"]) for doc in docs]),
    )

    def passed():
        return 1 / (1 + np.exp(-model.layers[0].predict(SpanQuery(docs, table)).filter_logits))

    assert (model.predict((docs, table)) == 1.0).any() and passed().min() > 0.5
    fit(nlp, examples, 60)
    assert passed().min() > 0.5


def test_an_activation_that_does_not_suit_the_component_is_an_error(bert_dir):
    nlp, examples = stock(bert_dir, "spancat", "softmax", "two-stage", None)
    nlp.initialize(lambda: examples)
    with pytest.raises(ConfigError, match="Set it to 'logistic', as spancat needs it"):
        fit(nlp, examples, 1)


def test_probabilities_have_a_row_for_every_candidate_that_sums_to_one(bert_dir):
    nlp, examples = stock(bert_dir, "spancat_singlelabel", "softmax", "two-stage")
    nlp.initialize(lambda: examples)
    pipe = nlp.get_pipe("spancat_singlelabel")
    docs = [eg.predicted for eg in examples]
    spans, scores = pipe.predict(docs)
    assert scores.shape == (len(spans.dataXd), 4)
    assert np.allclose(scores.sum(-1), 1.0, atol=1e-5)


def test_nothing_but_no_entity_wins_what_a_sure_filter_dropped(bert_dir):
    nlp, examples = stock(bert_dir, "spancat_singlelabel", "softmax", "two-stage")
    nlp.initialize(lambda: examples)
    pipe = nlp.get_pipe("spancat_singlelabel")
    network = pipe.model.get_ref("network")
    network.attrs["settings"].candidates_per_word = 0.01  # one a document
    with torch.no_grad():
        head_of(network).filter.output.bias.fill_(30.0)
    docs = [eg.predicted for eg in examples]
    spans, scores = pipe.predict(docs)
    won = np.sum(scores[:, :-1].max(-1) >= scores[:, -1])
    assert scores[:, :-1].max() > 0.1 and won <= len(docs)


def test_candidates_with_white_space_at_an_end_are_not_asked_about(bert_dir):
    nlp = make_ner(bert_dir, mode="probe")
    nlp.initialize(lambda: make_examples(nlp))
    doc = Doc(nlp.vocab, words=["Ada", "\n", "London", " ", "!"], spaces=[True] * 5)
    spans = build_ngram_suggester([1, 2, 3])([doc])
    network = nlp.get_pipe("luke_ner").model
    table = spans.dataXd[fits(network, SpanQuery([doc], spans))]
    assert sorted(table.tolist()) == [[0, 1], [0, 3], [2, 3], [2, 5], [4, 5]]
    long = Ragged(np.asarray([[0, 1], [3, 9], [2, 2], [-1, 1]], dtype="i"), np.asarray([4], "i"))
    assert fits(network, SpanQuery([doc], long)).tolist() == [True, False, False, False]


def test_span_logits_equal_those_of_transformers(make_checkpoint):
    transformers = pytest.importorskip("transformers")
    names = {0: "NIL", 1: "LOC", 2: "PER"}
    for settings in ({}, {"use_entity_aware_attention": False}):
        directory = make_checkpoint(
            "luke", "LukeForEntitySpanClassification", id2label=names, num_labels=3, **settings
        )
        nlp = make_ner(
            directory,
            mode="full",
            layout="sentence",
            max_entities=100,
            max_pieces=60,
            label_weight=None,
        )
        nlp.initialize()
        reference = transformers.LukeForEntitySpanClassification.from_pretrained(directory).eval()
        pipe = nlp.get_pipe("luke_ner")
        docs = [Doc(nlp.vocab, words=text.split(" ")) for text, _ in ANNOTATED]
        (_, spans, *_), scores = pipe.predict(docs)
        module = encoder_below(pipe.model).shims[0].module
        row = 0
        for i, doc in enumerate(docs):
            words = module.pieces.encode_words([f" {t.text}" if t.i else t.text for t in doc])
            bounds = np.concatenate([[1], 1 + np.cumsum([len(w) for w in words])])
            ids = [module.pieces.cls_id, *np.concatenate(words), module.pieces.sep_id]
            table = spans[i].dataXd
            starts, ends = bounds[table[:, 0]], bounds[table[:, 1]]
            positions = np.full((1, len(table), 60), -1)
            for j, (a, b) in enumerate(zip(starts, ends)):
                positions[0, j, : b - a] = np.arange(a, b)
            with torch.no_grad():
                expected = reference(
                    input_ids=torch.tensor([ids]),
                    attention_mask=torch.ones(1, len(ids)),
                    entity_ids=torch.full((1, len(table)), module.entities.mask_id),
                    entity_attention_mask=torch.ones(1, len(table)),
                    entity_position_ids=torch.tensor(positions),
                    entity_start_positions=torch.tensor(starts[None]),
                    entity_end_positions=torch.tensor(ends[None] - 1),
                ).logits[0]
            ours = dict(zip(scores.rows.tolist(), scores.logits))
            found = np.stack([ours[row + j] for j in range(len(table))])
            assert np.abs(found - expected.numpy()[:, [1, 2, 0]]).max() < 1e-5
            row += len(table)


def test_chunks_change_full_attention_and_not_probe(bert_dir):
    results = {}
    for mode in ("full", "probe"):
        for limit in (1000, 5):
            torch.manual_seed(0)
            nlp = make_ner(bert_dir, mode=mode, max_entities=limit)
            nlp.initialize(lambda nlp=nlp: make_examples(nlp))
            doc = Doc(nlp.vocab, words=ANNOTATED[0][0].split(" "))
            _, scores = nlp.get_pipe("luke_ner").predict([doc])
            order = np.argsort(scores.rows)
            results[mode, limit] = scores.logits[order]
    assert np.allclose(results["probe", 1000], results["probe", 5], atol=1e-5)
    assert not np.allclose(results["full", 1000], results["full", 5], atol=1e-4)


def test_the_filter_keeps_k_candidates_a_word_and_k_may_change_later(bert_dir, tmp_path):
    nlp = make_ner(bert_dir)
    nlp.initialize(lambda: make_examples(nlp))
    nlp.to_disk(tmp_path)
    words = ANNOTATED[0][0].split(" ")
    for k, expected in ((0.5, 4), (1.0, 7), (2.0, 14)):
        loaded = spacy.load(tmp_path, config={"components.luke_ner.model.candidates_per_word": k})
        _, scores = loaded.get_pipe("luke_ner").predict([Doc(loaded.vocab, words=words)])
        assert len(scores.rows) == expected


def test_a_threshold_drops_what_the_filter_finds_unlikely_and_nothing_else(bert_dir, tmp_path):
    nlp = make_ner(bert_dir)
    nlp.initialize(lambda: make_examples(nlp))
    nlp.to_disk(tmp_path)
    words = ANNOTATED[0][0].split(" ")

    def scores(threshold: float):
        key = "components.luke_ner.model.filter_threshold"
        loaded = spacy.load(tmp_path, config={key: threshold})
        return loaded.get_pipe("luke_ner").predict([Doc(loaded.vocab, words=words)])[1]

    every = scores(0.0)
    chance = 1 / (1 + np.exp(-every.filter_logits))
    of_asked = chance[np.searchsorted(every.filtered, every.rows)]
    middle = len(of_asked) // 2
    threshold = float(np.sort(of_asked)[middle - 1 : middle + 1].mean())
    some = scores(threshold)
    assert 0 < len(some.rows) < len(every.rows)
    assert some.rows.tolist() == every.rows[of_asked >= threshold].tolist()
    assert np.allclose(some.logits, every.logits[of_asked >= threshold], atol=1e-5)
    none = scores(0.999999)
    assert none.rows.size == 0 and len(none.filtered) == len(every.filtered)


def test_training_asks_about_k_candidates_whatever_the_threshold(bert_dir):
    nlp = make_ner(bert_dir, filter_threshold=0.999999)
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    pipe = nlp.get_pipe("luke_ner")
    docs = [eg.predicted for eg in examples]
    spans = pipe.suggester(docs, ops=pipe.model.ops)
    scores, _ = pipe.model.begin_update(SpanQuery(docs, spans))
    assert len(scores.rows) == sum(len(doc) for doc in docs)
    fit(nlp, examples, 1)
    assert not nlp.get_pipe("luke_ner").predict(docs)[1].rows.size
    assert list(nlp(docs[0].text).ents) == []


@pytest.mark.parametrize(
    "threshold, expected", [(0.0, "the best"), (0.999999, "the best"), (0.000001, "all")]
)
def test_training_asks_about_the_best_and_of_the_others_about_likely_ones(
    bert_dir, tmp_path, threshold, expected
):
    """Without a threshold none is likely."""
    nlp = make_ner(bert_dir, train_candidates_per_word=0.3, filter_threshold=threshold)
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    nlp.to_disk(tmp_path)
    pipe = spacy.load(tmp_path).get_pipe("luke_ner")
    docs = [eg.predicted for eg in examples]
    spans = pipe.suggester(docs, ops=pipe.model.ops)
    scores, _ = pipe.model.begin_update(SpanQuery(docs, spans))
    per_word = {"the best": 0.3, "all": 1.0}[expected]
    assert len(scores.rows) == sum(math.ceil(per_word * len(doc)) for doc in docs)
    if threshold < 0.5:
        scores = pipe.model.predict(SpanQuery(docs, spans))
        assert len(scores.rows) == sum(len(doc) for doc in docs)


def test_the_best_are_kept_whatever_their_score():
    scores, sequences = np.array([3.0, 1.0, 2.0, 5.0, 4.5]), np.array([0, 0, 0, 1, 1])
    limits = np.array([2, 1])

    def kept(*args):
        return best_per_sequence(scores, sequences, limits, None, *args).tolist()

    assert kept() == [0, 2, 3]
    assert kept(4.0) == [3]
    assert kept(4.0, np.array([1, 0])) == [0, 3]
    assert kept(2.5, np.array([0, 1])) == [0, 3]
    assert kept(9.0, np.array([9, 9])) == [0, 2, 3]  # within the limit
    forced = np.array([False, True, False, False, True])
    assert best_per_sequence(scores, sequences, limits, forced, 9.0).tolist() == [1, 4]


def test_gold_is_forced_through_the_filter_while_training(bert_dir):
    nlp = make_ner(bert_dir, candidates_per_word=0.15)
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    pipe = nlp.get_pipe("luke_ner")
    docs = [eg.predicted for eg in examples]
    spans = pipe.suggester(docs, ops=pipe.model.ops)
    targets, _ = pipe._targets(examples, SpanQuery(docs, spans))
    gold = targets != len(pipe.labels)
    scores, _ = pipe.model.begin_update(SpanQuery(docs, spans, gold))
    assert set(np.flatnonzero(gold)) <= set(scores.rows.tolist())
    assert len(scores.rows) < 20


def test_documents_without_candidates_are_no_trouble(bert_dir):
    nlp, examples = stock(bert_dir, "spancat", "logistic", "two-stage")
    nlp.initialize(lambda: examples)
    blank = Example(nlp.make_doc(""), nlp.make_doc(""))
    nlp.update([blank, *examples], sgd=False)
    assert nlp("").text == ""
