"""The place of a span whose text the file quotes: at its offsets, or near them."""

import re
from typing import NamedTuple
from unicodedata import category, normalize

from ..errors import CorpusError
from .offset_units import from_utf16, has_wide_characters

NEARBY = 50
AT_OFFSETS = ""
DIFFERS = "spans whose text differs in punctuation, taken by offsets"
IN_UTF16 = "spans whose offsets count UTF-16 units, converted by their text"
NEAR = "spans moved: their text is near their offsets"
NOWHERE = "spans left out: their text is not at their offsets"


_NO_LETTERS = re.compile(
    "[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u180b-\u180f"
    "\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe00-\ufe0f\ufe20-\ufe2f\U000e0100-\U000e01ef]"
)
"""Accents, marks of Hebrew and Arabic, and selectors of variants."""


class Found(NamedTuple):
    """Where a quoted span is, and how it was found: one of the texts above, for the report."""

    start: int
    end: int
    how: str


def find_quote(text: str, start: int, end: int, quote: str) -> Found:
    """The place of a span. ``how`` is ``NOWHERE`` if its text is neither at its offsets nor at a
    single place within ``NEARBY`` characters; the place is then as given."""
    is_inside = 0 <= start <= end <= len(text)
    if is_inside and text[start:end].split() == quote.split():
        return Found(start, end, AT_OFFSETS)
    units = _in_utf16(text, start, end) if has_wide_characters(text) else (start, end)
    if 0 <= units[0] <= units[1] <= len(text) and text[slice(*units)] == quote:
        return Found(*units, IN_UTF16)
    if is_inside and same_letters(text[start:end], quote):
        return Found(start, end, DIFFERS)
    near = find_near(text, quote, start) if quote.strip() else None
    if near is not None:
        return Found(near, near + len(quote), NEAR)
    return Found(start, end, NOWHERE)


def find_near(text: str, quote: str, start: int) -> int | None:
    """The only place of a text within ``NEARBY`` characters; None if there is none, or several."""
    low = max(start - NEARBY, 0)
    high = max(start + len(quote) + NEARBY, 0)
    first = text.find(quote, low, high)
    unique = first >= 0 and text.find(quote, first + 1, high) < 0
    return first if unique else None


def same_end(text: str, start: int, quote: str) -> int | None:
    """Where the shortest text ends that begins at a character and has the letters of a quote, with
    the marks that follow it; None if none has."""
    letters = _letters(quote)
    for end in range(start + 1, min(len(text), start + 2 * len(quote) + 2) + 1 if letters else 0):
        if _letters(text[start:end]) == letters:
            while end < len(text) and category(text[end])[0] == "M":
                end += 1
            return end
    return None


def same_letters(one: str, other: str) -> bool:
    """Whether two texts have the same letters and digits, and any at all. Vowel signs of Indic and
    other scripts are letters. Selectors of variants, vowel marks of Hebrew and Arabic, and accents
    that are not part of a letter (NFC), are not."""
    return _letters(one) == _letters(other) != ""


def _letters(text: str) -> str:
    plain = _NO_LETTERS.sub("", normalize("NFC", text.casefold()))
    return "".join(x for x in plain if x.isalnum() or category(x)[0] == "M")


def _in_utf16(text: str, start: int, end: int) -> tuple[int, int]:
    try:
        return from_utf16(text, start), from_utf16(text, end)
    except CorpusError:
        return start, end
