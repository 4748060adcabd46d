"""Offsets that count UTF-16 units, as JavaScript does, to offsets that count characters.

Both differ in texts with characters beyond U+FFFF, such as most emoji: these are two units.
"""

import re
from bisect import bisect_left
from functools import lru_cache

from ..errors import CorpusError

CHARACTERS, UTF16 = "characters", "utf16"
_WIDE = re.compile("[\U00010000-\U0010ffff]")


def has_wide_characters(text: str) -> bool:
    """Whether the two units differ in a text."""
    return bool(_wide_characters(text))


def from_utf16(text: str, offset: int) -> int:
    """The number of characters before an offset in UTF-16 units. An offset outside the text stays
    as far outside. Raises CorpusError if it is inside a character.

    Example: in "🚀 Ada", "Ada" begins at unit 3 and character 2.
    """
    wide = _wide_characters(text)
    n_before = bisect_left(wide, offset)
    if n_before and wide[n_before - 1] == offset - 1:
        raise CorpusError(f"the offset {offset}, in UTF-16 units, is inside a character.")
    return offset - n_before


@lru_cache(maxsize=4)  # a long text has many spans
def _wide_characters(text: str) -> list[int]:
    """The offsets, in UTF-16 units, at which characters of two units begin."""
    return [match.start() + i for i, match in enumerate(_WIDE.finditer(text))]
