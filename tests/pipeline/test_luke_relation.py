"""Relations: what is asked, learned, written and kept."""

import logging
import pickle

import numpy as np
import pytest
import spacy
import torch
from spacy.tokens import Doc, Span
from spacy.training import Example
from thinc.api import ConfigValidationError, set_dropout_rate

from spacy_luke.errors import ConfigError
from tests.pipeline.conftest import fit, undecided
from tests.pipeline.relation_data import (
    GOLD,
    SENTENCES,
    annotate,
    found,
    make_examples,
    make_pipeline,
)

MODES = ("markers", "probe")


def make(directory, mode="probe", **config):
    return make_pipeline("luke_relation", directory, mode, **config)


@pytest.mark.parametrize("multi_label", [False, True])
@pytest.mark.parametrize("pair_order", ["both", "text"])
@pytest.mark.parametrize("mode", MODES)
def test_it_learns_relations_with_their_directions(
    bert_dir, tmp_path, mode, pair_order, multi_label
):
    nlp = make(
        bert_dir, mode, pair_order=pair_order, multi_label=multi_label, symmetric=["borders"]
    )
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    fit(nlp, examples, 60)
    assert found(nlp) == GOLD
    scores = nlp.evaluate(make_examples(nlp))
    assert scores["rels_f"] == scores["rels_macro_f"] == 1.0
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    assert found(loaded) == GOLD
    assert nlp.get_pipe("luke_relation").limits["gold"] == 5


@pytest.mark.parametrize("mode", MODES)
def test_results_do_not_depend_on_the_batch(bert_dir, mode):
    nlp = make(bert_dir, mode, threshold=0.0, pair_order="text")
    nlp.initialize(lambda: make_examples(nlp))
    undecided(nlp)
    docs = [eg.predicted for eg in make_examples(nlp)]

    def scores(size: int) -> list:
        fresh = [eg.predicted for eg in make_examples(nlp)]
        return [
            [(r.head.start, r.tail.start, r.label, r.score) for r in doc._.relations]
            for doc in nlp.pipe(fresh, batch_size=size)
        ]

    expected = scores(1)
    assert any(expected)
    for size in (2, 3, 64):
        for one, other in zip(expected, scores(size)):
            assert [x[:3] for x in one] == [x[:3] for x in other]
            assert np.allclose([x[3] for x in one], [x[3] for x in other], atol=1e-5)
    assert len(docs) == len(SENTENCES)


def test_gold_out_of_reach_is_counted_by_reason(bert_dir, caplog):
    nlp = make(
        bert_dir, candidates={"@misc": "spacy-luke.relation_candidates.v1", "max_distance": 3}
    )
    examples = make_examples(nlp)
    reference = examples[1].reference
    tokyo, japan = reference.ents
    reference._.relations = [
        (tokyo, japan, "located_in"),  # four words apart
        (reference[3:4], japan, "located_in"),  # a head that is no entity
    ]
    near = examples[3].reference
    near._.relations = [*near._.relations, (near.ents[0], near.ents[1], "meets")]
    with caplog.at_level(logging.INFO, logger="spacy.luke"):
        nlp.initialize(lambda: examples)
    limits = nlp.get_pipe("luke_relation").limits
    expected = {"gold": 7, "no entity": 1, "no candidate": 3, "second label": 1, "too long": 0}
    assert limits == expected
    lost = "of 7 gold relations 1 have a side that is not an entity, 3 are not a candidate"
    assert lost in caplog.text


def test_texts_that_differ_in_white_space_teach_the_same(bert_dir):
    nlp = make(bert_dir)
    nlp.initialize(lambda: make_examples(nlp))
    pipe = nlp.get_pipe("luke_relation")
    reference = make_examples(nlp)[0].reference
    spaced = Doc(nlp.vocab, words=["Ada", " ", "Lovelace", "was", "born", "in", " ", "London", "."])
    annotate(spaced, [(0, 3, "PER", []), (7, 8, "LOC", [])])
    targets = []
    for predicted in (reference.copy(), spaced):
        example = Example(predicted, reference)
        targets.append(pipe._targets([example], pipe._query([predicted]))[0])
    assert np.array_equal(*targets) and targets[0][:, :-1].sum() == 1


def test_training_without_entities_is_warned_of_and_changes_nothing(bert_dir, caplog):
    nlp = make(bert_dir)
    examples = make_examples(nlp, entities=False)
    nlp.initialize(lambda: examples)
    assert "no document of the data has entities" in caplog.text
    caplog.clear()
    losses = fit(nlp, examples, 3)
    assert losses["luke_relation"] == 0.0
    assert caplog.text.count("the first batch has no entity") == 1
    assert "PresetEntsCorpus" in caplog.text


def test_a_later_batch_may_have_no_entities(bert_dir, caplog):
    nlp = make(bert_dir)
    nlp.initialize(lambda: make_examples(nlp))
    fit(nlp, make_examples(nlp), 1)
    fit(nlp, make_examples(nlp, entities=False), 1)
    assert "the first batch" not in caplog.text


def test_batches_without_relations_or_pairs_are_no_trouble(bert_dir):
    nlp = make(bert_dir)
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    lonely = Doc(nlp.vocab, words=["Kyoto", "!"])
    annotate(lonely, [(0, 1, "LOC", [])])
    batches = [
        [examples[4]],  # two entities, no relation
        [examples[5]],  # no entity
        [Example(lonely, lonely.copy())],  # one entity
        [Example(nlp.make_doc(""), nlp.make_doc(""))],
        [Example(nlp.make_doc("  "), nlp.make_doc("  ")), examples[0]],
    ]
    for batch in batches:
        losses = fit(nlp, batch, 2)
        assert np.isfinite(losses["luke_relation"])
    assert nlp("")._.relations == () and nlp("Kyoto")._.relations == ()


def test_spans_of_a_group_may_overlap_and_repeat(bert_dir):
    nlp = make(bert_dir, spans_key="sc", threshold=0.0, pair_order="text")
    examples = make_examples(nlp)
    for eg in examples:
        for doc in (eg.predicted, eg.reference):
            doc.spans["sc"] = list(doc.ents)
    nlp.initialize(lambda: examples)
    undecided(nlp)
    doc = Doc(nlp.vocab, words=["Ada", "Lovelace", "was", "born", "in", "London"])
    spans = [(0, 2), (0, 1), (5, 6), (0, 2)]
    doc.spans["sc"] = [Span(doc, a, b, label="X") for a, b in spans]
    query = nlp.get_pipe("luke_relation")._query([doc])
    assert query.pairs.tolist() == [[0, 1], [0, 2], [1, 2]]
    nlp(doc)
    assert doc._.relations
    for relation in doc._.relations:
        assert (relation.head.start, relation.head.end) != (relation.tail.start, relation.tail.end)


@pytest.mark.parametrize("task", ["luke_relation", "luke_entity_typing"])
def test_labels_that_the_data_never_has_are_warned_of(bert_dir, caplog, task):
    nlp = make_pipeline(task, bert_dir, "probe")
    examples = make_examples(nlp)
    for eg in examples:
        eg.reference.user_data.clear()
    nlp.config["initialize"]["components"] = {task: {"labels": ["/place"]}}
    nlp.initialize(lambda: examples)
    layer = "relations" if task == "luke_relation" else "types"
    assert f"{task}: the data has no gold {layer} with its labels" in caplog.text
    caplog.clear()
    nlp.initialize()  # without data
    assert "has no gold" not in caplog.text
    nlp.initialize(lambda: examples)
    assert "store_user_data=True" in caplog.text
    caplog.clear()
    nlp.config["initialize"]["components"] = {}
    with pytest.raises(ConfigError, match="store_user_data=True"):
        make_pipeline(task, bert_dir, "probe").initialize(lambda: examples)


def test_gold_with_a_low_score_teaches_that_it_is_not_there(bert_dir):
    nlp = make(bert_dir)
    examples = make_examples(nlp)
    first = examples[0].reference
    ada, london = first.ents
    first._.relations = [(ada, london, "born_in"), (ada, london, "died_in", 0.0)]
    nlp.initialize(lambda: examples)
    pipe = nlp.get_pipe("luke_relation")
    assert "died_in" not in pipe.labels and pipe.limits["gold"] == 5


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
        pipe = nlp.get_pipe("luke_relation")
        module = pipe.model.layers[0].shims[0].module
        gradients[rows] = {
            name: p.grad.clone() for name, p in module.named_parameters() if p.grad is not None
        }
    assert gradients[30].keys() == gradients[8192].keys() and gradients[30]
    for name, gradient in gradients[8192].items():
        assert torch.allclose(gradient, gradients[30][name], atol=1e-6), name


@pytest.mark.parametrize("mode", MODES)
def test_a_long_document_loses_nothing_unseen(bert_dir, mode):
    words = (["Tokyo"] + ["is"] * 150) * 3 + ["Japan"]
    nlp = make(
        bert_dir,
        mode,
        threshold=0.0,
        pair_order="text",
        candidates={"@misc": "spacy-luke.relation_candidates.v1", "max_distance": None},
    )
    nlp.initialize(lambda: make_examples(nlp))
    undecided(nlp)
    doc = Doc(nlp.vocab, words=words)
    doc.ents = [Span(doc, 151 * i, 151 * i + 1, "LOC") for i in range(4)]
    pipe = nlp.get_pipe("luke_relation")
    query, scores = pipe.predict([doc])
    assert len(query.pairs) == 6
    # In separate windows entities still have states; one sequence holds no two of them.
    assert len(scores.rows) == (6 if mode == "probe" else 0)
    nlp(doc)
    assert np.isfinite(scores.logits).all()


@pytest.mark.parametrize("pair_order", ["both", "text"])
def test_labels_can_be_added_to_a_trained_component(bert_dir, pair_order):
    nlp = make(bert_dir, pair_order=pair_order, symmetric=["borders"])
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    fit(nlp, examples, 80)
    before = found(nlp)
    pipe = nlp.get_pipe("luke_relation")
    assert pipe.add_label("visited") == 1 and pipe.add_label("visited") == 0
    module = pipe.model.shims[0].module
    with torch.no_grad():
        for i, name in enumerate(pipe._classes()):
            if "visited" in name:
                module.classifier.weight[i] = -10.0 * module.classifier.weight[-1].abs()
                if module.classifier.bias is not None:
                    module.classifier.bias[i] = -20.0
    assert found(nlp) == before
    fit(nlp, examples, 1)


@pytest.mark.parametrize(
    "config,least",
    [
        ({}, 0.0),  # the most probable class counts, as published and in spaCy's textcat
        ({"multi_label": True}, 0.5),
        ({"multi_label": True, "threshold": 0.0}, 0.0),
        ({"threshold": 0.5}, 0.5),
    ],
)
def test_the_least_score_depends_on_how_many_relations_a_pair_may_have(
    bert_dir, tmp_path, config, least
):
    nlp = make(bert_dir, **config)
    nlp.initialize(lambda: make_examples(nlp))
    assert set(nlp.get_pipe("luke_relation")._confidence.least.tolist()) == {least}
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    assert set(loaded.get_pipe("luke_relation")._confidence.least.tolist()) == {least}
    # What was not given is not saved: a training from the saved config may have several labels.
    saved = loaded.config["components"]["luke_relation"]["threshold"]
    assert saved == config.get("threshold")


def test_improbable_relations_are_written_if_they_are_the_most_probable(bert_dir):
    nlp = make(bert_dir, pair_order="text")
    nlp.initialize(lambda: make_examples(nlp))
    undecided(nlp)
    docs = list(nlp.pipe([eg.predicted for eg in make_examples(nlp)]))
    scores = [relation.score for doc in docs for relation in doc._.relations]
    assert scores and max(scores) < 0.5


def test_a_label_that_is_not_known_is_named(bert_dir):
    nlp = make(bert_dir)
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples[:1])
    with pytest.raises(ConfigError, match="located_in"):
        nlp.update(examples, sgd=False)


@pytest.mark.parametrize(
    "config,name",
    [
        ({"pair_order": "sideways"}, "pair_order"),
        ({"threshold": 1.5}, "threshold"),
        ({"mode": "full"}, "mode"),
        ({"view": "page"}, "view"),
    ],
)
def test_a_setting_that_cannot_work_is_named(bert_dir, config, name):
    with pytest.raises((ConfigError, ConfigValidationError), match=name):
        make(bert_dir, config.pop("mode", "probe"), **config)


def test_a_pipeline_can_be_pickled(bert_dir):
    nlp = make(bert_dir, threshold=0.0, pair_order="text")
    nlp.initialize(lambda: make_examples(nlp))
    undecided(nlp)
    expected = found(nlp)
    assert any(expected) and found(pickle.loads(pickle.dumps(nlp))) == expected


def test_relations_reach_other_processes(bert_dir):
    nlp = make(bert_dir, threshold=0.0, pair_order="text")
    nlp.initialize(lambda: make_examples(nlp))
    undecided(nlp)

    def answers(**settings):
        docs = nlp.pipe([eg.predicted for eg in make_examples(nlp)], **settings)
        return [[(r.head.text, r.tail.text, r.label, r.score) for r in x._.relations] for x in docs]

    one, two = answers(), answers(n_process=2)
    assert [[x[:3] for x in doc] for doc in one] == [[x[:3] for x in doc] for doc in two]
    assert any(one) and np.allclose(
        [x[3] for doc in one for x in doc], [x[3] for doc in two for x in doc], atol=1e-6
    )


@pytest.mark.parametrize(
    "changed", [{"symmetric": ["borders"]}, {"pair_order": "both"}, {"multi_label": True}]
)
def test_settings_that_name_other_classes_than_were_learned_are_refused(bert_dir, changed):
    nlp = make(bert_dir, pair_order="text")
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    nlp.get_pipe("luke_relation").cfg.update(changed)
    for use in (lambda: found(nlp), lambda: nlp.update(examples, sgd=False)):
        with pytest.raises(ConfigError, match="cannot be changed after"):
            use()


@pytest.mark.parametrize("symmetric", [[], ["located_in"]])
def test_a_relation_that_no_window_holds_is_counted_once(bert_dir, symmetric):
    nlp = make(bert_dir, "markers", symmetric=symmetric, encoder={"window": 12, "overlap": 3})
    doc = Doc(nlp.vocab, words=["Tokyo", *["is"] * 20, "Japan"])
    ents = [(0, 1, "LOC", []), (21, 22, "LOC", [])]
    reference = annotate(doc.copy(), ents, [(0, 1, "located_in"), (1, 0, "borders")])
    short = Doc(nlp.vocab, words=["Tokyo", "Japan"])  # something to learn
    near = [(0, 1, "LOC", []), (1, 2, "LOC", [])]
    other = annotate(short.copy(), near, [(0, 1, "located_in")])
    examples = [Example(annotate(doc, ents), reference), Example(annotate(short, near), other)]
    nlp.initialize(lambda: examples)
    limits = nlp.get_pipe("luke_relation").limits
    expected = {"gold": 3, "no entity": 0, "no candidate": 0, "second label": 0, "too long": 2}
    assert limits == expected


def test_training_has_a_bounded_number_of_pairs_in_memory(bert_dir, monkeypatch):
    from spacy_luke.layers import pair_scorer

    gradients, saved = {}, {}
    for most in (1000, 10):
        monkeypatch.setattr(pair_scorer, "MAX_PAIRS", most)
        nlp = make(bert_dir)
        examples = make_examples(nlp)
        nlp.initialize(lambda examples=examples: examples)
        doc = Doc(nlp.vocab, words=["Tokyo", "met"] * 12)
        annotate(doc, [(2 * i, 2 * i + 1, "LOC", []) for i in range(12)], [(0, 1, "borders")])
        pipe = nlp.get_pipe("luke_relation")
        query = pipe._query([doc])
        sizes: list[int] = []
        with torch.autograd.graph.saved_tensors_hooks(
            lambda x, sizes=sizes: sizes.append(len(x) if x.ndim else 0) or x, lambda x: x
        ):
            set_dropout_rate(pipe.model, 0.0)
            scores, backprop = pipe.model.begin_update(query)
        backprop(scores)
        saved[most] = sizes.count(len(query.pairs))
        modules = (pipe.model.layers[0].shims[0].module, pipe.model.shims[0].module)
        gradients[most] = [
            p.grad for module in modules for p in module.parameters() if p.grad is not None
        ]
    assert saved[1000] and not saved[10]
    assert len(gradients[10]) == len(gradients[1000])
    for one, other in zip(gradients[10], gradients[1000]):
        assert torch.allclose(one, other, rtol=1e-3, atol=1e-5)


def test_gold_that_says_there_is_no_relation_is_none(bert_dir):
    nlp = make_pipeline("luke_relation", bert_dir, "probe")
    examples = make_examples(nlp)
    reference = examples[4].reference
    reference._.relations = [(*reference.ents, "no_relation")]
    nlp.initialize(lambda: examples)
    pipe = nlp.get_pipe("luke_relation")
    assert "no_relation" not in pipe.labels and pipe.limits["gold"] == 5
    fit(nlp, examples, 1)


def test_a_symmetric_label_that_no_relation_has_is_warned_of(bert_dir, caplog):
    nlp = make_pipeline("luke_relation", bert_dir, "probe", symmetric=["borders", "bodrers"])
    nlp.initialize(lambda: make_examples(nlp))
    assert "symmetric contains ['bodrers']" in caplog.text
