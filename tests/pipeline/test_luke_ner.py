import os
import subprocess
import sys

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example
from thinc.types import Ragged

from spacy_luke.errors import ConfigError
from spacy_luke.layers.span_network import SpanQuery
from spacy_luke.layers.task_layer import fits, head_of
from tests.pipeline.conftest import (
    ANNOTATED,
    entities,
    fit,
    make_examples,
    make_ner,
    probabilities,
    trained,
)

MODES = ["two-stage", "probe", "full"]


@pytest.mark.parametrize("mode", MODES)
def test_it_learns_a_handful_of_sentences(ner, mode):
    nlp = ner(mode=mode)
    examples = trained(nlp)
    docs = list(nlp.pipe([Doc(nlp.vocab, words=text.split(" ")) for text, _ in ANNOTATED]))
    assert [entities(doc) for doc in docs] == [spans for _, spans in ANNOTATED]
    assert nlp.evaluate(examples)["ents_f"] == 1.0


def test_flat_mode_writes_entities_and_the_spans_group_with_probabilities(ner):
    nlp = ner()
    trained(nlp)
    doc = nlp(Doc(nlp.vocab, words=ANNOTATED[0][0].split(" ")))
    group = doc.spans["luke_ner"]
    assert [(s.start, s.end, s.label_) for s in group] == entities(doc) == ANNOTATED[0][1]
    scores = group.attrs["scores"]
    assert scores.shape == (2,) and ((scores > 0.5) & (scores <= 1.0)).all()
    assert [ent._.score for ent in doc.ents] == scores.tolist()


def test_labels_are_needed_and_labels_of_the_data_must_be_known(ner):
    nlp = ner()
    empty = make_examples(nlp, [("no entities here", [])])
    with pytest.raises(ConfigError, match="no labels"):
        nlp.initialize(lambda: empty)
    nlp = ner()
    nlp.initialize(lambda: make_examples(nlp, ANNOTATED[1:2]))
    with pytest.raises(ConfigError, match=r"\['ORG'\]"):
        nlp.update(make_examples(nlp, ANNOTATED[2:3]), sgd=False)
    given = ner().get_pipe("luke_ner")
    with pytest.raises(ConfigError, match=r"\['ORG'\]"):  # at once, not when its turn comes
        given.initialize(lambda: make_examples(nlp, ANNOTATED[:3]), nlp=nlp, labels=["LOC", "PER"])


@pytest.mark.parametrize("label_weight", [None, 3.0])
def test_a_label_added_to_a_trained_component_leaves_the_others_as_they_were(
    ner, label_weight, tmp_path
):
    nlp = ner(mode="probe", label_weight=label_weight)
    trained(nlp)
    pipe = nlp.get_pipe("luke_ner")
    doc = Doc(nlp.vocab, words=ANNOTATED[0][0].split(" "))
    _, before = pipe.predict([doc])
    assert pipe.add_label("LOC") == 0
    assert pipe.add_label("EVENT") == 1
    _, after = pipe.predict([doc])
    kept = [0, 1, 2, 4]
    assert pipe.labels == ("LOC", "ORG", "PER", "EVENT")
    if label_weight is None:
        assert np.allclose(after.logits[:, kept], before.logits, atol=1e-6)
    else:  # the probabilities of labels sum to that of an entity
        changes = np.log(probabilities(after.logits)[:, kept] / probabilities(before.logits))
        assert np.allclose(changes[:, -1], 0.0, atol=1e-5)
        changes = changes[:, :-1]
        assert np.allclose(changes, changes[:, :1], atol=1e-5) and (np.abs(changes) < 0.05).all()
    nlp.to_disk(tmp_path)
    assert spacy.load(tmp_path).get_pipe("luke_ner").labels == pipe.labels
    party = [("Ada Lovelace opened Worldcon in Kyoto .", [(0, 2, "PER"), (3, 4, "EVENT")])]
    fit(nlp, make_examples(nlp, party), 60)
    assert (3, 4, "EVENT") in entities(nlp(Doc(nlp.vocab, words=party[0][0].split(" "))))


def test_nil_is_no_label(ner):
    with pytest.raises(ConfigError, match="NIL"):
        ner().get_pipe("luke_ner").add_label("NIL")


HOSTILE = {
    "empty": "",
    "white space": "  \n\t ",
    "one long token": "x" * 5000,
    "emoji and combining": "👩‍👩‍👧‍👦 née é́́́ \u200b\u200d 🇯🇵 Ã́",
    "right to left": "ولدت آدا في لندن. עדה נולדה בלונדון",
    "special pieces": "<mask> </s> [MASK] [CLS] <ent>",
    "control characters": "a\x00b \x07 \ufeff c",
}


@pytest.mark.parametrize(
    "mode,kind", [("two-stage", "bert_dir"), ("probe", "luke_dir"), ("full", "xlmr_dir")]
)
def test_hostile_text_is_processed_and_trained_on(mode, kind, request):
    nlp = make_ner(request.getfixturevalue(kind), mode=mode)
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    for text in HOSTILE.values():
        doc = nlp(text)
        assert doc.text == text
        assert np.isfinite(doc.spans["luke_ner"].attrs["scores"]).all()
        losses = nlp.update([Example(nlp.make_doc(text), doc), *examples], sgd=False)
        assert np.isfinite(losses["luke_ner"])


@pytest.mark.parametrize("mode", ["two-stage", "probe", "full"])
def test_a_document_of_20000_words_is_processed_to_its_end(ner, mode):
    n_words = 20_000
    nlp = ner(mode=mode)
    trained(nlp, steps=2)
    words = (ANNOTATED[0][0].split(" ") * 3000)[:n_words]
    doc = Doc(nlp.vocab, words=words, sent_starts=[i % 7 == 0 for i in range(n_words)])
    (_, spans, *_), scores = nlp.get_pipe("luke_ner").predict([doc])
    seen = scores.filtered if mode == "two-stage" else scores.rows
    assert np.isfinite(scores.logits).all()
    assert len(scores.rows) == (n_words if mode == "two-stage" else len(seen))
    assert sorted(seen.tolist()) == list(range(len(spans.dataXd)))


def test_any_registered_suggester_works_also_with_odd_spans(ner):
    @spacy.registry.misc("test_odd_suggester")
    def make():
        def suggest(docs, *, ops):
            rows = [[0, 0], [0, 2], [1, 3], [0, 2], [2, 99], [5, 6]]
            return spacy.pipeline.spancat.Ragged(
                ops.asarray2i(rows * len(docs)), ops.asarray1i([len(rows)] * len(docs))
            )

        return suggest

    nlp = ner(suggester={"@misc": "test_odd_suggester"})
    examples = make_examples(nlp, ANNOTATED[:1])
    nlp.initialize(lambda: examples)
    fit(nlp, examples, 40)
    doc = nlp(Doc(nlp.vocab, words=ANNOTATED[0][0].split(" ")))
    assert entities(doc) == ANNOTATED[0][1]
    pipe = nlp.get_pipe("luke_ner")
    spans = pipe.suggester([doc], ops=pipe.model.ops)
    scored = fits(pipe.model, SpanQuery([doc], spans))
    assert scored.tolist() == [False, True, True, True, False, True]


@pytest.mark.parametrize("mode", MODES)
def test_no_documents_have_no_entities(ner, mode):
    nlp = ner(mode=mode)
    trained(nlp, steps=1)
    pipe = nlp.get_pipe("luke_ner")
    pipe.set_annotations([], pipe.predict([]))
    assert list(nlp.pipe([])) == []


@pytest.mark.parametrize("mode", MODES)
def test_answers_do_not_depend_on_batches_order_or_saving(ner, mode, tmp_path):
    nlp = ner(mode=mode, layout="sentence" if mode == "full" else None)
    trained(nlp, steps=5)
    rng = np.random.default_rng(0)
    words = sorted({word for text, _ in ANNOTATED for word in text.split(" ")})
    texts = [rng.choice(words, size=rng.integers(1, 40)).tolist() for _ in range(70)]

    def logits(pipe, batch_size: int, order) -> dict[tuple[int, int, int], np.ndarray]:
        result = {}
        for at in range(0, len(order), batch_size):
            ids = order[at : at + batch_size]
            docs = [Doc(nlp.vocab, words=texts[i]) for i in ids]
            (_, spans, *_), scores = pipe.predict(docs)
            of_doc = np.repeat(ids, spans.lengths)
            for row, values in zip(scores.rows, scores.logits):
                start, end = spans.dataXd[row].tolist()
                result[int(of_doc[row]), start, end] = values
        return result

    pipe = nlp.get_pipe("luke_ner")
    expected = logits(pipe, 1, np.arange(70))
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path).get_pipe("luke_ner")
    variants = [
        logits(pipe, 3, np.arange(70)),
        logits(pipe, 16, rng.permutation(70)),
        logits(pipe, 64, rng.permutation(70)),
        logits(loaded, 16, np.arange(70)),
    ]
    for found in variants:
        assert found.keys() == expected.keys()
        worst = max(np.abs(found[key] - expected[key]).max() for key in expected)
        assert worst < 1e-5


def test_a_saved_pipeline_needs_neither_the_encoder_directory_nor_the_hub(
    make_checkpoint, tmp_path
):
    import shutil

    directory = make_checkpoint("luke")
    nlp = make_ner(directory)
    trained(nlp)
    nlp.to_disk(tmp_path / "model")
    shutil.rmtree(directory)
    loaded = spacy.load(tmp_path / "model")
    for text, spans in ANNOTATED:
        assert entities(loaded(Doc(loaded.vocab, words=text.split(" ")))) == spans


@pytest.mark.parametrize("way", ["bytes", "pickle", "docbin"])
def test_pipelines_and_documents_survive_serialisation(ner, way):
    import pickle

    nlp = ner()
    trained(nlp)
    text, spans = ANNOTATED[0]
    if way == "docbin":
        doc = nlp(Doc(nlp.vocab, words=text.split(" ")))
        data = DocBin(docs=[doc], store_user_data=True).to_bytes()
        back = next(DocBin().from_bytes(data).get_docs(nlp.vocab))
        assert np.allclose(
            back.spans["luke_ner"].attrs["scores"], doc.spans["luke_ner"].attrs["scores"]
        )
    else:
        other = (
            nlp.from_config(nlp.config).from_bytes(nlp.to_bytes())
            if way == "bytes"
            else pickle.loads(pickle.dumps(nlp))
        )
        back = other(Doc(other.vocab, words=text.split(" ")))
    assert entities(back) == spans


def test_add_pipe_needs_no_weights_and_says_so_when_used():
    nlp = spacy.blank("en")
    nlp.add_pipe("luke_ner")
    assert nlp.get_pipe_config("luke_ner")["model"]["mode"] == "two-stage"
    assert nlp.get_pipe_config("luke_ner")["model"]["encoder"]["name"] == "studio-ousia/luke-base"
    with pytest.raises(ConfigError, match=r"nlp\.initialize"):
        nlp("Ada Lovelace")


def test_a_published_span_classifier_brings_its_labels_and_head(make_checkpoint):
    names = {0: "NIL", 1: "MISC", 2: "PER", 3: "ORG"}
    directory = make_checkpoint(
        "luke", "LukeForEntitySpanClassification", id2label=names, num_labels=4
    )
    nlp = make_ner(directory, mode="full", label_weight=None)
    nlp.initialize()
    pipe = nlp.get_pipe("luke_ner")
    assert pipe.labels == ("MISC", "ORG", "PER")
    from safetensors.torch import load_file

    weight = load_file(directory / "model.safetensors")["classifier.weight"]
    ours = head_of(pipe.model).head.classifier.weight
    assert (ours.detach().cpu() == weight[[1, 3, 2, 0]]).all()


@pytest.mark.parametrize("mode", MODES)
def test_a_published_classifier_is_not_silently_asked_otherwise(make_checkpoint, caplog, mode):
    spacy.util.logger.propagate = True
    directory = make_checkpoint(
        "luke", "LukeForEntitySpanClassification", id2label={0: "NIL", 1: "PER"}, num_labels=2
    )
    make_ner(directory, mode=mode, label_weight=None).initialize()
    assert ("trained in mode full or markers" in caplog.text) == (mode != "full")
    with pytest.raises(ConfigError, match=r"\['PER'\].*Set label_weight of the model to null"):
        make_ner(directory, mode=mode, label_weight=3.0).initialize()


def test_a_published_ner_checkpoint_is_an_encoder_for_other_labels(make_checkpoint, caplog):
    directory = make_checkpoint(
        "luke", "LukeForEntitySpanClassification", id2label={0: "NIL", 1: "DRUG"}, num_labels=2
    )
    nlp = make_ner(directory)
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    assert nlp.get_pipe("luke_ner").labels == ("LOC", "ORG", "PER")
    assert "rows read" not in caplog.text and "trained in mode" not in caplog.text
    fit(nlp, examples, 2)


def test_a_small_window_needs_no_other_setting(ner):
    nlp = ner(encoder={"window": 64})
    trained(nlp, steps=1)
    pipe = nlp.get_pipe("luke_ner")
    query, scores = pipe.predict([Doc(nlp.vocab, words=["word"] * 300)])
    assert set(query.table[scores.filtered][:, 0].tolist()) == set(range(300))


@pytest.mark.parametrize(
    "config,message",
    [
        ({"mode": "fast"}, "mode"),
        ({"layout": "page"}, "layout"),
        ({"candidates_per_word": 0.0}, "candidates_per_word"),
        ({"label_weight": 0.0}, "label_weight"),
        ({"train_candidates_per_word": 0.0}, "train_candidates_per_word"),
        ({"filter_threshold": 1.0}, "filter_threshold"),
        ({"threshold": 2.0}, "threshold"),
        ({"encoder": {"overlap": 600, "window": 100}}, "overlap"),
        ({"encoder": {"window": -5}}, "window is -5"),
        ({"encoder": {"attention_dropout": 1.5}}, "attention_dropout is 1.5"),
        ({"encoder": {"attention_dropout": -0.1}}, "attention_dropout is -0.1"),
        ({"encoder": {"word_shape_dropout": 1.0}}, "word_shape_dropout is 1.0"),
        ({"encoder": {"layer_decay": -1.0}}, "layer_decay is -1.0"),
        ({"encoder": {"new_learn_rate_factor": -1.0}}, "new_learn_rate_factor"),
    ],
)
def test_a_setting_that_cannot_work_is_named(ner, config, message):
    with pytest.raises(ValueError, match=message):
        ner(**config)


def test_a_window_longer_than_the_network_holds_is_named(ner):
    nlp = ner(encoder={"window": 500})
    with pytest.raises(ConfigError, match="window is 500"):
        nlp.initialize(lambda: make_examples(nlp))


def test_two_forked_processes_give_the_same_entities_after_torch_ran_with_threads(ner, tmp_path):
    """In a process of its own, because a regression would hang for ever."""
    nlp = ner()
    trained(nlp)
    nlp.to_disk(tmp_path)
    code = f"""
import multiprocessing, spacy, torch
multiprocessing.set_start_method("fork")
torch.set_num_threads(2)
torch.ones(2000, 2000) @ torch.ones(2000, 2000)
nlp = spacy.load({str(tmp_path)!r})
texts = {[text for text, _ in ANNOTATED]!r} * 8
expected = [[ent.text for ent in doc.ents] for doc in nlp.pipe(texts)]
found = [[ent.text for ent in doc.ents] for doc in nlp.pipe(texts, n_process=2, batch_size=5)]
assert any(expected) and found == expected
"""
    environment = {k: v for k, v in os.environ.items() if k != "OMP_NUM_THREADS"}
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env=environment
    )
    assert result.returncode == 0, result.stderr


def test_training_goes_on_with_the_same_optimizer_after_a_label_was_added(ner):
    nlp = ner()
    examples = make_examples(nlp, ANNOTATED[:2])
    optimizer = nlp.initialize(lambda: examples)
    nlp.update(examples, sgd=optimizer)
    nlp.get_pipe("luke_ner").add_label("ORG")
    nlp.update(make_examples(nlp, ANNOTATED), sgd=optimizer)


@pytest.mark.parametrize("label", ["NIL", ""])
def test_labels_that_mean_no_entity_are_refused_at_initialisation_too(ner, label):
    nlp = ner()
    nlp.config["initialize"]["components"]["luke_ner"] = {"labels": ["LOC", label]}
    why = "cannot be a label.*rename it in the data" if label else "cannot be a label[.]"
    with pytest.raises(ConfigError, match=why):
        nlp.initialize()


def with_candidates(nlp, *spans):
    words, ents = ANNOTATED[0][0].split(" "), ANNOTATED[0][1]
    predicted, gold = (Doc(nlp.vocab, words=words) for _ in range(2))
    gold.set_ents([Span(gold, a, b, x) for a, b, x in ents], default="outside")
    predicted.spans["candidates"] = [Span(predicted, a, b, "X") for a, b in spans]
    return Example(predicted, gold)


def initialized(nlp, examples):
    nlp.initialize(lambda: examples)


@pytest.mark.parametrize("mode", MODES)
def test_candidates_that_are_suggested_twice_count_once(mode, ner):
    """As by spaCy's suggester of a spans group with two labels for the same tokens."""
    suggester = {"@misc": "spacy.preset_spans_suggester.v1", "spans_key": "candidates"}
    places = [(a, b) for a, b, _ in ANNOTATED[0][1]] + [(0, 3), (2, 3)]
    found = []
    for repeated in ((), (places[1], places[0], places[0])):
        nlp = ner(mode=mode, suggester=suggester, candidates_per_word=0.5, filter_threshold=0.0)
        batch = [with_candidates(nlp, *x) for x in ([places[0]], [*places, *repeated])]
        initialized(nlp, batch)
        losses = nlp.update(batch, sgd=False, losses={})
        query, scores = nlp.get_pipe("luke_ner").predict([eg.predicted for eg in batch])
        assert query.spans.lengths.tolist() == [1, len(places)]
        assert [tuple(x) for x in query.table.tolist()] == [places[0], *places]
        found.append((losses["luke_ner"], scores.rows.tolist(), scores.logits.tolist()))
    assert found[0][0] == pytest.approx(found[1][0])
    assert found[0][1] == found[1][1] and np.allclose(found[0][2], found[1][2], atol=1e-6)


@pytest.mark.parametrize("mode", ["two-stage", "probe"])
def test_texts_may_be_read_sentence_by_sentence_at_prediction_alone(mode, ner):
    text = "Ada Lovelace was born in London . Tokyo is the capital of Japan ."
    words, starts = text.split(" "), [0, 7]

    def make_docs(nlp):
        marks = [i in starts for i in range(len(words))]
        whole = Doc(nlp.vocab, words=words, sent_starts=marks)
        return whole, [whole[:7].as_doc(), whole[7:].as_doc()]

    def logits(nlp, docs):
        _, scores = nlp.get_pipe("luke_ner").predict(docs)
        return scores.logits

    found, losses = {}, {}
    for layout in (None, "sentence"):
        nlp = ner(mode=mode, predict_layout=layout, filter_threshold=0.0)
        nlp.initialize(lambda nlp=nlp: make_examples(nlp))
        whole, sentences = make_docs(nlp)
        found[layout] = logits(nlp, [whole]), logits(nlp, sentences)
        reference = whole.copy()
        reference.set_ents([Span(reference, 0, 2, "PER")])
        pipe = nlp.get_pipe("luke_ner")
        losses[layout] = pipe.update([Example(whole, reference)], sgd=None)["luke_ner"]
    whole, parts = found["sentence"]
    assert np.abs(whole - parts).max() < 1e-5
    assert np.abs(found[None][0] - whole).max() > 1e-3  # in a document the other one is seen
    assert losses[None] == pytest.approx(losses["sentence"])  # training is in documents


def test_spans_that_a_prediction_by_sentence_cannot_contain_do_not_fit(ner):
    for layout, expected in ((None, [True, True]), ("sentence", [True, False])):
        nlp = ner(predict_layout=layout)
        nlp.initialize(lambda nlp=nlp: make_examples(nlp))
        doc = Doc(
            nlp.vocab,
            words=["Ada", "sang", ".", "London", "sang", "."],
            sent_starts=[1, 0, 0, 1, 0, 0],
        )
        spans = Ragged(np.asarray([[0, 1], [2, 4]], dtype="i"), np.asarray([2], dtype="i"))
        assert fits(nlp.get_pipe("luke_ner").model, SpanQuery([doc], spans)).tolist() == expected
