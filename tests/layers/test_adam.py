"""The step for all parameters at once changes them as Thinc's Adam does one by one."""

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
import torch
from thinc.api import SGD, Adam, Optimizer, RAdam

from spacy_luke.layers import adam, shim
from spacy_luke.layers.adam import Change
from spacy_luke.layers.shim import Format, LearnRates, LukeShim

STEPS = 12


def make_shim() -> LukeShim:
    torch.manual_seed(0)
    module = torch.nn.ModuleDict(
        {
            "embed": torch.nn.Embedding(9, 4),
            "layers": torch.nn.ModuleList([torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)]),
            "scale": torch.nn.ParameterDict({"one": torch.nn.Parameter(torch.tensor([0.5]))}),
        }
    )
    result = LukeShim(module, Format(lambda m: b"", lambda b: module))
    result.rates = LearnRates(1.0, 5.0, ("scale.",), layer_decay=0.5, n_layers=2)
    return result


def train(taken: LukeShim, optimizer: Optimizer) -> dict[str, np.ndarray]:
    """Gradients of several sizes, some parameters without one; what is left of it."""
    assert taken.module is not None
    random = torch.Generator().manual_seed(1)
    for step in range(STEPS):
        for i, parameter in enumerate(taken.module.parameters()):
            gradient = torch.randn(parameter.shape, generator=random) * 3.0 ** (i - 2)
            parameter.grad = gradient if (step + i) % 3 else None
        taken.finish_update(optimizer)
        optimizer.step_schedules()
        assert all(x.grad is None for x in taken.module.parameters())
    found = {name: x.detach().numpy() for name, x in taken.module.named_parameters()}
    for what in ("mom1", "mom2", "averages"):
        arrays = getattr(optimizer, what) or {}
        found |= {f"{what} {name}": np.asarray(array) for (_, name), array in arrays.items()}
    return found


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Take this step also on the CPU, with at most so many numbers together."""

    def use(most: int) -> None:
        monkeypatch.setattr(shim, "applies", lambda optimizer, changes: True)
        monkeypatch.setattr(adam, "_MOST_NUMBERS", most)

    return use


@pytest.mark.parametrize("most", [1 << 26, 20])
@pytest.mark.parametrize(
    ("L2", "weight_decay", "clip", "averages"),
    list(product([0.0, 0.1], [False, True], [0.0, 1.0], [False, True])),
)
def test_all_at_once_is_one_by_one(
    at_once: Callable[[int], None],
    L2: float,
    weight_decay: bool,
    clip: float,
    averages: bool,
    most: int,
) -> None:
    def optimizer() -> Optimizer:
        return Adam(
            [0.1, 0.03, 0.01],
            L2=L2,
            L2_is_weight_decay=weight_decay,
            grad_clip=clip,
            use_averages=averages,
        )

    expected = train(make_shim(), optimizer())
    at_once(most)
    found = train(make_shim(), optimizer())
    assert found.keys() == expected.keys() and len(found) == 6 * (4 if averages else 3)
    for name, values in expected.items():
        assert found[name].shape == values.shape, name
        np.testing.assert_allclose(found[name], values, rtol=2e-5, atol=2e-6, err_msg=name)


def test_averages_can_be_used(at_once: Callable[[int], None]) -> None:
    at_once(1 << 26)
    taken, optimizer = make_shim(), Adam(0.1)
    train(taken, optimizer)
    assert taken.module is not None and optimizer.averages
    weights = taken.module["embed"].weight
    before = weights.detach().clone()
    with taken.use_params(optimizer.averages):
        average = optimizer.averages[taken.id, "embed.weight"]
        np.testing.assert_array_equal(weights.detach().numpy(), np.asarray(average))
    assert torch.equal(weights, before) and not np.array_equal(before.numpy(), np.asarray(average))


def test_it_is_for_thincs_adam_on_a_gpu() -> None:
    class OnGPU:
        is_cuda = True

    class Own(Optimizer):
        pass

    def changes(*parameters: object) -> list[Change]:
        return [Change((1, "x"), parameter, 1.0, 0.0) for parameter in parameters]  # type: ignore[arg-type]

    there, here = OnGPU(), torch.zeros(1)
    assert adam.applies(Adam(0.1), changes(there, there))
    assert not adam.applies(Adam(0.1), changes(there, here))
    assert not adam.applies(RAdam(0.1), changes(there))
    assert not adam.applies(SGD(0.1), changes(there))
    assert not adam.applies(Own(0.1, L2=0.0), changes(there))
