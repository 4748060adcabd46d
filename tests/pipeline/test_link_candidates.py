"""What candidates tell about a mention without its text."""

import pytest
import spacy
from spacy.tokens import Doc, Span

from spacy_luke.kb.knowledge_base import MappedKB
from spacy_luke.pipeline.link_candidates import LinkCandidate, candidate_arrays
from tests.kb.conftest import build
from tests.pipeline.linker_data import RECORDS

EQUAL, SIMILAR = 1.0, 0.9


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    path = tmp_path_factory.mktemp("kb") / "kb"
    build(path, RECORDS)
    return MappedKB.open(path, spacy.blank("en").vocab)


def prior_known(kb, *candidates, prior=True):
    doc = Doc(kb.vocab, words=["Tokyo"])
    own = [LinkCandidate(row, *values) for row, values in enumerate(candidates)]
    arrays = candidate_arrays(kb, [Span(doc, 0, 1)], [()], [own], prior, {})
    return arrays[2].tolist()[0]


@pytest.mark.parametrize(
    "candidates, known",
    [
        # Counted: also of one that was never meant.
        ([(0.6, EQUAL), (0.4, EQUAL), (0.0, EQUAL)], [True, True, True]),
        ([(0.6, EQUAL), (0.4, EQUAL), (1.0, SIMILAR)], [True, True, False]),
        # Nobody counted, or nothing is to be told apart.
        ([(0.5, EQUAL), (0.5, EQUAL), (1.0, SIMILAR)], [False, False, False]),
        ([(1.0, EQUAL), (1.0, SIMILAR)], [False, False]),
        # By its own name, or predicted: without a prior.
        ([(0.0, EQUAL), (0.5, SIMILAR)], [False, False]),
        ([(1.0, SIMILAR)], [False]),
    ],
)
def test_the_prior_is_known_of_counted_candidates_with_the_same_name(kb, candidates, known):
    assert prior_known(kb, *candidates) == known


def test_a_prior_that_is_not_used_is_not_known(kb):
    assert prior_known(kb, (0.6, EQUAL), (0.4, EQUAL), prior=False) == [False, False]
