"""Scores of candidates against the written sum."""

import pytest
import torch
import torch.nn.functional as F

from spacy_luke.model.candidate_head import NAME_SHARE, CandidateHead, MentionStates

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


def test_what_is_learned_counts_in_full_and_makes_the_rest_smaller():
    """Of names whose prior is known, too: learned parts of any length outweigh the words."""
    head, states, vectors, features = make()
    known, nobody = ENTITIES >= 0, torch.zeros(M, dtype=torch.bool)
    torch.nn.init.normal_(head.mask.weight, std=1e4)
    logits = head(states, vectors, nobody, ENTITIES, features, known)
    learned = F.normalize(head.mask(states.mask), dim=-1)
    expected = (learned @ vectors.T).gather(1, ENTITIES.clamp(min=0)) / TEMPERATURE
    expected = features[..., 0] + expected
    torch.testing.assert_close(logits[:, 1:][known], expected[known], atol=0.01, rtol=0)


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


def test_words_that_training_cancels_do_not_blow_up_what_names_lack():
    head, states, vectors, features = make()
    nobody = torch.zeros(M, dtype=torch.bool)
    states = states._replace(words=F.normalize(states.words, dim=-1))
    with torch.no_grad():
        head.words.weight.copy_(-0.999 * torch.eye(HIDDEN))
    logits = head(states, vectors, nobody, ENTITIES, 0 * features, ENTITIES >= 0).detach()
    assert float(logits.max()) <= 3 / TEMPERATURE  # a cosine, and at most 2 that it lacks


def test_gradients_are_finite_without_candidates():
    head, states, vectors, features = make()
    torch.nn.init.normal_(head.words.weight)
    states = MentionStates(*(x.requires_grad_() for x in states))
    logits = head(states, vectors.requires_grad_(), DESCRIBED, ENTITIES, features, ENTITIES >= 0)
    logits[logits > -torch.inf].sum().backward()
    grads = [x.grad for x in (*states, vectors, *head.parameters()) if x.grad is not None]
    assert len(grads) > 5 and all(torch.isfinite(x).all() for x in grads)
    none = head(states, vectors, DESCRIBED, ENTITIES[:, :0], features[:, :0], UNKNOWN[:, :0])
    assert none.shape == (N, 1)
