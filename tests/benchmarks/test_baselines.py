"""Token classification reads tags as the CoNLL evaluation does."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.baselines import decode_bio, first_tokens
from spacy_luke.corpora.tag_schemes import parse_tag, read_entities

TAGS = ["O", "B-A", "I-A", "B-B", "I-B"]


def decode(docs):
    """Entities of tag sequences, by document."""
    offsets = np.concatenate([[0], np.cumsum([len(tags) for tags in docs])]).astype(int)
    classes = np.asarray([TAGS.index(tag) for tags in docs for tag in tags], dtype=int)
    starts, ends, labels = decode_bio(classes, first_tokens(offsets))
    found = [[] for _ in docs]
    for start, end, label in zip(starts, ends, labels):
        doc = int(np.searchsorted(offsets, start, side="right") - 1)
        found[doc].append((int(start - offsets[doc]), int(end - offsets[doc]), "AB"[label]))
    return found


@given(st.lists(st.lists(st.sampled_from(TAGS), min_size=1, max_size=8), max_size=4))
def test_entities_are_those_of_the_evaluation_script(docs):
    expected = [read_entities([parse_tag(tag) for tag in tags], "IOB2")[0] for tags in docs]
    assert decode(docs) == [[tuple(entity) for entity in entities] for entities in expected]


@pytest.mark.parametrize("second", ["I-A", "B-A"])
def test_an_entity_ends_with_its_document(second):
    assert decode([["B-A"], [second]]) == [[(0, 1, "A")], [(0, 1, "A")]]
