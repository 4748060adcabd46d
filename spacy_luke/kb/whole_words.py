"""Texts that occur in other texts as whole words, in any script."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING
from unicodedata import category, name

if TYPE_CHECKING:
    from marisa_trie import Trie

MAX_CHARACTERS = 250
"""Of a text that is searched for. The longest mentions of published models have 30 pieces."""

_LETTER, _KATAKANA, _SINGLE, _MARK, _OTHER, _SPACE = "lksmo "
_WORD = re.compile(
    f"{_LETTER}[{_LETTER}{_MARK}]*|{_KATAKANA}[{_KATAKANA}{_MARK}]*"
    f"|[{_SINGLE}{_OTHER}{_MARK}]{_MARK}*"
)
_UNSPACED = (
    *("CJK ", "IDEOGRAPHIC ", "HIRAGANA ", "THAI ", "LAO ", "KHMER ", "MYANMAR ", "TAI "),
    *("NEW TAI ", "YI "),
)
"""Beginnings of the names of characters of scripts without spaces between words."""
UNSPACED_LANGUAGES = frozenset({"ja", "th", "zh"})
"""Languages of spaCy that are written without spaces between words."""
_KATAKANA_NAMES = ("KATAKANA", "HALFWIDTH KATAKANA")
_JOINERS = "\u00ad\u200c\u200d\u2060"
"""The soft hyphen, the joiners of Persian and Indic scripts, and the word joiner."""


class _Kinds(dict[int, str]):
    """Code point -> kind of the character; filled as characters are seen."""

    def __missing__(self, code: int) -> str:
        kind = self[code] = _kind(chr(code))
        return kind


def _kind(character: str) -> str:
    if character.isspace():
        return _SPACE
    group = category(character)
    if group[0] == "M" or character in _JOINERS:
        return _MARK
    if group[0] not in "LN" and group != "Pc":
        return _OTHER
    described = name(character, "")
    if described.startswith(_KATAKANA_NAMES):
        return _KATAKANA
    return _SINGLE if described.startswith(_UNSPACED) else _LETTER


_KINDS = _Kinds()


def normalize_words(text: str) -> str:
    """A text in lower case, with one space instead of any white space, and none at its ends.

    The final sigma becomes an ordinary one, so that the lower case of a text does not depend on
    what follows it.
    """
    return " ".join(text.lower().replace("\u03c2", "\u03c3").split())


def words(text: str) -> Iterator[tuple[int, int]]:
    """The characters [start, end) of each word and of each punctuation mark or symbol.

    A word is a run of letters, digits and underscores with their marks. So ``Parkinson's`` is
    three words, and the first two of ``New York-based`` are ``New York``. In scripts without spaces
    between words (Han, Hiragana, Thai, Lao, Khmer, Burmese and others) every character is a word,
    because only a dictionary knows the words: a text occurs wherever its characters do. A run of
    Katakana is a word.
    """
    return (match.span() for match in _WORD.finditer(text.translate(_KINDS)))


def is_unspaced(character: str) -> bool:
    """Whether it is of a script without spaces between words, Katakana included."""
    return _KINDS[ord(character)] in (_SINGLE, _KATAKANA)


def join_unspaced(text: str) -> str:
    """The text without white space between letters of scripts that have none between words: a text
    that was broken into lines may have some there."""

    def joined(space: re.Match[str]) -> str:
        first, last = space.span()
        while first > 1 and _KINDS[ord(text[first - 1])] == _MARK:
            first -= 1
        is_inside = first > 0 and last < len(text)
        if is_inside and is_unspaced(text[first - 1]) and is_unspaced(text[last]):
            return ""
        return space[0]

    return re.sub(r"\s+", joined, text)


def is_whole(text: str, start: int, end: int) -> bool:
    """Whether :func:`words` has words that start and end at these characters, which are not white
    space."""
    return _is_bound(text, start) and _is_bound(text, end)


def _is_bound(text: str, i: int) -> bool:
    """Whether words of :func:`words` do not extend over the place before character i."""
    if i in (0, len(text)):
        return True
    before, after = _KINDS[ord(text[i - 1])], _KINDS[ord(text[i])]
    if after == _MARK:
        return before == _SPACE
    while before == _MARK and i > 1:
        i -= 1
        before = _KINDS[ord(text[i - 1])]
    return before != after or after not in (_LETTER, _KATAKANA)


def occurrences(trie: "Trie", text: str) -> Iterator[tuple[int, int, int]]:
    """Start, end and id of every text of a trie that occurs as whole words in a normalised text,
    by ascending start and end. Occurrences may overlap."""
    bounds = list(words(text))
    ends = {end for _, end in bounds}
    for start, _ in bounds:
        for key, row in trie.iter_prefixes_with_ids(text[start : start + MAX_CHARACTERS]):
            if start + len(key) in ends:
                yield start, start + len(key), row
