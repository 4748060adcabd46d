"""Entity types: what is asked, written and kept."""

import logging

import numpy as np
import pytest
import spacy
import torch
from spacy.cli.find_threshold import find_threshold
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example
from thinc.api import ConfigValidationError

from spacy_luke.annotations.types import get_types
from spacy_luke.errors import ConfigError
from spacy_luke.pipeline import entity_task
from tests.pipeline.conftest import fit
from tests.pipeline.relation_data import annotate, make_examples
from tests.pipeline.typing_data import GOLD, MODES, PATHS, make, one_type_each, scores_of, types_of

# Prediction


@pytest.mark.parametrize("view", ["document", "sentence"])
@pytest.mark.parametrize("mode", MODES)
def test_results_do_not_depend_on_the_batch(bert_dir, mode, view):
    nlp = make(bert_dir, mode, threshold=0.0, view=view, typed_markers=True)
    nlp.initialize(lambda: make_examples(nlp))
    expected = scores_of(nlp, 1)
    assert len(expected) == 12 and all(expected)
    for size in (2, 3, 64):
        for one, other in zip(expected, scores_of(nlp, size)):
            assert one.keys() == other.keys()
            assert np.allclose(list(one.values()), list(other.values()), atol=1e-5)


def test_a_group_that_no_component_writes_is_told_of_once(bert_dir, caplog):
    """As after the component that wrote it was renamed."""
    nlp = make(bert_dir, spans_key="mentions", threshold=0.0)
    examples = make_examples(nlp)
    for eg in examples:
        for doc in (eg.reference, eg.predicted):
            doc.spans["mentions"] = list(doc.ents)
    nlp.initialize(lambda: examples)
    pipe = nlp.get_pipe("luke_entity_typing")
    docs = [eg.predicted for eg in examples]
    with caplog.at_level(logging.WARNING):
        list(pipe.pipe(docs))
        bare = nlp.make_doc("Nobody .")
        bare.spans["mentions"] = []
        list(pipe.pipe([bare]))
        list(pipe.pipe([nlp.make_doc("")]))
        assert "spans_key" not in caplog.text
        for doc in docs:
            del doc.spans["mentions"]
        list(pipe.pipe(docs))
        list(pipe.pipe(docs))
    said = "luke_entity_typing.spans_key is 'mentions', and no document of a batch has such"
    assert caplog.text.count(said) == 1


def test_a_component_without_weights_is_named(bert_dir):
    nlp = make(bert_dir)
    with pytest.raises(ConfigError, match="^luke_entity_typing has no weights yet: call nlp.init"):
        nlp("Ada")


def test_the_threshold_can_be_changed_afterwards(bert_dir):
    nlp = make(bert_dir)
    nlp.initialize(lambda: make_examples(nlp))
    pipe = nlp.get_pipe("luke_entity_typing")
    sizes = []
    for threshold in (0.0, 0.5, 1.0):
        pipe.threshold = threshold
        sizes.append(sum(len(types) for doc in types_of(nlp) for types in doc))
    assert sizes[0] == 3 * 12 and sizes[0] > sizes[1] > sizes[2] == 0


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_spacy_finds_the_threshold_of_a_saved_pipeline(bert_dir, tmp_path):
    nlp = make(bert_dir)
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    fit(nlp, examples, 30)
    # Entities from a component before: spaCy's command reads documents without any.
    ruler = nlp.add_pipe("entity_ruler", before="luke_entity_typing")
    texts = {ent.text: ent.label_ for eg in examples for ent in eg.reference.ents}
    ruler.add_patterns([{"label": label, "pattern": text} for text, label in texts.items()])
    nlp.to_disk(tmp_path / "model")
    data = DocBin(docs=[eg.reference for eg in examples], store_user_data=True)
    data.to_disk(tmp_path / "dev.spacy")
    best, score, scores = find_threshold(
        str(tmp_path / "model"),
        tmp_path / "dev.spacy",
        "luke_entity_typing",
        "threshold",
        "types_micro_f",
        n_trials=5,
    )
    assert 0.0 < best < 1.0 and score > 0.8
    assert scores[1.0] == 0.0 and scores[0.0] < score


def test_a_single_type_counts_however_likely_it_is(bert_dir):
    nlp = make(bert_dir, multi_label=False, threshold=1.0)
    examples = one_type_each(nlp)
    nlp.initialize(lambda: examples)
    fit(nlp, examples, 40)
    doc = nlp(examples[0].predicted.copy())
    assert [len(ent._.types) for ent in doc.ents] == [1, 1]
    assert nlp.evaluate(examples)["types_micro_f"] == 1.0


def test_equal_chances_are_still_one_type(bert_dir):
    nlp = make(bert_dir, multi_label=False)
    nlp.initialize(lambda: one_type_each(nlp))
    head = nlp.get_pipe("luke_entity_typing").model.shims[0].module
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.zero_()
    assert {len(types) for doc in types_of(nlp) for types in doc} == {1}


@pytest.mark.parametrize("mode", MODES)
def test_documents_with_little_in_them(bert_dir, mode):
    nlp = make(bert_dir, mode, threshold=0.0)
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    lonely = Doc(nlp.vocab, words=["Kyoto", "!"])
    annotate(lonely, [(0, 1, "LOC", [])])
    batches = [
        [Example(lonely.copy(), lonely)],  # one entity, without types
        [examples[5]],  # no entity
        [Example(nlp.make_doc(""), nlp.make_doc(""))],
        [Example(nlp.make_doc("  "), nlp.make_doc("  ")), examples[0]],
    ]
    for batch in batches:
        assert np.isfinite(fit(nlp, batch, 2)["luke_entity_typing"])
    assert len(nlp("")) == 0 and nlp("Kyoto").ents == ()
    assert list(nlp.pipe([])) == []
    assert set(nlp(lonely.copy()).ents[0]._.types) == PATHS


@pytest.mark.parametrize("mode", MODES)
def test_an_entity_longer_than_a_window_is_asked_and_has_no_type_and_that_is_said(
    bert_dir, caplog, mode
):
    nlp = make(bert_dir, mode, threshold=0.0, encoder={"window": 20, "overlap": 5})
    nlp.initialize(lambda: make_examples(nlp))
    doc = Doc(nlp.vocab, words=["London"] * 60)
    doc.ents = [Span(doc, 0, 50, label="X"), Span(doc, 52, 54, label="Y")]
    for _ in range(2):
        nlp(doc)
        long, short = doc.ents
        assert get_types(long) is not None and long._.types == {} and set(short._.types) == PATHS
    assert caplog.text.count("1 of 2 rows are not scored") == 1


@pytest.mark.parametrize("mode", MODES)
def test_spans_of_a_group_may_overlap_and_repeat(bert_dir, mode):
    nlp = make(bert_dir, mode, spans_key="sc", threshold=0.0)
    examples = make_examples(nlp)
    for eg in examples:
        for doc in (eg.predicted, eg.reference):
            doc.spans["sc"] = list(doc.ents)
            doc.ents = []
    nlp.initialize(lambda: examples)
    assert nlp.get_pipe("luke_entity_typing").limits["gold"] == 12
    doc = Doc(nlp.vocab, words=["Ada", "Lovelace", "was", "born", "in", "London"])
    places = [(0, 2), (0, 1), (5, 6), (0, 2)]
    doc.spans["sc"] = [Span(doc, a, b, label="X") for a, b in places]
    query = nlp.get_pipe("luke_entity_typing")._query([doc])
    assert query.spans.table.tolist() == [[0, 1], [0, 2], [5, 6]]
    nlp(doc)
    first, inner, _, again = doc.spans["sc"]
    assert first._.types == again._.types and set(inner._.types) == PATHS
    assert first._.types != inner._.types
    assert nlp(Doc(nlp.vocab, words=["Ada"])).spans.get("sc") is None


@pytest.mark.parametrize("tokenization", ["tokens", "mentions"])
@pytest.mark.parametrize("mode", MODES)
def test_a_span_without_pieces_has_no_type(bert_dir, mode, tokenization):
    nlp = make(bert_dir, mode, threshold=0.0, encoder={"tokenization": tokenization})
    nlp.initialize(lambda: make_examples(nlp))
    doc = Doc(nlp.vocab, words=["London", " ", "\n"], spaces=[True, False, False])
    doc.ents = [Span(doc, i, i + 1, label="X") for i in range(3)]
    nlp(doc)
    assert [len(ent._.types) for ent in doc.ents] == [3, 0, 0]


@pytest.mark.parametrize("mode", MODES)
def test_gradients_do_not_depend_on_how_many_sequences_are_in_memory(bert_dir, monkeypatch, mode):
    from spacy_luke.layers import encoder_run

    gradients = {}
    for rows in (8192, 30):
        monkeypatch.setattr(encoder_run, "MAX_ROWS", rows)
        nlp = make(bert_dir, mode)
        examples = make_examples(nlp)
        nlp.initialize(lambda examples=examples: examples)
        nlp.update(examples, sgd=False, drop=0.0)
        pipe = nlp.get_pipe("luke_entity_typing")
        modules = (pipe.model.layers[0].shims[0].module, pipe.model.shims[0].module)
        gradients[rows] = [
            p.grad.clone() for module in modules for p in module.parameters() if p.grad is not None
        ]
    assert len(gradients[30]) == len(gradients[8192]) > 2
    for one, other in zip(gradients[8192], gradients[30]):
        assert torch.allclose(one, other, atol=1e-6)


# Labels and settings


@pytest.mark.parametrize("multi_label", [True, False])
def test_labels_can_be_added_to_a_trained_component(bert_dir, multi_label):
    nlp = make(bert_dir, multi_label=multi_label)
    examples = one_type_each(nlp)
    nlp.initialize(lambda: examples)
    fit(nlp, examples, 40)
    before = types_of(nlp)
    pipe = nlp.get_pipe("luke_entity_typing")
    assert pipe.add_label("/event") == 1 and pipe.add_label("/event") == 0
    assert types_of(nlp) == before  # the new one is improbable
    examples[1].reference.ents[0]._.types = {"/event": 1.0}
    assert np.isfinite(fit(nlp, examples, 2)["luke_entity_typing"])


def test_labels_may_be_given_at_initialisation(bert_dir):
    nlp = make(bert_dir)
    labels = sorted(PATHS | {"/never"})
    nlp.config["initialize"]["components"]["luke_entity_typing"] = {"labels": labels}
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    assert list(nlp.get_pipe("luke_entity_typing").labels) == labels
    fit(nlp, examples, 80)
    assert types_of(nlp) == GOLD
    assert nlp.evaluate(examples)["types_per_type"]["/never"]["f"] is None


@pytest.mark.parametrize("label", ["", None])
def test_a_label_must_be_a_name(bert_dir, label):
    with pytest.raises(ConfigError, match="cannot be a label"):
        make(bert_dir).get_pipe("luke_entity_typing").add_label(label)


@pytest.mark.parametrize(
    "config,name",
    [
        ({"threshold": -0.1}, "threshold"),
        ({"mode": "full"}, "mode"),
        ({"view": "page"}, "view"),
    ],
)
def test_a_setting_that_cannot_work_is_named(bert_dir, config, name):
    with pytest.raises((ConfigError, ConfigValidationError), match=name):
        make(bert_dir, config.pop("mode", "probe"), **config)


def test_the_model_must_be_an_entity_scorer(bert_dir):
    model = {"@architectures": "spacy-luke.PairScorer.v1"}
    encoder = {"@architectures": "spacy-luke.LukeEncoder.v1", "name": str(bert_dir)}
    with pytest.raises(ConfigError, match=r"must be spacy-luke\.EntityScorer\.v1"):
        spacy.blank("en").add_pipe(
            "luke_entity_typing", config={"model": {**model, "encoder": encoder}}
        )


# Travelling


def test_types_reach_other_processes(bert_dir):
    nlp = make(bert_dir, threshold=0.4)
    nlp.initialize(lambda: make_examples(nlp))
    one = types_of(nlp)
    assert one == types_of(nlp, n_process=2, batch_size=2) and any(map(any, one))


def test_types_survive_serialisation_of_documents(bert_dir):
    nlp = make(bert_dir, threshold=0.0)
    nlp.initialize(lambda: make_examples(nlp))
    docs = list(nlp.pipe([eg.predicted for eg in make_examples(nlp)]))
    data = DocBin(docs=docs, store_user_data=True).to_bytes()
    for doc, back in zip(docs, DocBin().from_bytes(data).get_docs(nlp.vocab)):
        assert [get_types(ent) for ent in back.ents] == [get_types(ent) for ent in doc.ents]
        assert all(ent._.types for ent in back.ents)


def test_texts_that_differ_in_white_space_teach_the_same(bert_dir):
    nlp = make(bert_dir)
    nlp.initialize(lambda: make_examples(nlp))
    pipe = nlp.get_pipe("luke_entity_typing")
    reference = make_examples(nlp)[0].reference
    spaced = Doc(nlp.vocab, words=["Ada", " ", "Lovelace", "was", "born", "in", " ", "London", "."])
    spaced.ents = [Span(spaced, 0, 3, "PER"), Span(spaced, 7, 8, "LOC")]
    (one, known), (other, also) = (
        pipe._targets([Example(x, reference)], pipe._query([x])) for x in (reference.copy(), spaced)
    )
    assert np.array_equal(one, other) and one.any(1).all()
    assert known.all() and also.all()
    limits = pipe._count_limits([Example(spaced, reference)])
    assert limits["gold"] == 2 and not limits["no entity"]


def test_a_large_batch_is_asked_about_in_groups_of_documents(bert_dir, monkeypatch):
    nlp = make(bert_dir)
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    pipe = nlp.get_pipe("luke_entity_typing")
    docs = [eg.predicted for eg in examples]
    _, whole = pipe.predict(docs)
    monkeypatch.setattr(entity_task, "MAX_WORDS", 10)
    _, parts = pipe.predict(docs)
    assert len(list(entity_task._groups([*map(len, docs)]))) > 2
    assert np.array_equal(whole.rows, parts.rows)
    assert np.allclose(whole.logits, parts.logits, atol=1e-5)
