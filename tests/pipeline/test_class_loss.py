"""The losses of classified items equal torch's, in value and gradient."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from thinc.api import NumpyOps

from spacy_luke.pipeline.class_loss import binary_loss, single_loss

OPS = NumpyOps()
SCALES = (0.1, 3.0, 200.0)
"""Of logits: nearly undecided, usual, and where exp of a float32 overflows."""


def draw(n: int, n_classes: int, scale: float) -> np.ndarray:
    return (np.random.default_rng(n).normal(size=(n, n_classes)) * scale).astype("float32")


def by_torch(logits: np.ndarray, loss) -> tuple[float, np.ndarray]:
    """Loss and gradient in double precision."""
    given = torch.from_numpy(logits).double().requires_grad_()
    value = loss(given)
    value.backward()
    assert given.grad is not None
    return value.item(), given.grad.numpy()


def same(found, expected) -> None:
    value, gradient = found
    assert value == pytest.approx(expected[0], rel=1e-5, abs=1e-6)
    assert gradient.dtype == np.float32 and gradient.shape == expected[1].shape
    assert np.abs(gradient - expected[1]).max() < 1e-6


@pytest.mark.parametrize("scale", SCALES)
def test_one_class_of_several(scale):
    logits = draw(7, 4, scale)
    classes = np.asarray([0, 3, 1, 1, 2, 0, 3])
    expected = by_torch(logits, lambda x: F.cross_entropy(x, torch.from_numpy(classes)))
    same(single_loss(OPS, logits, np.eye(4)[classes]), expected)


@pytest.mark.parametrize("scale", SCALES)
def test_any_number_of_classes(scale):
    logits = draw(7, 4, scale)
    targets = np.random.default_rng(0).integers(0, 2, size=(7, 4)).astype("float32")

    def expected(x: torch.Tensor) -> torch.Tensor:
        gold = torch.from_numpy(targets).double()
        return F.binary_cross_entropy_with_logits(x, gold, reduction="sum") / len(x)

    same(binary_loss(OPS, logits, targets), by_torch(logits, expected))


@pytest.mark.parametrize("loss", [single_loss, binary_loss])
def test_rows_left_out_have_no_gradient_and_do_not_dilute_the_mean(loss):
    logits, known = draw(6, 3, 2.0), np.asarray([True, False, True, True, False, False])
    targets = np.eye(3)[[0, 1, 2, 0, 1, 2]].astype("float32") * known[:, None]
    extra = (known,) if loss is binary_loss else ()
    value, gradient = loss(OPS, logits, targets, *extra)
    expected, of_known = loss(OPS, logits[known], targets[known])
    assert value == pytest.approx(expected, rel=1e-6)
    assert np.allclose(gradient[known], of_known, atol=1e-7)
    assert not gradient[~known].any()


def test_an_item_known_to_have_no_class_is_an_item():
    logits, nothing = draw(2, 3, 1.0), np.zeros((2, 3), dtype="float32")
    value, gradient = binary_loss(OPS, logits, nothing, np.asarray([True, False]))
    assert value > 0 and (gradient[0] > 0).all() and not gradient[1].any()


@pytest.mark.parametrize("n", [0, 3])
@pytest.mark.parametrize("loss", [single_loss, binary_loss])
def test_nothing_to_learn_from_is_a_loss_of_zero(loss, n):
    logits = draw(n, 4, 1.0)
    extra = (np.zeros(n, dtype=bool),) if loss is binary_loss else ()
    value, gradient = loss(OPS, logits, np.zeros((n, 4), dtype="float32"), *extra)
    assert value == 0.0 and gradient.shape == (n, 4) and not gradient.any()


@pytest.mark.parametrize("loss", [single_loss, binary_loss])
def test_a_component_without_classes_has_no_loss(loss):
    value, gradient = loss(OPS, np.zeros((0, 0), dtype="float32"), np.zeros((0, 0)))
    assert value == 0.0 and gradient.shape == (0, 0)


@pytest.mark.parametrize("loss", [single_loss, binary_loss])
def test_certainty_in_the_right_and_in_the_wrong_class_is_finite(loss):
    logits = np.asarray([[1e4, -1e4], [-1e4, 1e4]], dtype="float32")
    targets = np.asarray([[1, 0], [1, 0]], dtype="float32")
    value, gradient = loss(OPS, logits, targets)
    assert np.isfinite(value) and value >= 1e4
    assert np.isfinite(gradient).all()
    assert np.abs(gradient[0]).max() < 1e-6 and gradient[1].tolist() == pytest.approx([-0.5, 0.5])
