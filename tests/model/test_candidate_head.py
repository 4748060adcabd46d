"""Scores of candidates against the written sum."""

import pytest
import torch
import torch.nn.functional as F

from spacy_luke.model.candidate_head import (
    LEARNED_SCALE,
    NAME_SHARE,
    CandidateHead,
    MentionStates,
)

N, K, M, HIDDEN = 3, 4, 5, 8
TEMPERATURE = 0.05
ENTITIES = torch.tensor([[0, 1, 2, -1], [3, 4, 0, 1], [-1, -1, -1, -1]])
UNKNOWN = torch.zeros(N, K, dtype=torch.bool)
DESCRIBED = torch.tensor([True, False, False, True, False])


def make():
    torch.manual_seed(0)
    head = CandidateHead(HIDDEN, 1, TEMPERATURE, 0.0)
    head.initialize()
    head.eval()
    states = MentionStates(*(torch.randn(N, HIDDEN) for _ in range(3)))
    vectors = F.normalize(torch.randn(M, HIDDEN), dim=-1)
    return head, states, vectors, torch.randn(N, K, 1)


def test_untrained_scores_are_the_sum():
    """An entity without description has no cosine of the sentence."""
    head, states, vectors, features = make()
    logits = head(states, vectors, DESCRIBED, ENTITIES, features, UNKNOWN)
    words, sentence = (F.normalize(x, dim=-1) for x in (states.words, states.sentence))
    for i in range(N):
        assert logits[i, 0] == 0
        for j, x in enumerate(ENTITIES[i].tolist()):
            if x < 0:
                assert logits[i, 1 + j] == -torch.inf
                continue
            cosine = float(words[i] @ vectors[x])
            if DESCRIBED[x]:
                cosine += float(sentence[i] @ vectors[x])
            expected = float(features[i, j, 0]) + cosine / TEMPERATURE
            assert float(logits[i, 1 + j].detach()) == pytest.approx(expected, abs=1e-5)


def test_where_the_prior_of_a_mere_name_is_known_its_lag_counts_less():
    head, states, vectors, features = make()
    known = torch.tensor([[True, True, False, False], [True, False, True, False], [False] * 4])
    logits = head(states, vectors, DESCRIBED, ENTITIES, features, known)
    plain = head(states, vectors, DESCRIBED, ENTITIES, features, UNKNOWN)
    words = F.normalize(states.words, dim=-1)
    for i, own in enumerate(ENTITIES.tolist()[:2]):
        cosines = [float(words[i] @ vectors[x]) for x in own if x >= 0]
        for j, cosine in enumerate(cosines):
            gain = float((logits - plain)[i, 1 + j].detach())
            counts_less = known[i, j] and not DESCRIBED[own[j]]
            lag = max(cosines) - cosine if counts_less else 0.0
            assert gain == pytest.approx((1 - NAME_SHARE) * lag / TEMPERATURE, abs=1e-5)


def test_what_is_learned_is_a_term_of_its_own():
    """It is added to all candidates alike, whatever is known of them, and does not depend on the
    length of states."""
    head, states, vectors, features = make()
    known = torch.tensor([[True, True, False, False], [True, False, True, False], [False] * 4])
    before = head(states, vectors, DESCRIBED, ENTITIES, features, known)
    for layer in (head.words, head.sentence, head.mask):
        torch.nn.init.normal_(layer.weight)
    after = head(states, vectors, DESCRIBED, ENTITIES, features, known)
    unit = [F.normalize(x, dim=-1) for x in states]
    projected = head.words(unit[0]) + head.sentence(unit[1]) + head.mask(unit[2])
    expected = LEARNED_SCALE * (projected @ vectors.T).gather(1, ENTITIES.clamp(min=0))
    exists = ENTITIES >= 0
    torch.testing.assert_close((after - before)[:, 1:][exists], expected[exists])
    longer = MentionStates(*(3 * x for x in states))
    torch.testing.assert_close(
        head(longer, vectors, DESCRIBED, ENTITIES, features, known), after, rtol=0, atol=1e-4
    )


def test_the_little_that_one_update_teaches_does_not_outweigh_a_prior():
    """An update by Adam changes every weight by the learning rate, here that of an update in the
    middle of the warm-up of a hundred."""
    torch.manual_seed(0)
    hidden, learn_rate = 384, 0.001 / 10
    head = CandidateHead(hidden, 1, 0.03, 0.0).eval()
    head.initialize()
    states = MentionStates(*(torch.randn(2, hidden) for _ in range(3)))
    vectors = F.normalize(torch.randn(2, hidden), dim=-1)
    entities, features = torch.tensor([[0, 1]] * 2), torch.zeros(2, 2, 1)
    known = torch.ones(2, 2, dtype=torch.bool)
    before = head(states, vectors, ~known[0], entities, features, known)
    optimizer = torch.optim.Adam(head.parameters(), learn_rate)
    F.cross_entropy(before, torch.tensor([1, 1])).backward()
    optimizer.step()
    after = head(states, vectors, ~known[0], entities, features, known)
    change = (after - before)[:, 1] - (after - before)[:, 2]
    assert 0.01 < float(change.detach().abs().max()) < 0.5  # logits


def test_the_best_candidate_is_one_of_the_mention_s(monkeypatch):
    """Places without a candidate have the row of the first entity, which is nearest here."""
    head, states, vectors, features = make()
    entities = torch.tensor([[1, 2, -1, -1]] * N)
    vectors = torch.cat([F.normalize(states.words[:1], dim=-1), vectors[1:]])
    nobody = torch.zeros(M, dtype=torch.bool)
    logits = head(states, vectors, nobody, entities, features, entities >= 0)
    plain = head(states, vectors, nobody, entities, features, entities < -1)
    gains = (logits - plain)[0, 1:3].detach()
    assert float(gains.min()) == pytest.approx(0.0, abs=1e-5) and float(gains.max()) > 0.01


@pytest.mark.parametrize("described", [DESCRIBED, torch.zeros(M, dtype=torch.bool)])
@pytest.mark.parametrize("known", [ENTITIES >= 0, ~UNKNOWN])
def test_gradients_are_finite_without_candidates(known, described):
    """An update leaves candidates of mentions that teach nothing out, and not their priors."""
    head, states, vectors, features = make()
    torch.nn.init.normal_(head.words.weight)
    states = MentionStates(*(x.requires_grad_() for x in states))
    logits = head(states, vectors.requires_grad_(), described, ENTITIES, features, known)
    logits[logits > -torch.inf].sum().backward()
    grads = [x.grad for x in (*states, vectors, *head.parameters()) if x.grad is not None]
    assert len(grads) > 5 and all(torch.isfinite(x).all() for x in grads)
    none = head(states, vectors, DESCRIBED, ENTITIES[:, :0], features[:, :0], UNKNOWN[:, :0])
    assert none.shape == (N, 1)
