"""One encoder that several components hear: gradients, steps, copies."""

import json
import logging
from copy import deepcopy

import numpy as np
import pytest
import spacy
from spacy.lang.en import English
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import registry
from thinc.api import SGD, Adam, Config

from spacy_luke.errors import ConfigError
from spacy_luke.layers.architectures import LukeListener_v1
from spacy_luke.layers.task_layer import encoder_below, encoder_of, head_of
from tests.conftest import LANGUAGE
from tests.pipeline.conftest import (
    ANNOTATED,
    LISTENER,
    WORDS,
    fit,
    make_examples,
    parameters,
    shared,
)


def gradients(nlp: Language) -> np.ndarray:
    module = nlp.get_pipe("luke").model.shims[0].module
    return np.concatenate(
        [
            (np.zeros(p.shape) if p.grad is None else p.grad.cpu().numpy()).ravel()
            for p in module.parameters()
        ]
    )


def test_a_listener_learns_through_the_shared_encoder_and_is_saved_without_it(bert_dir, tmp_path):
    nlp, examples = shared(bert_dir)
    before = parameters(nlp)
    fit(nlp, examples, 60)
    assert np.abs(parameters(nlp) - before).max() > 0
    assert nlp.evaluate(examples)["ents_f"] == 1.0
    nlp.to_disk(tmp_path)
    assert (tmp_path / "ner0" / "model").stat().st_size < 100_000
    loaded = spacy.load(tmp_path)
    for text, spans in ANNOTATED:
        doc = loaded(Doc(loaded.vocab, words=text.split(" ")))
        assert [(e.start, e.end, e.label_) for e in doc.ents] == spans


def test_gradients_of_all_listeners_add_up(bert_dir):
    nlp, examples = shared(bert_dir, n_ner=2)

    def run(*exclude: str) -> np.ndarray:
        for p in nlp.get_pipe("luke").model.shims[0].module.parameters():
            p.grad = None
        nlp.update(examples, sgd=False, exclude=exclude)
        for name in ("ner0", "ner1"):
            for p in head_of(nlp.get_pipe(name).model).parameters():
                p.grad = None
        return gradients(nlp)

    both, first, second = run(), run("ner1"), run("ner0")
    assert np.abs(first).max() > 0 and not np.allclose(first, second)
    assert np.allclose(both, first + second, atol=1e-5)


def test_a_frozen_upstream_collects_no_gradients_while_its_listener_learns(bert_dir):
    nlp, examples = shared(bert_dir)
    before = parameters(nlp)
    head = head_of(nlp.get_pipe("ner0").model).head.classifier.weight
    start = head.detach().clone()
    for _ in range(3):
        nlp.update(examples, sgd=Adam(1e-2), exclude=["luke"])
    assert not gradients(nlp).any()
    assert np.array_equal(parameters(nlp), before)
    assert not np.array_equal(
        head_of(nlp.get_pipe("ner0").model).head.classifier.weight.detach(), start
    )


def test_nlp_update_with_an_optimizer_steps_like_the_training_loop(bert_dir):
    results = []
    for direct in (True, False):
        nlp, examples = shared(bert_dir, n_ner=2)
        sgd = SGD(0.05, use_averages=False)
        for pipe in ("ner0", "ner1"):  # equal heads in both runs
            for p in head_of(nlp.get_pipe(pipe).model).parameters():
                p.data.fill_(0.05)
        for _ in range(3):
            nlp.update(examples, sgd=sgd if direct else False)
            if not direct:
                for _, component in nlp.pipeline:
                    component.finish_update(sgd)
        assert not gradients(nlp).any()
        results.append(parameters(nlp))
    assert np.allclose(results[0], results[1], atol=1e-6)


def test_a_stock_tagger_trains_on_lukes_word_states(bert_dir, tmp_path):
    pytest.importorskip("spacy_transformers", reason="stock listeners need spacy-transformers")
    nlp, examples = shared(bert_dir, n_ner=1, tagger=True)
    before = parameters(nlp)
    fit(nlp, examples, 100)
    assert np.abs(parameters(nlp) - before).max() > 0
    scores = nlp.evaluate(examples)
    assert scores["tag_acc"] > 0.95 and scores["ents_f"] > 0.95
    nlp.to_disk(tmp_path)
    doc = spacy.load(tmp_path)(" ".join(WORDS))
    assert doc[0].tag_ == "NNP" and doc[2].tag_ == "X"
    assert doc._.trf_data.model_output.last_hidden_state.shape[-1] == 32
    for text in ("", "  ", "Tokyo"):
        assert nlp(text).text == text
    odd = [Example(nlp.make_doc(t), nlp.make_doc(t)) for t in ("", "  ")]
    nlp.update([*odd, *examples], sgd=False)


def test_replaced_listeners_own_an_equal_encoder(bert_dir, tmp_path):
    nlp, examples = shared(bert_dir)
    fit(nlp, examples, 40)
    doc = nlp(Doc(nlp.vocab, words=WORDS))
    nlp.replace_listeners("luke", "ner0", ["model.encoder"])
    assert not nlp.get_pipe("luke").listeners
    shims = [
        nlp.get_pipe("luke").model.shims[0],
        encoder_below(nlp.get_pipe("ner0").model).shims[0],
    ]
    assert shims[0].id != shims[1].id
    after = nlp(Doc(nlp.vocab, words=WORDS))
    assert np.allclose(
        doc.spans["ner0"].attrs["scores"], after.spans["ner0"].attrs["scores"], atol=1e-6
    )
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path, exclude=["luke"])
    assert [e.text for e in loaded(Doc(loaded.vocab, words=WORDS)).ents] == [
        e.text for e in doc.ents
    ]


def test_a_sourced_component_brings_its_upstream(bert_dir):
    nlp, examples = shared(bert_dir)
    fit(nlp, examples, 40)
    other = spacy.blank(LANGUAGE)
    other.add_pipe("luke", source=nlp)
    other.add_pipe("ner0", source=nlp)
    doc, expected = (n(Doc(n.vocab, words=WORDS)) for n in (other, nlp))
    assert [e.text for e in doc.ents] == [e.text for e in expected.ents]


def test_a_sourced_listener_that_changes_its_encoder_in_both_pipelines_is_told(bert_dir, caplog):
    nlp, _ = shared(bert_dir)
    other, _ = shared(bert_dir)
    assert "two pipelines" not in caplog.text
    other.add_pipe("ner0", name="sourced", source=nlp)
    assert "sourced is in two pipelines, and listens to one encoder" in caplog.text
    assert encoder_of(nlp.get_pipe("ner0").model) is encoder_of(other.get_pipe("ner0").model)
    caplog.clear()
    nlp.add_pipe("sentencizer")  # connects it again
    assert "ner0 is in two pipelines" in caplog.text
    assert encoder_of(nlp.get_pipe("ner0").model) is nlp.get_pipe("luke").model.shims[0].module
    caplog.clear()
    third = spacy.blank(LANGUAGE)
    third.add_pipe("luke", source=other)
    third.add_pipe("ner0", source=other)
    nlp.replace_listeners("luke", "ner0", ["model.encoder"])
    other.add_pipe("ner0", name="own", source=nlp)
    alone, _ = shared(bert_dir)
    before = alone.get_pipe("luke")
    alone.replace_pipe("luke", "luke")  # another encoder in the same pipeline
    assert alone.get_pipe("luke").listeners and alone.get_pipe("luke") is not before
    assert "two pipelines" not in caplog.text


def test_a_component_sourced_under_another_name_is_an_upstream_of_that_name(bert_dir, tmp_path):
    nlp, examples = shared(bert_dir)
    other = spacy.blank(LANGUAGE)
    other.add_pipe("luke", name="second", source=nlp)
    encoder = {**LISTENER, "upstream": "second"}
    other.add_pipe("luke_ner", config={"model": {"encoder": encoder}})
    other.initialize(lambda: make_examples(other))
    fit(other, make_examples(other), 2)
    other.to_disk(tmp_path)
    scores = []
    for nlp in (other, spacy.load(tmp_path)):
        pipe = nlp.get_pipe("luke_ner")
        scores.append(pipe.predict([nlp.get_pipe("second")(Doc(nlp.vocab, words=WORDS))])[1].logits)
    assert len(scores[0]) and np.array_equal(*scores)


def test_a_listener_without_upstream_says_what_is_missing():
    nlp = spacy.blank(LANGUAGE)
    nlp.add_pipe("luke_ner", config={"model": {"encoder": {**LISTENER, "upstream": "nowhere"}}})
    with pytest.raises(ConfigError, match="nowhere"):
        nlp.initialize(lambda: make_examples(nlp))


def test_a_listener_whose_upstream_was_removed_is_not_saved(bert_dir, tmp_path):
    nlp, _ = shared(bert_dir)
    nlp.remove_pipe("luke")
    with pytest.raises(ConfigError, match="ner0 listens to an upstream component"):
        nlp.to_disk(tmp_path)
    nlp.get_pipe("ner0").to_disk(tmp_path / "alone")  # a component alone may be
    assert (tmp_path / "alone" / "model").exists()


@pytest.mark.parametrize("upstream", ["*", "luke"])
def test_a_listener_is_not_loaded_without_its_upstream(bert_dir, tmp_path, upstream):
    nlp = spacy.blank(LANGUAGE)
    nlp.add_pipe("luke", config={"model": {"name": str(bert_dir)}})
    nlp.add_pipe("luke_ner", config={"model": {"encoder": {**LISTENER, "upstream": upstream}}})
    nlp.initialize(lambda: make_examples(nlp))
    nlp.to_disk(tmp_path)
    with pytest.raises(ConfigError, match="luke_ner listens to 'luke', which is not loaded"):
        spacy.load(tmp_path, exclude=["luke"])
    assert spacy.load(tmp_path, exclude=["luke", "luke_ner"]).pipe_names == []
    assert spacy.load(tmp_path, disable=["luke"])(" ".join(WORDS)).text


def test_a_listener_that_was_sourced_without_its_upstream_is_not_saved(bert_dir, tmp_path):
    nlp, _ = shared(bert_dir)
    other = spacy.blank(LANGUAGE)
    other.add_pipe("ner0", source=nlp)
    with pytest.raises(ConfigError, match="replace_listeners"):
        other.to_disk(tmp_path)
    nlp.replace_listeners("luke", "ner0", ["model.encoder"])
    nlp.remove_pipe("luke")
    nlp.to_disk(tmp_path)
    assert spacy.load(tmp_path)(" ".join(WORDS)).text


@pytest.mark.parametrize("upstream", ["*", "luke"])
def test_a_renamed_upstream_is_still_trained_and_saved_under_its_name(bert_dir, tmp_path, upstream):
    nlp = spacy.blank(LANGUAGE)
    nlp.add_pipe("luke", config={"model": {"name": str(bert_dir)}})
    nlp.add_pipe("luke_ner", config={"model": {"encoder": {**LISTENER, "upstream": upstream}}})
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    nlp.rename_pipe("luke", "encoder")
    before = nlp.get_pipe("encoder").model.shims[0].module.state_dict()
    before = {name: x.clone() for name, x in before.items()}
    fit(nlp, examples, 2)
    after = nlp.get_pipe("encoder").model.shims[0].module.state_dict()
    assert any(not x.equal(after[name]) for name, x in before.items())
    if upstream == "luke":
        with pytest.raises(ConfigError, match="model.encoder.upstream"):
            nlp.to_disk(tmp_path)
        nlp.get_pipe_config("luke_ner")["model"]["encoder"]["upstream"] = "encoder"
    nlp.to_disk(tmp_path)
    one, two = (n(Doc(n.vocab, words=WORDS)) for n in (nlp, spacy.load(tmp_path)))
    assert np.array_equal(*(doc.spans["luke_ner"].attrs["scores"] for doc in (one, two)))
    loaded = spacy.load(tmp_path)
    module = loaded.get_pipe("encoder").model.shims[0].module
    before = {name: x.clone() for name, x in module.state_dict().items()}
    fit(loaded, make_examples(loaded), 2)
    assert any(not x.equal(before[name]) for name, x in module.state_dict().items())
    config = {"components.luke_ner.model.encoder.upstream": "nix"}
    with pytest.raises(ConfigError, match="found no upstream component 'nix'"):
        spacy.load(tmp_path, config=config)("Ada")


@registry.architectures("spacy-luke.tests.OwnEncoder.v1")
def own_encoder(name: str):
    return registry.architectures.get("spacy-luke.LukeEncoder.v1")(name)


def test_upstreams_are_recognised_whatever_the_config_calls_them(bert_dir, tmp_path):
    config = f"""
[vars]
upstream = "luke"
encoder = {json.dumps(str(bert_dir))}

[nlp]
lang = "en"
pipeline = ["luke","luke_ner"]

[components]

[components.luke]
factory = "luke"

[components.luke.model]
@architectures = "spacy-luke.tests.OwnEncoder.v1"
name = ${{vars.encoder}}

[components.luke_ner]
factory = "luke_ner"

[components.luke_ner.model]
@architectures = "spacy-luke.SpanScorer.v1"

[components.luke_ner.model.encoder]
@architectures = "spacy-luke.LukeListener.v1"
upstream = ${{vars.upstream}}
"""
    nlp = English.from_config(Config().from_str(config, interpolate=False))
    nlp.initialize(lambda: make_examples(nlp))
    nlp.get_pipe("luke_ner").threshold = 0.3
    nlp.to_disk(tmp_path)
    assert "${vars.upstream}" in (tmp_path / "config.cfg").read_text("utf8")
    assert spacy.load(tmp_path).get_pipe("luke_ner").threshold == pytest.approx(0.3)


def test_an_empty_batch_leaves_nothing_owed(bert_dir):
    nlp, examples = shared(bert_dir)
    empty = [Example(nlp.make_doc(""), nlp.make_doc(""))]
    sgd = SGD(0.05, use_averages=False)
    nlp.update(empty, sgd=sgd)
    nlp.update(examples, sgd=sgd)
    assert not gradients(nlp).any()


def test_a_stock_component_may_listen_through_a_luke_listener_and_steps_in_time(bert_dir):
    nlp = spacy.blank(LANGUAGE)
    nlp.add_pipe("luke", config={"model": {"name": str(bert_dir)}})
    model = {"@architectures": "spacy.Tagger.v2", "tok2vec": LISTENER}
    nlp.add_pipe("tagger", config={"model": model})
    examples = make_examples(nlp)
    for eg in examples:
        for token in eg.reference:
            token.tag_ = "NNP" if token.is_title else "X"
    nlp.initialize(lambda: examples)
    sgd = SGD(0.05, use_averages=False)
    nlp.update(examples, sgd=sgd)  # the tagger's own output layer starts with zeros
    before = parameters(nlp)
    nlp.update(examples, sgd=sgd)
    assert np.abs(parameters(nlp) - before).max() > 0
    assert not gradients(nlp).any()


def test_an_excluded_listener_opens_no_door_to_a_frozen_encoder(bert_dir):
    nlp, examples = shared(bert_dir, n_ner=2)
    nlp.update(examples, sgd=False, exclude=["ner1"])
    for p in nlp.get_pipe("luke").model.shims[0].module.parameters():
        p.grad = None
    nlp.update(examples, sgd=False, exclude=["luke"])
    assert not gradients(nlp).any()


def test_an_excluded_listener_is_waited_for_once_only(bert_dir):
    nlp, examples = shared(bert_dir, n_ner=2)
    sgd = SGD(0.05, use_averages=False)
    for _ in range(2):
        before = parameters(nlp)
        nlp.update(examples, sgd=sgd, exclude=["ner1"])
    assert np.abs(parameters(nlp) - before).max() > 0
    assert not gradients(nlp).any()


def test_an_empty_last_micro_batch_does_not_hold_the_step_back(bert_dir):
    nlp, examples = shared(bert_dir)
    sgd = SGD(0.05, use_averages=False)
    before = parameters(nlp)
    nlp.update(examples, sgd=False)
    nlp.update([Example(nlp.make_doc(""), nlp.make_doc(""))], sgd=False)
    for _, component in nlp.pipeline:
        component.finish_update(sgd)
    assert np.abs(parameters(nlp) - before).max() > 0


def test_a_listener_belongs_to_the_last_upstream_before_it(bert_dir):
    nlp = spacy.blank(LANGUAGE)
    for name in ("first", "second"):
        nlp.add_pipe("luke", name=name, config={"model": {"name": str(bert_dir)}})
    nlp.add_pipe("luke_ner", config={"model": {"encoder": LISTENER}})
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    nlp.update(examples, sgd=False, exclude=["second"])
    for name in ("first", "second"):
        module = nlp.get_pipe(name).model.shims[0].module
        assert all(p.grad is None for p in module.parameters())
    nlp.update(examples, sgd=False)
    module = nlp.get_pipe("second").model.shims[0].module
    assert any(p.grad is not None for p in module.parameters())


def upstream_of(nlp):
    return encoder_below(nlp.get_pipe("luke_ner").model).attrs["link"].component


def with_two_encoders(directory, upstream="*"):
    """luke_ner behind two encoders, the second of which is initialised."""
    nlp = spacy.blank(LANGUAGE)
    for name in ("first", "second"):
        nlp.add_pipe("luke", name=name, config={"model": {"name": str(directory)}})
    nlp.get_pipe("second").initialize(lambda: (), nlp=nlp)
    nlp.add_pipe("luke_ner", config={"model": {"encoder": {**LISTENER, "upstream": upstream}}})
    return nlp


@pytest.mark.parametrize("upstream", ["*", "second"])
def test_a_listener_stays_with_its_encoder_while_that_is_disabled(bert_dir, tmp_path, upstream):
    """As frozen components are in the initialisation of spacy train. It would be trained on the
    first encoder, and loaded with the second."""
    nlp = with_two_encoders(bert_dir, upstream)
    with nlp.select_pipes(disable=["second"]):
        nlp.initialize(lambda: make_examples(nlp))
        assert upstream_of(nlp) == "second"
    assert upstream_of(nlp) == "second"
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path, disable=["second"])
    assert upstream_of(loaded) == "second"
    loaded.enable_pipe("second")
    assert upstream_of(loaded) == upstream_of(spacy.load(tmp_path)) == "second"
    if upstream == "*":
        with pytest.raises(ConfigError, match="luke_ner listens to 'second', .* not loaded"):
            spacy.load(tmp_path, exclude=["second"])
    assert "luke_ner" not in spacy.load(tmp_path, exclude=["second", "luke_ner"]).pipe_names


def while_loading(nlp, path):
    nlp.to_disk(path)
    nlp = spacy.load(path, disable=["ner0"])
    nlp.enable_pipe("ner0")
    return nlp


def while_another_is_added(nlp, path):
    with nlp.select_pipes(disable=["ner0", "tagger"]):
        nlp.add_pipe("merge_entities")
    return nlp


def while_its_encoder_is_renamed(nlp, path):
    with nlp.select_pipes(disable=["ner0", "tagger"]):
        nlp.rename_pipe("luke", "encoder")
    return nlp


@pytest.mark.parametrize(
    "while_disabled", [while_loading, while_another_is_added, while_its_encoder_is_renamed]
)
def test_a_listener_that_was_disabled_is_one_again(bert_dir, tmp_path, while_disabled):
    """It is trained, saved and replaced as if it had not been. So is a stock one."""
    nlp, _ = shared(bert_dir, tagger=True)
    nlp = while_disabled(nlp, tmp_path / "a")
    upstream = nlp.pipeline[0][1]
    assert set(upstream.listening_components) == {"tagger", "ner0"}
    before = [x.detach().clone() for x in upstream.model.shims[0].module.parameters()]
    with nlp.select_pipes(disable=["tagger"]):
        fit(nlp, make_examples(nlp), 2)
    after = upstream.model.shims[0].module.parameters()
    assert any((x != y).any() for x, y in zip(before, after))
    nlp.to_disk(tmp_path / "b")
    found = [ent.text for ent in spacy.load(tmp_path / "b")(Doc(nlp.vocab, words=WORDS)).ents]
    assert found == [ent.text for ent in nlp(Doc(nlp.vocab, words=WORDS)).ents]
    nlp.replace_listeners(nlp.pipe_names[0], "ner0", ["model.encoder"])
    assert encoder_of(nlp.get_pipe("ner0").model) is not upstream.model.shims[0].module


def test_a_copied_pipeline_keeps_its_listeners_and_another_one_has_its_own(bert_dir):
    nlp = with_two_encoders(bert_dir)
    nlp.initialize(lambda: make_examples(nlp))
    copied = deepcopy(nlp)
    with copied.select_pipes(disable=["second"]):
        copied.add_pipe("sentencizer")  # which connects all listeners again
        assert upstream_of(copied) == "second"
    link = encoder_below(copied.get_pipe("luke_ner").model).attrs["link"]
    assert link.encoder is copied.get_pipe("second").model
    # In a pipeline with the first encoder alone, the listener is that one's.
    other = spacy.blank(LANGUAGE)
    other.add_pipe("first", source=nlp)
    other.add_pipe("luke_ner", source=nlp)
    assert upstream_of(other) == "first"


def test_a_model_that_was_copied_without_its_upstream_says_so(bert_dir):
    """As ``nlp.resume_training`` copies models for ``nlp.rehearse``."""
    nlp, examples = shared(bert_dir)
    nlp.initialize(lambda: examples)
    pipe = nlp.get_pipe("ner0")
    copied = deepcopy(deepcopy(pipe.model))
    with pytest.raises(ConfigError, match="copied without its upstream.*nlp.replace_listeners"):
        encoder_of(copied)
    assert encoder_of(pipe.model) is not None
    nlp.replace_listeners("luke", "ner0", ["model.encoder"])
    assert encoder_of(deepcopy(nlp.get_pipe("ner0").model)) is not None


def test_listeners_of_another_architecture_are_saved(bert_dir, tmp_path):
    registry.architectures("test.OurListener.v1", func=our_listener)
    nlp, examples = shared(bert_dir, n_ner=0)
    tok2vec = {"@architectures": "test.OurListener.v1"}
    model = {"@architectures": "spacy.Tagger.v2", "tok2vec": tok2vec}
    nlp.add_pipe("tagger", config={"model": model})
    nlp.get_pipe("tagger").initialize(lambda: examples, nlp=nlp)
    nlp.to_disk(tmp_path)
    assert spacy.load(tmp_path).get_pipe("luke").listening_components == ["tagger"]


def our_listener():
    return LukeListener_v1("luke")


def test_a_listener_goes_to_the_encoder_before_if_its_own_is_removed(bert_dir, tmp_path):
    nlp = with_two_encoders(bert_dir)
    nlp.remove_pipe("second")
    nlp.initialize(lambda: make_examples(nlp))
    assert upstream_of(nlp) == "first"
    nlp.to_disk(tmp_path)
    assert upstream_of(spacy.load(tmp_path)) == "first"


def test_it_is_told_if_the_encoder_that_was_learned_on_is_removed(bert_dir, caplog):
    nlp = with_two_encoders(bert_dir)
    nlp.initialize(lambda: make_examples(nlp))
    with caplog.at_level(logging.WARNING):
        nlp.add_pipe("sentencizer")
        nlp.remove_pipe("first")
    assert "which was removed" not in caplog.text and upstream_of(nlp) == "second"
    nlp.add_pipe("luke", name="first", first=True, config={"model": {"name": str(bert_dir)}})
    with caplog.at_level(logging.WARNING):
        nlp.remove_pipe("second")
    assert "luke_ner has learned on the encoder of 'second', which was removed" in caplog.text
    assert upstream_of(nlp) == "first"


def test_an_encoder_between_that_is_disabled_is_not_in_the_way(bert_dir, tmp_path):
    nlp = with_two_encoders(bert_dir)
    nlp.add_pipe("luke", name="third", before="luke_ner", config={"model": {"name": str(bert_dir)}})
    with nlp.select_pipes(disable=["second"]):
        nlp.initialize(lambda: make_examples(nlp))
    nlp.to_disk(tmp_path)
    assert upstream_of(nlp) == upstream_of(spacy.load(tmp_path)) == "third"


def test_a_listener_with_another_encoder_than_it_would_be_loaded_with_is_not_saved(
    bert_dir, tmp_path
):
    nlp = with_two_encoders(bert_dir)
    nlp.initialize(lambda: make_examples(nlp))
    nlp.get_pipe("first").upstream.find(nlp.get_pipe("luke_ner"), "first", nlp.vocab)
    with pytest.raises(ConfigError, match="it would listen to 'second'"):
        nlp.to_disk(tmp_path)


def listening_tagger(nlp, pooling):
    tok2vec = {**LISTENER, "pooling": pooling}
    model = {"@architectures": "spacy.Tagger.v2", "tok2vec": tok2vec}
    nlp.add_pipe("tagger", config={"model": model})


def vectors(nlp, docs):
    """Of the words, as the tagger gets them."""
    return nlp.get_pipe("tagger").model.get_ref("tok2vec").predict(docs)


def test_a_listener_with_another_pooling_than_its_encoder_is_not_replaced(bert_dir, tmp_path):
    """The copied encoder would pool as its own block says, and the tagger get other vectors."""
    nlp, _ = shared(bert_dir)
    listening_tagger(nlp, "first")
    examples = make_examples(nlp)
    for eg in examples:
        for token in eg.reference:
            token.tag_ = "NNP" if token.is_title else "X"
    nlp.get_pipe("tagger").initialize(lambda: examples, nlp=nlp)
    docs = [eg.reference.copy() for eg in examples]
    before = vectors(nlp, docs)
    nlp.to_disk(tmp_path)
    with pytest.raises(ConfigError, match="pooling is 'first', and the encoder's 'mean'"):
        nlp.replace_listeners("luke", "tagger", ["model.tok2vec"])
    with pytest.raises(ConfigError, match="tagger listens to luke, and its config says otherwise"):
        nlp.to_disk(tmp_path / "broken")  # spaCy has changed the config
    pooled = spacy.load(tmp_path, config={"components.tagger.model.tok2vec.pooling": "mean"})
    other = vectors(pooled, docs)
    assert any(not np.allclose(x, y, atol=1e-3) for x, y in zip(before, other))
    loaded = spacy.load(tmp_path, config={"components.luke.model.pooling": "first"})
    loaded.replace_listeners("luke", "tagger", ["model.tok2vec"])
    loaded.replace_listeners("luke", "ner0", ["model.encoder"])  # pooling says nothing to it
    after = vectors(loaded, docs)
    assert all(np.allclose(x, y, atol=1e-5) for x, y in zip(before, after))


def test_checkpointing_bears_a_prediction_between_forward_and_backward(bert_dir):
    pytest.importorskip("spacy_transformers", reason="stock listeners need spacy-transformers")
    nlp, examples = shared(bert_dir, n_ner=0, tagger=True)
    nlp.get_pipe("luke").model.shims[0].module.network.gradient_checkpointing = True
    nlp.get_pipe("luke").eager = True
    for _ in range(2):
        nlp.update(examples, sgd=Adam(1e-3), drop=0.5, annotates=["luke"])


def test_a_stock_listener_cannot_be_replaced_and_says_what_can(bert_dir):
    pytest.importorskip("spacy_transformers", reason="stock listeners need spacy-transformers")
    nlp, _ = shared(bert_dir, tagger=True)
    with pytest.raises(ConfigError, match="LukeListener"):
        nlp.replace_listeners("luke", "tagger", ["model.tok2vec"])
