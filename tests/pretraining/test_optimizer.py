"""AdamW without bias correction, and its schedule."""

import pytest
import torch

from spacy_luke.pretraining.optimizer import UncorrectedAdamW, linear_schedule, parameter_groups


def by_hand(weight, gradients, rate, betas, eps, decay):
    first = second = torch.zeros_like(weight)
    for gradient in gradients:
        weight = weight * (1 - rate * decay)
        first = betas[0] * first + (1 - betas[0]) * gradient
        second = betas[1] * second + (1 - betas[1]) * gradient**2
        weight = weight - rate * first / (second.sqrt() + eps)
    return weight


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_a_step_is_the_uncorrected_one(decay):
    torch.manual_seed(0)
    start = torch.randn(5, dtype=torch.float64)
    gradients = [torch.randn(5, dtype=torch.float64) for _ in range(4)]
    weight = torch.nn.Parameter(start.clone())
    optimizer = UncorrectedAdamW([weight], lr=0.01, betas=(0.9, 0.98), eps=1e-6, weight_decay=decay)
    for gradient in gradients:
        weight.grad = gradient
        optimizer.step()
    expected = by_hand(start, gradients, 0.01, (0.9, 0.98), 1e-6, decay)
    torch.testing.assert_close(weight.data, expected, atol=1e-12, rtol=0)
    assert optimizer.param_groups[0]["lr"] == 0.01


def test_its_state_can_be_gone_on_from():
    torch.manual_seed(0)
    gradients = [torch.randn(5) for _ in range(6)]

    def steps(weight, optimizer, part):
        for gradient in part:
            weight.grad = gradient.clone()
            optimizer.step()

    whole = torch.nn.Parameter(torch.ones(5))
    steps(whole, UncorrectedAdamW([whole], lr=0.1), gradients)
    half = torch.nn.Parameter(torch.ones(5))
    before = UncorrectedAdamW([half], lr=0.1)
    steps(half, before, gradients[:3])
    after = UncorrectedAdamW([half], lr=0.1)
    after.load_state_dict(before.state_dict())
    steps(half, after, gradients[3:])
    assert torch.equal(whole, half)


def test_a_rate_of_zero_changes_nothing():
    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = UncorrectedAdamW([weight], lr=0.0, weight_decay=0.1)
    weight.grad = torch.ones(3)
    optimizer.step()
    assert torch.equal(weight.data, torch.ones(3))


def test_biases_and_layer_norms_do_not_decay():
    module = torch.nn.Sequential(torch.nn.Linear(2, 2))
    module.add_module("norm", torch.nn.LayerNorm(2))
    decaying, plain = parameter_groups(module.named_parameters(), 0.01)
    assert [tuple(p.shape) for p in decaying["params"]] == [(2, 2)]
    assert len(plain["params"]) == 3 and plain["weight_decay"] == 0.0


def test_the_schedule_goes_up_and_down():
    factors = [linear_schedule(i, 10, 4) for i in range(11)]
    assert factors[:4] == [0.25, 0.5, 0.75, 1.0] and factors[4] == 1.0 and factors[10] == 0.0
    assert all(a > b for a, b in zip(factors[4:], factors[5:]))
