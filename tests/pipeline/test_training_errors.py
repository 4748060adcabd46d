"""A training that goes wrong says so at that step, before any weight is changed."""

from typing import Any

import numpy as np
import pytest
import torch
from spacy.util import registry
from thinc.api import SGD, Adam

from spacy_luke.errors import ConfigError, TrainingError
from spacy_luke.layers.architectures import LukeEncoder_v1
from tests.pipeline.conftest import make_examples, make_ner
from tests.pipeline.relation_data import make_examples as with_relations
from tests.pipeline.relation_data import make_pipeline
from tests.pipeline.test_joint import TASKS, encoder, gradients, head, initialized, weights


@pytest.fixture
def ner(bert_dir):
    nlp = make_ner(bert_dir)
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    return nlp, examples


def replaced_loss(pipe: Any, loss: float, value: float) -> Any:
    """A loss of that component, with one score's gradient replaced."""
    own = type(pipe)._loss

    def _loss(query: Any, scores: Any, targets: Any) -> tuple[float, Any]:
        _, d_scores = own(pipe, query, scores, targets)
        d_scores.logits[0, 0] = value
        return loss, d_scores

    return _loss


@pytest.mark.parametrize("loss", [float("nan"), float("inf")])
def test_a_loss_that_is_not_finite_names_component_and_update(ner, monkeypatch, loss):
    nlp, examples = ner
    pipe = nlp.get_pipe("luke_ner")
    nlp.update(examples, sgd=SGD(0.01))
    module, task = pipe.model.get_ref("network").layers[0].shims[0].module, pipe.model
    before = weights(module), weights(task.get_ref("network").shims[0].module)
    monkeypatch.setattr(pipe, "_loss", replaced_loss(pipe, loss, 0.0))
    with pytest.raises(TrainingError, match=r"luke_ner, update 2: the loss is (nan|inf)"):
        nlp.update(examples, sgd=SGD(0.01))
    after = weights(module), weights(task.get_ref("network").shims[0].module)
    assert all((x == y).all() for x, y in zip(before, after))


@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("name", TASKS)
def test_a_gradient_that_is_not_finite_changes_neither_component_nor_shared_encoder(
    bert_dir, monkeypatch, name, direct
):
    nlp, examples = initialized(bert_dir)
    pipe = nlp.get_pipe(name)
    monkeypatch.setattr(pipe, "_loss", replaced_loss(pipe, 1.0, float("nan")))
    shared, own = weights(encoder(nlp)), weights(head(nlp, name))
    sgd = SGD(0.05, use_averages=False)
    with pytest.raises(TrainingError, match=f"{name}, update 1: gradients of .* NaN or infinite"):
        nlp.update(examples, sgd=sgd if direct else False)
    assert (weights(encoder(nlp)) == shared).all() and (weights(head(nlp, name)) == own).all()
    assert not gradients(encoder(nlp)).any() and not gradients(head(nlp, name)).any()
    monkeypatch.undo()
    nlp.update(examples, sgd=sgd)  # goes on
    assert np.isfinite(weights(encoder(nlp))).all()
    assert (weights(encoder(nlp)) != shared).any()


def test_a_rate_that_is_too_high_for_an_encoder_is_limited_for_it_and_its_layers(bert_dir, caplog):
    """The limit of a tiny network is high; the setting makes it low."""

    def moved(rate: float, **settings: Any) -> tuple[float, float]:
        nlp = make_ner(bert_dir, encoder=settings)
        examples = make_examples(nlp)
        nlp.initialize(lambda: examples)
        network = nlp.get_pipe("luke_ner").model.get_ref("network")
        modules = network.layers[0].shims[0].module, network.shims[0].module
        before = [weights(module) for module in modules]
        optimizer = Adam(rate, L2=0.0)
        for _ in range(2):
            nlp.update(examples, sgd=optimizer)
        one, two = (np.abs(weights(x) - y).max() for x, y in zip(modules, before))
        return float(one), float(two)

    assert not caplog.messages
    limited = moved(1.0, max_learn_rate=0.001)
    assert all(0.0005 < x < 0.004 for x in limited)
    (message,) = (x for x in caplog.messages if "learning rate" in x)
    assert message.startswith("The learning rate 1 is too high for the encoder")
    assert "0.001 is used" in message
    assert np.allclose(limited, moved(0.001), rtol=0.01)
    assert all(x > 0.02 for x in moved(0.02, max_learn_rate=None))
    # The limit is of the encoder's own rate: with a factor, the optimizer's may be higher.
    caplog.clear()
    encoder, layers = moved(0.005, max_learn_rate=0.001, learn_rate_factor=0.2)
    assert 0.0005 < encoder < 0.004 and 0.005 < layers < 0.02
    assert not any("learning rate" in x for x in caplog.messages)
    assert moved(0.01, max_learn_rate=0.001, learn_rate_factor=0.2) == pytest.approx(
        (encoder, layers), rel=0.01
    )
    assert any("0.005 is used" in x for x in caplog.messages)
    # An encoder that is not trained limits nothing.
    caplog.clear()
    encoder, layers = moved(0.02, max_learn_rate=0.001, learn_rate_factor=0.0)
    assert encoder == 0.0 and layers > 0.02
    assert not any("learning rate" in x for x in caplog.messages)


def test_a_rate_that_stays_0_is_told(bert_dir, caplog):
    """nlp.update does not move a schedule that begins at 0, as those of the configs do."""
    nlp = make_ner(bert_dir)
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    caplog.clear()

    def update(optimizer, n, moves):
        for _ in range(n):
            nlp.update(examples, sgd=optimizer)
            if moves:
                optimizer.step_schedules()

    rate = registry.schedules.get("warmup_linear.v1")
    update(Adam(rate(1e-3, 5, 50)), 4, moves=True)
    assert not any("learning rate is 0" in x for x in caplog.messages)
    optimizer = Adam(rate(1e-3, 5, 50))
    before = weights(head(nlp, "luke_ner"))
    update(optimizer, 4, moves=False)
    assert (weights(head(nlp, "luke_ner")) == before).all()
    (message,) = (x for x in caplog.messages if "learning rate is 0 in two updates" in x)
    assert "optimizer.step_schedules()" in message
    optimizer.learn_rate = 1e-3
    update(optimizer, 2, moves=False)
    assert (weights(head(nlp, "luke_ner")) != before).any()


def test_the_limit_goes_by_the_size_of_the_network():
    settings = LukeEncoder_v1("x").attrs["settings"]

    class Config:
        def __init__(self, hidden_size: int, num_hidden_layers: int):
            self.hidden_size, self.num_hidden_layers = hidden_size, num_hidden_layers

    rates = [settings.highest_rate(Config(*size)) for size in ((384, 6), (768, 12), (1024, 24))]
    assert rates == pytest.approx([2e-4, 5e-5, 1.875e-5])
    assert LukeEncoder_v1("x", max_learn_rate=None).attrs["settings"].highest_rate(None) is None
    assert LukeEncoder_v1("x", max_learn_rate=0.1).attrs["settings"].highest_rate(None) == 0.1


@pytest.mark.parametrize("bad", [0, -1.0, "high"])
def test_a_limit_that_cannot_work(bad):
    with pytest.raises(ConfigError, match="max_learn_rate is"):
        LukeEncoder_v1("x", max_learn_rate=bad)


def test_a_training_that_cannot_learn_stops_at_initialize(bert_dir):
    ner = make_ner(bert_dir, max_pieces=1, suggester={
        "@misc": "spacy.ngram_range_suggester.v1", "min_size": 6, "max_size": 7
    })  # fmt: skip
    with pytest.raises(ConfigError, match=r"luke_ner: nothing can be learned.*unsuggested"):
        ner.initialize(lambda: make_examples(ner))
    nlp = make_pipeline(
        "luke_relation",
        bert_dir,
        "probe",
        candidates={
            "@misc": "spacy-luke.relation_candidates.v1",
            "max_distance": None,
            "label_pairs": [["VESSEL", "VESSEL"]],
        },
    )
    with pytest.raises(ConfigError, match=r"all 5 gold annotations .*out of reach \(5 no candid"):
        nlp.initialize(lambda: with_relations(nlp))


def test_a_gradient_of_a_stock_component_that_is_not_finite_changes_no_shared_weight(bert_dir):
    nlp, _ = initialized(bert_dir)
    luke, before = nlp.get_pipe("luke"), weights(encoder(nlp))

    class Broken:
        """Word states whose listeners have sent NaN."""

        has_gradient = True

        def backprop(self) -> None:
            for parameter in encoder(nlp).parameters():
                parameter.grad = torch.full_like(parameter, float("nan"))

    luke.upstream._word_states = Broken()
    with pytest.raises(TrainingError, match="A stock component on a shared encoder: gradients of"):
        luke.finish_update(SGD(0.05, use_averages=False))
    assert (weights(encoder(nlp)) == before).all() and not gradients(encoder(nlp)).any()


def test_the_limit_is_not_one_of_a_head_whose_encoder_does_not_learn(bert_dir):
    nlp, examples = initialized(bert_dir)
    nlp.get_pipe("luke").model.attrs["settings"].max_learn_rate = 1e-4
    nlp.get_pipe("luke").model.shims[0].prepared = False  # settings take effect
    moved = {}
    for kept in ([], ["luke"]):
        before = weights(head(nlp, "luke_ner"))
        nlp.update(examples, sgd=Adam(0.01, L2=0.0, use_averages=False), exclude=kept)
        moved[len(kept)] = np.abs(weights(head(nlp, "luke_ner")) - before).max()
    assert moved[0] < 2e-4 and moved[1] > 5e-3


@pytest.mark.parametrize("rate", [1.5, -0.1, float("nan")])
def test_a_wrong_dropout_rate_does_not_stay(bert_dir, rate):
    nlp = make_ner(bert_dir)
    nlp.add_pipe("luke", config={"model": {"name": str(bert_dir)}})
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    for name in nlp.pipe_names:
        with pytest.raises(ConfigError, match="drop is"):
            nlp.get_pipe(name).update(examples, drop=rate)
    nlp("Tokyo")
