"""A span is where the file quotes it from, or it is nowhere."""

import pytest

from spacy_luke.corpora.quotes import (
    AT_OFFSETS,
    DIFFERS,
    IN_UTF16,
    NEAR,
    NEARBY,
    NOWHERE,
    find_quote,
)

TEXT = "🚀 Ada met Bob, and Ada's dog."


@pytest.mark.parametrize(
    "start, end, quote, found",
    [
        (2, 5, "Ada", (2, 5, AT_OFFSETS)),
        (6, 13, "met\nBob", (6, 13, AT_OFFSETS)),
        (3, 6, "Ada", (2, 5, IN_UTF16)),
        (19, 24, "Adas", (19, 24, DIFFERS)),
        (12, 15, "Bob", (10, 13, NEAR)),
        (-9, 99, "Bob", (10, 13, NEAR)),
        (9, 12, "Ada", (9, 12, NOWHERE)),
        (2, 5, "Eve", (2, 5, NOWHERE)),
        (2, 5, " ", (2, 5, NOWHERE)),
        (1, 1, "Eve", (1, 1, NOWHERE)),
    ],
)
def test_a_quote_is_found_at_its_offsets_or_near_them(start, end, quote, found):
    assert find_quote(TEXT, start, end, quote) == found


HINDI = "सीता दिल्ली में है, राम का घर मुंबई में"


@pytest.mark.parametrize("quote", ["दिल्ली", "सीता", "मुंबई"])
@pytest.mark.parametrize("shift", [-1, 1])
def test_vowel_signs_are_letters(quote, shift):
    place = HINDI.index(quote), HINDI.index(quote) + len(quote)
    moved = [max(x + shift, 0) for x in place]
    assert find_quote(HINDI, *moved, quote) == (*place, NEAR)


def test_another_word_with_the_same_consonants_differs():
    start = HINDI.index("का")
    assert find_quote(HINDI, start, start + 2, "की").how == NOWHERE


@pytest.mark.parametrize(
    "text, quote",
    [
        ("Bjo\u0308rn,", "Björn"),
        ("\u05e9\u05b8\u05dc\u05d5\u05dd", "\u05e9\u05dc\u05d5\u05dd"),
        ("\u263a\ufe0f x love", "\u263a x love"),
        ("\u845b\U000e0100\u57ce", "\u845b\u57ce"),
        ("1\ufe0f\u20e3 a", "1 a"),
    ],
)
def test_accents_and_vowel_marks_that_readers_leave_out_do_not_count(text, quote):
    assert find_quote(text, 0, len(text), quote) == (0, len(text), DIFFERS)


def test_a_quote_far_away_is_not_found():
    text = "x" * (NEARBY + 1) + "Ada"
    assert find_quote(text, 0, 3, "Ada").how == NOWHERE
    assert find_quote(text, 1, 4, "Ada") == (NEARBY + 1, NEARBY + 4, NEAR)


def test_the_end_of_a_span_may_be_behind_the_text_if_it_counts_other_units():
    assert find_quote("see 🚀", 4, 6, "🚀") == (4, 5, IN_UTF16)
    assert find_quote("Ada ran", 4, 8, "ran") == (4, 7, NEAR)
