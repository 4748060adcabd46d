import os
import pickle
from multiprocessing.reduction import ForkingPickler
from pathlib import Path

import pytest
import torch
from thinc.api import SGD, Adam, Optimizer

from spacy_luke.errors import ConfigError
from spacy_luke.layers.forking import make_forks_safe
from spacy_luke.layers.shim import Format, LearnRates, LukeShim


def _nothing(*args: object) -> bytes:
    return b""


def make_shim(rates: LearnRates) -> LukeShim:
    module = torch.nn.ModuleDict(
        {
            "embed": torch.nn.Embedding(3, 2),
            "layers": torch.nn.ModuleList([torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)]),
            "new": torch.nn.Linear(2, 2),
        }
    )
    for parameter in module.parameters():
        parameter.data.fill_(1.0)
        parameter.grad = torch.ones_like(parameter)
    shim = LukeShim(module, Format(_nothing, _nothing))  # type: ignore[arg-type]
    shim.rates = rates
    return shim


def steps(shim: LukeShim) -> dict[str, float]:
    assert shim.module is not None
    return {name: 1.0 - p.data.flatten()[0].item() for name, p in shim.module.named_parameters()}


def test_learning_rates_fall_from_layer_to_layer_and_new_parameters_have_their_own():
    shim = make_shim(LearnRates(2.0, 5.0, ("new.",), layer_decay=0.5, n_layers=2))
    shim.finish_update(SGD(0.01, L2=0.0, grad_clip=0.0, use_averages=False))
    moved = steps(shim)
    assert moved["layers.1.weight"] == pytest.approx(0.02, rel=1e-4)
    assert moved["layers.0.weight"] == pytest.approx(0.01, rel=1e-4)
    assert moved["embed.weight"] == pytest.approx(0.0025, rel=1e-4)
    assert moved["new.weight"] == pytest.approx(0.1, rel=1e-4)


@pytest.mark.parametrize("everything", [False, True])
def test_weight_decay_spares_biases_unless_told_otherwise(everything):
    shim = make_shim(LearnRates(decay_everything=everything))
    assert shim.module is not None
    for parameter in shim.module.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer = Adam(0.1, L2=0.5, use_averages=False)
    shim.finish_update(optimizer)
    moved = steps(shim)
    assert moved["layers.0.weight"] == pytest.approx(0.05, rel=1e-3)
    assert moved["layers.0.bias"] == pytest.approx(0.05 if everything else 0.0, abs=1e-6)
    assert optimizer.L2 == 0.5


def test_a_function_in_place_of_an_optimizer_is_refused_before_anything_changes():
    """``nlp.rehearse`` passes one, which collects gradients."""
    shim = make_shim(LearnRates())
    with pytest.raises(ConfigError, match=r"nlp.get_pipe\(NAME\).rehearse"):
        shim.finish_update(lambda key, weights, gradient: (weights, gradient))
    assert shim.module is not None and set(steps(shim).values()) == {0.0}
    assert {parameter.grad for parameter in shim.module.parameters()} == {None}


def test_gradients_are_gone_after_a_step_and_frozen_parameters_stay():
    shim = make_shim(LearnRates())
    assert shim.module is not None
    shim.module["embed"].weight.requires_grad_(False)
    shim.finish_update(SGD(0.01, L2=0.0, use_averages=False))
    assert steps(shim)["embed.weight"] == 0.0
    trainable = [p for p in shim.module.parameters() if p.requires_grad]
    assert all(p.grad is None for p in trainable)


def test_weight_decay_is_restored_after_a_failed_step():
    class Broken(Optimizer):
        def __call__(self, *args, **kwargs):
            if not self.L2:  # of a bias
                raise RuntimeError("out of memory")
            return super().__call__(*args, **kwargs)

    optimizer = Broken(0.1, L2=0.5)
    with pytest.raises(RuntimeError, match="out of memory"):
        make_shim(LearnRates()).finish_update(optimizer)
    assert optimizer.L2 == 0.5


def test_fork_hooks_are_registered_once_when_there_are_weights(monkeypatch):
    hooks = []
    monkeypatch.setattr(os, "register_at_fork", lambda **new: hooks.append(new))
    make_forks_safe.cache_clear()
    shim = LukeShim(None, Format(lambda m: b"x", lambda b: torch.nn.Linear(1, 1)))
    assert not hooks
    shim.from_bytes(b"weights")
    shim.set(torch.nn.Linear(1, 1))
    assert len(hooks) == 1
    make_forks_safe.cache_clear()
    pickle.loads(pickle.dumps(make_shim(LearnRates())))  # weights that came with a pipeline
    assert len(hooks) == 2
    make_forks_safe.cache_clear()  # those here were not registered


def test_weights_that_are_sent_to_another_process_are_a_copy():
    """torch makes the pickler of multiprocessing share the memory of tensors."""
    shim = make_shim(LearnRates())
    sent = ForkingPickler.dumps(shim)
    assert shim.module is not None
    assert not any(x.is_shared() for x in shim.module.parameters())
    copied = pickle.loads(sent)
    with torch.no_grad():
        copied.module["new"].weight.fill_(5.0)
    assert steps(shim)["new.weight"] == 0.0


def test_a_copy_has_its_own_identity_so_optimizer_moments_are_not_shared():
    shim = make_shim(LearnRates())
    assert shim.copy().id != shim.id


def test_a_shim_without_a_module_does_nothing():
    shim = LukeShim(None, Format(lambda m: b"x", lambda b: torch.nn.Linear(1, 1)))
    shim.finish_update(SGD(0.1))
    assert shim.to_bytes() == b""
    assert shim.from_bytes(b"").module is None


def test_steps_do_not_pile_up_memory():
    module = torch.nn.Linear(1000, 2000)
    shim = LukeShim(module, Format(lambda m: b"", lambda b: module))
    optimizer = Adam(0.001, use_averages=False)
    where = module.weight.data_ptr()

    def step() -> int:
        module.weight.grad = torch.ones_like(module.weight)
        shim.finish_update(optimizer)
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    if not Path("/proc/self/statm").exists():
        pytest.skip("resident memory is read from /proc")
    start = [step() for _ in range(5)][-1]
    grown = [step() for _ in range(25)][-1] - start
    assert grown < 5 * module.weight.numel() * 4
    assert module.weight.data_ptr() == where


def test_averages_of_an_optimizer_are_used_within_the_block_and_gone_after_it():
    shim = make_shim(LearnRates())
    assert shim.module is not None
    optimizer = SGD(0.5, L2=0.0, grad_clip=0.0, use_averages=True)
    for _ in range(3):
        for parameter in shim.module.parameters():
            parameter.grad = torch.ones_like(parameter)
        shim.finish_update(optimizer)
    last = {name: p.detach().clone() for name, p in shim.module.named_parameters()}
    averages = {name: optimizer.averages[shim.id, name] for name in last}
    assert all((averages[name] > last[name].numpy()).all() for name in last)
    with pytest.raises(KeyError, match="within"), shim.use_params(optimizer.averages):
        for name, parameter in shim.module.named_parameters():
            assert (parameter.detach().numpy() == averages[name]).all()
        raise KeyError("within")
    for name, parameter in shim.module.named_parameters():
        assert torch.equal(parameter, last[name])
    with shim.use_params({}):
        assert torch.equal(shim.module["new"].weight, last["new.weight"])
