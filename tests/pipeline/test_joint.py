"""Entities, relations and types on one shared encoder."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from thinc.api import SGD, Adam, fix_random_seed

from spacy_luke.errors import ConfigError
from spacy_luke.layers.task_layer import head_of
from spacy_luke.layers.transformer_data import WordStates
from tests.conftest import LANGUAGE
from tests.pipeline.conftest import fit, undecided
from tests.pipeline.relation_data import GOLD, annotate, found, make_examples, make_pipeline

LISTENER = {"@architectures": "spacy-luke.LukeListener.v1"}
TASKS = ("luke_ner", "luke_relation", "luke_entity_typing")


def make(directory: Path, tasks=TASKS, mode: str = "probe", **config: Any) -> Language:
    fix_random_seed(0)
    nlp = spacy.blank(LANGUAGE)
    nlp.add_pipe("luke", config={"model": {"name": str(directory)}})
    for name in tasks:
        model: dict[str, Any] = {"encoder": LISTENER}
        if name != "luke_ner":
            model["mode"] = mode
        nlp.add_pipe(name, config={"model": model, **config.get(name, {})})
    return nlp


def initialized(directory: Path, **config: Any) -> tuple[Language, list[Example]]:
    nlp = make(directory, **config)
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    return undecided(nlp), examples


def encoder(nlp: Language) -> Any:
    return nlp.get_pipe("luke").model.shims[0].module


def head(nlp: Language, name: str) -> Any:
    return head_of(nlp.get_pipe(name).model)


def weights(module: Any) -> np.ndarray:
    return np.concatenate([p.detach().cpu().numpy().ravel() for p in module.parameters()])


def gradients(module: Any) -> np.ndarray:
    return np.concatenate(
        [
            (np.zeros(p.shape) if p.grad is None else p.grad.cpu().numpy()).ravel()
            for p in module.parameters()
        ]
    )


def zero(nlp: Language) -> None:
    for module in (encoder(nlp), *(head(nlp, name) for name in TASKS)):
        for p in module.parameters():
            p.grad = None


def train(nlp: Language, examples: list[Example], sgd: Any, direct: bool, **settings: Any) -> None:
    """One step: nlp.update's own way, or that of spacy train."""
    nlp.update(examples, sgd=sgd if direct else False, **settings)
    if not direct:
        for name, component in nlp.pipeline:
            if name not in settings.get("exclude", ()):
                component.finish_update(sgd)


def answers(nlp: Language, entities: bool = True) -> list[tuple]:
    docs = nlp.pipe([eg.predicted for eg in make_examples(nlp, entities)])
    return [
        (
            [(ent.start, ent.end, ent.label_) for ent in doc.ents],
            [(r.head.start, r.tail.start, r.label, round(r.score, 4)) for r in doc._.relations],
            [{name: round(x, 4) for name, x in ent._.types.items()} for ent in doc.ents],
        )
        for doc in docs
    ]


# Learning and saving


def test_all_learn_together_and_one_copy_of_the_weights_is_saved(bert_dir, tmp_path):
    nlp, examples = initialized(bert_dir)
    fit(nlp, examples, 120)
    scores = nlp.evaluate(make_examples(nlp, entities=False))
    assert scores["ents_f"] == scores["rels_f"] == scores["types_micro_f"] == 1.0
    nlp.to_disk(tmp_path)
    sizes = {
        name: sum(path.stat().st_size for path in (tmp_path / name).rglob("*"))
        for name in ("luke", *TASKS)
    }
    assert all(sizes[name] < sizes["luke"] / 2 for name in TASKS)
    assert sizes["luke"] < 1.5 * 4 * len(weights(encoder(nlp)))
    assert answers(spacy.load(tmp_path)) == answers(nlp)
    other = nlp.from_config(nlp.config).from_bytes(nlp.to_bytes())
    assert answers(other) == answers(nlp)


def test_averages_are_what_is_evaluated_and_saved_and_training_goes_on_without_them(
    bert_dir, tmp_path
):
    nlp, examples = initialized(bert_dir)
    optimizer = Adam(0.01, L2=0.0, use_averages=True)
    for _ in range(5):
        nlp.update(examples, sgd=optimizer, drop=0.0)
    last, shown = weights(encoder(nlp)), logits(nlp)
    with nlp.use_params(optimizer.averages):
        assert np.abs(weights(encoder(nlp)) - last).max() > 1e-3
        averaged = logits(nlp)
        assert np.abs(averaged - shown).max() > 1e-3
        nlp.to_disk(tmp_path)
    assert (weights(encoder(nlp)) == last).all() and (logits(nlp) == shown).all()
    assert np.abs(logits(spacy.load(tmp_path)) - averaged).max() < 1e-5


def logits(nlp: Language) -> np.ndarray:
    """Of a component that shares word passes with others."""
    list(nlp.pipe([eg.predicted for eg in make_examples(nlp)]))
    docs = [eg.predicted for eg in make_examples(nlp)]
    return nlp.get_pipe("luke_relation").predict(docs)[1].logits


@pytest.mark.parametrize("mode", ["probe", "markers"])
def test_gradients_of_all_add_up(bert_dir, mode):
    nlp, examples = initialized(bert_dir, mode=mode)

    def run(*kept: str) -> np.ndarray:
        zero(nlp)
        nlp.update(examples, sgd=False, exclude=[name for name in TASKS if name not in kept])
        return gradients(encoder(nlp))

    parts = [run(name) for name in TASKS]
    assert all(np.abs(part).max() > 1e-4 for part in parts)
    assert np.allclose(run(*TASKS), sum(parts), atol=1e-5)


def test_nlp_update_with_an_optimizer_steps_like_the_training_loop(bert_dir):
    results, rate = [], 0.05
    for direct in (True, False):
        nlp, examples = initialized(bert_dir)
        before = weights(encoder(nlp))
        nlp.update(examples, sgd=False)
        expected = before - rate * gradients(encoder(nlp))
        zero(nlp)
        # Clipping goes by parameter and is switched off, so that a step is a sum.
        sgd = SGD(rate, grad_clip=0.0, use_averages=False)
        for i in range(3):
            train(nlp, examples, sgd, direct)
            assert not gradients(encoder(nlp)).any()
            if i == 0:
                assert np.allclose(weights(encoder(nlp)), expected, atol=1e-6)
        results.append(weights(encoder(nlp)))
    assert np.allclose(*results, atol=1e-5)


def odd_batches(nlp: Language) -> dict[str, list[Example]]:
    bare = Doc(nlp.vocab, words=["She", "disagreed", "!"])
    negative = Doc(nlp.vocab, words=["Kyoto", "disagreed", "with", "London"])
    annotate(negative, [(0, 1, "LOC", []), (3, 4, "LOC", [])])
    lonely = Doc(nlp.vocab, words=["Kyoto", "!"])
    annotate(lonely, [(0, 1, "LOC", [])])
    annotate(bare, [])
    return {
        "no entity": [Example(bare.copy(), bare)],
        "one entity": [Example(lonely.copy(), lonely)],
        "all negative": [Example(negative.copy(), negative)],
    }


@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("kind", ["no entity", "one entity", "all negative"])
def test_a_batch_with_little_to_ask_does_not_starve_the_encoder(bert_dir, kind, direct):
    nlp, _ = initialized(bert_dir)
    before = weights(encoder(nlp))
    train(nlp, odd_batches(nlp)[kind], SGD(0.05, use_averages=False), direct)
    after = weights(encoder(nlp))  # luke_ner has learned from it
    assert np.isfinite(after).all() and np.abs(after - before).max() > 0
    assert not gradients(encoder(nlp)).any()


@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("kind", ["no entity", "one entity", "all negative"])
def test_a_step_that_is_owed_to_nobody_is_not_owed_later(bert_dir, kind, direct):
    nlp, examples = initialized(bert_dir, tasks=("luke_relation",))
    sgd = SGD(0.05, use_averages=False)
    before = weights(encoder(nlp))
    train(nlp, odd_batches(nlp)[kind], sgd, direct)
    asked = kind == "all negative"
    assert (np.abs(weights(encoder(nlp)) - before).max() > 0) == asked
    before = weights(encoder(nlp))
    train(nlp, examples, sgd, direct)
    assert np.abs(weights(encoder(nlp)) - before).max() > 0
    assert not gradients(encoder(nlp)).any()


@pytest.mark.parametrize("direct", [True, False])
def test_a_frozen_encoder_stays_equal_while_heads_learn(bert_dir, direct):
    nlp, examples = initialized(bert_dir)
    before = weights(encoder(nlp))
    heads = {name: weights(head(nlp, name)) for name in TASKS}
    for _ in range(2):
        train(nlp, examples, Adam(1e-2), direct, exclude=["luke"])
    assert np.array_equal(weights(encoder(nlp)), before)
    assert not gradients(encoder(nlp)).any()
    for name in TASKS:
        assert not np.array_equal(weights(head(nlp, name)), heads[name])


@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("absent", TASKS)
def test_the_others_go_on_without_a_disabled_component(bert_dir, absent, direct):
    nlp, examples = initialized(bert_dir)
    own = weights(head(nlp, absent))
    sgd = SGD(0.05, use_averages=False)
    with nlp.select_pipes(disable=[absent]):
        for _ in range(2):
            before = weights(encoder(nlp))
            train(nlp, examples, sgd, direct)
        assert np.abs(weights(encoder(nlp)) - before).max() > 0
        assert not gradients(encoder(nlp)).any()
    assert np.array_equal(weights(head(nlp, absent)), own)
    before = weights(encoder(nlp))
    train(nlp, examples, sgd, direct)
    assert np.abs(weights(encoder(nlp)) - before).max() > 0
    assert not np.array_equal(weights(head(nlp, absent)), own)
    steps_follow_their_batches(nlp, examples, sgd, direct)


def steps_follow_their_batches(nlp: Language, examples: list[Example], sgd: Any, direct: bool):
    """Whatever was left over is part of one step; after that each batch is its own."""
    train(nlp, examples, sgd, direct)
    for _ in range(2):
        before = weights(encoder(nlp))
        train(nlp, examples, sgd, direct)
        assert not gradients(encoder(nlp)).any()
        assert np.abs(weights(encoder(nlp)) - before).max() > 0


@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("failing", TASKS)
def test_a_batch_that_fails_does_not_shift_the_steps_after_it(bert_dir, failing, direct):
    nlp, examples = initialized(bert_dir)
    sgd = SGD(0.05, use_averages=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nlp.get_pipe(failing), "update", raising)
        with pytest.raises(ConfigError, match="broken"):
            train(nlp, examples, sgd, direct)
    steps_follow_their_batches(nlp, examples, sgd, direct)


def raising(*args: Any, **kwargs: Any) -> None:
    raise ConfigError("broken")


def test_gradients_that_were_added_up_do_not_shift_the_steps_after_them(bert_dir):
    nlp, examples = initialized(bert_dir)
    sgd = SGD(0.05, grad_clip=0.0, use_averages=False)
    before = weights(encoder(nlp))
    nlp.update(examples, sgd=False)
    assert np.array_equal(weights(encoder(nlp)), before)
    one = gradients(encoder(nlp))
    nlp.update(examples, sgd=sgd)
    assert np.allclose(weights(encoder(nlp)), before - 2 * 0.05 * one, atol=1e-6)
    steps_follow_their_batches(nlp, examples, sgd, direct=True)


# Moving between pipelines


@pytest.mark.parametrize("name", ["luke_relation", "luke_entity_typing"])
def test_replaced_listeners_own_an_equal_encoder(bert_dir, tmp_path, name):
    nlp, examples = initialized(bert_dir)
    fit(nlp, examples, 30)
    expected = answers(nlp)
    nlp.replace_listeners("luke", name, ["model.encoder"])
    assert name not in nlp.get_pipe("luke").listening_components
    assert answers(nlp) == expected
    nlp.to_disk(tmp_path)
    assert answers(spacy.load(tmp_path)) == expected
    own = nlp.get_pipe(name).model.layers[0].shims[0].module
    before = weights(own), weights(encoder(nlp))
    fit(nlp, examples, 1)
    after = weights(own), weights(encoder(nlp))
    assert all(np.abs(a - b).max() > 0 for a, b in zip(before, after))
    assert not np.allclose(after[0], after[1])


@pytest.mark.parametrize("factory", ["luke_relation", "luke_entity_typing"])
def test_a_component_with_its_own_encoder_can_be_sourced(bert_dir, tmp_path, factory):
    nlp = make_pipeline(factory, bert_dir, "probe")
    nlp.initialize(lambda: make_examples(nlp))
    fit(nlp, make_examples(nlp), 60)
    other = spacy.blank(LANGUAGE)
    other.add_pipe(factory, source=nlp)
    other.to_disk(tmp_path)
    for target in (other, spacy.load(tmp_path)):
        scores = target.evaluate(make_examples(target))
        assert scores == {**nlp.evaluate(make_examples(nlp)), "speed": scores["speed"]}


def test_components_can_be_sourced_with_their_encoder(bert_dir, tmp_path):
    nlp, examples = initialized(bert_dir)
    fit(nlp, examples, 30)
    other = spacy.blank(LANGUAGE)
    for name in nlp.pipe_names:
        other.add_pipe(name, source=nlp)
    assert answers(other) == answers(nlp)
    assert set(other.get_pipe("luke").listening_components) == set(TASKS)
    other.to_disk(tmp_path)
    assert answers(spacy.load(tmp_path)) == answers(nlp)


def test_a_component_can_be_added_to_a_trained_encoder(bert_dir, tmp_path):
    nlp, examples = initialized(bert_dir, tasks=("luke_ner",))
    fit(nlp, examples, 60)
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    loaded.add_pipe("luke_relation", config={"model": {"encoder": LISTENER}})
    examples = make_examples(loaded)
    with loaded.select_pipes(enable=["luke_relation"]):
        loaded.initialize(lambda: examples)
    before = weights(encoder(loaded))
    optimizer = Adam(1e-2, L2=0.0, use_averages=False)
    for _ in range(150):
        loaded.update(examples, sgd=optimizer, exclude=["luke", "luke_ner"], drop=0.0)
    assert np.array_equal(weights(encoder(loaded)), before)
    assert found(loaded) == GOLD


# Gold entities in training


def test_a_consumer_trains_on_predicted_entities_where_they_are_annotated(bert_dir):
    nlp, _ = initialized(bert_dir)
    examples = make_examples(nlp, entities=False)
    ner = [examples[0]] * 4
    for _ in range(40):
        nlp.update(ner, sgd=Adam(5e-3), exclude=["luke_relation", "luke_entity_typing"])
    seen = []
    for name in ("luke_relation", "luke_entity_typing"):
        pipe = nlp.get_pipe(name)
        make = pipe._query
        pipe._query = lambda docs, make=make: (
            seen.append([len(doc.ents) for doc in docs]) or make(docs)
        )
    losses: dict[str, float] = {}
    nlp.update(examples[:1], sgd=False, losses=losses)
    assert seen == [[0], [0]] and losses["luke_relation"] == losses["luke_entity_typing"] == 0.0
    nlp.update(examples[:1], sgd=False, losses=losses, annotates=["luke_ner"])
    assert seen[2:] == [[2], [2]]
    assert losses["luke_relation"] > 0 and losses["luke_entity_typing"] > 0
    assert [len(eg.predicted.ents) for eg in examples] == [0] * len(examples)


def test_gold_entities_reach_neither_entity_prediction_nor_the_words_served_to_others(bert_dir):
    pytest.importorskip("spacy_transformers", reason="stock listeners need spacy-transformers")
    nlp, examples = initialized(bert_dir)
    fit(nlp, examples, 20)
    nlp.get_pipe("luke").attention = "probe"
    words = [token.text for token in examples[3].reference]
    results = []
    for ents in ([], [(0, 1, "LOC")], [(1, 4, "PER"), (7, 8, "PER")]):
        doc = Doc(nlp.vocab, words=words)
        doc.set_ents([Span(doc, *ent) for ent in ents], default="outside")
        served = WordStates(nlp.get_pipe("luke").model, [doc], is_train=False).doc_data[0]
        tokens = nlp.get_pipe("luke")(doc)._.luke.token_vectors
        _, scores = nlp.get_pipe("luke_ner").predict([doc])
        ents = nlp.get_pipe("luke_ner")(doc).ents
        results.append(
            [
                np.asarray(served.model_output.last_hidden_state),
                tokens,
                scores.logits,
                np.asarray([(ent.start, ent.end, ent.label) for ent in ents]),
            ]
        )
    assert len(results[0][-1])
    for others in results[1:]:
        assert all(np.allclose(*pair, atol=1e-6) for pair in zip(results[0], others))


def test_predicted_entities_are_what_relations_and_types_are_evaluated_on(bert_dir):
    nlp, examples = initialized(bert_dir)
    assert nlp.evaluate(examples)["ents_f"] < 1.0  # untrained: preset entities score nothing
    fit(nlp, examples, 60)
    docs = list(nlp.pipe(nlp.make_doc(eg.reference.text) for eg in examples))
    relations = [relation for doc in docs for relation in doc._.relations]
    assert relations and any(ent._.types for doc in docs for ent in doc.ents)
    for relation in relations:
        ents = {(ent.start, ent.end) for ent in relation.head.doc.ents}
        assert {(side.start, side.end) for side in relation[:2]} <= ents
