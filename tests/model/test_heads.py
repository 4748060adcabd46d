"""Heads on pieces: what they read, and labels apart from "no entity"."""

import pytest
import torch

from spacy_luke.model.heads import LinearHead, apart


@pytest.mark.parametrize("n_states", [3, 4])
def test_scores_on_pieces_are_those_of_the_states(n_states):
    torch.manual_seed(0)
    words, entities = torch.randn(9, 6), torch.randn(3, 6)
    first, last = torch.tensor([0, 2, 8]), torch.tensor([0, 6, 8])
    means = torch.stack([words[a : b + 1].mean(0) for a, b in zip(first, last)])
    states = [words[first], words[last], *([means] if n_states == 4 else []), entities]
    head = LinearHead(6, n_states, 5).eval()
    expected = head(torch.stack(states, 1))
    torch.testing.assert_close(head.on_pieces(words, first, last, entities), expected)


def test_a_mean_does_not_depend_on_the_pieces_before():
    """Sums over a long batch would round away what follows large states."""
    torch.manual_seed(0)
    words, entities = torch.randn(5, 6), torch.randn(1, 6)
    before = 1e5 * torch.ones(2000, 6)
    first, last = torch.tensor([1]), torch.tensor([3])
    head = LinearHead(6, 4, 3).eval()
    alone = head.on_pieces(words, first, last, entities)
    behind = head.on_pieces(torch.cat([before, words]), first + 2000, last + 2000, entities)
    torch.testing.assert_close(behind, alone, atol=1e-5, rtol=0)


def test_labels_and_no_entity_are_two_questions():
    probabilities = apart(torch.tensor([[2.0, 2.0, 0.0]]), 3.0).softmax(1)
    torch.testing.assert_close(probabilities, torch.tensor([[0.25, 0.25, 0.5]]))
    torch.manual_seed(0)
    logits = 4 * torch.randn(7, 5)
    log = apart(logits, 3.0).log_softmax(1)
    torch.testing.assert_close(log[:, -1].exp(), logits[:, -1].sigmoid())
    given_entity = log[:, :-1] - torch.logsumexp(log[:, :-1], 1, keepdim=True)
    torch.testing.assert_close(given_entity, logits[:, :-1].log_softmax(1))
    far = apart(torch.tensor([[1e4, -1e4, 1e4], [-1e4, -1e4, -1e4]]), 3.0)
    assert far.isfinite().all()
    assert apart(torch.zeros(2, 1), 3.0).shape == (2, 1)  # no label
    assert apart(torch.zeros(0, 3), 3.0).shape == (0, 3)


def test_of_two_entities_that_are_nearly_certain_one_is_better():
    """Their probabilities are equal in single precision."""
    scores = apart(torch.tensor([[9.0, -9.0, -17.0], [9.0, -9.0, -20.0], [0.5, 0.0, -0.2]]), 3.0)
    certain, better, open_ = scores[:, 0]
    assert better - certain > 0.05
    p = scores.softmax(1)[2, 0]
    torch.testing.assert_close(open_, torch.log(p / (1 - p)))


@pytest.mark.parametrize("gold", [1, 4])
def test_the_loss_of_labels_counts_as_often_as_is_said(gold):
    torch.manual_seed(0)
    logits = torch.randn(1, 5, requires_grad=True)
    (-apart(logits, 3.0)[0, gold]).backward()
    nil, labels = torch.sigmoid(logits[0, -1]), logits[0, :-1].softmax(0)
    expected = torch.zeros(5)
    expected[-1] = nil - float(gold == 4)
    if gold < 4:  # of a candidate that is no entity, the label is not asked
        expected[:-1] = 3 * labels
        expected[gold] -= 3
    torch.testing.assert_close(logits.grad[0], expected.detach())
