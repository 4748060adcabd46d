"""Offsets in UTF-16 units become offsets in characters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_luke.corpora.offset_units import from_utf16, has_wide_characters
from spacy_luke.errors import CorpusError

CHARACTERS = st.characters(codec="utf-8")


@given(st.text(CHARACTERS), st.text(CHARACTERS))
def test_the_length_of_what_is_before_an_offset_counts(before, after):
    units = len(before.encode("utf-16-le")) // 2
    assert from_utf16(before + after, units) == len(before)
    assert has_wide_characters(before) == (units != len(before))


def test_an_offset_outside_stays_as_far_outside():
    assert from_utf16("🚀a", 5) == 4
    assert from_utf16("🚀a", -1) == -1


def test_an_offset_inside_a_character_is_an_error():
    with pytest.raises(CorpusError, match="the offset 1, in UTF-16 units, is inside a character"):
        from_utf16("🚀", 1)
