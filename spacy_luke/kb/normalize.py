"""Names in a form that does not depend on case, diacritics or punctuation."""

import re
from functools import lru_cache
from unicodedata import category, normalize

_CACHED = 1 << 16
_KEPT_PUNCTUATION = frozenset("#%&@")
"""Parts of names (C#, AT&T); all symbols, such as + and $, are kept, too."""
_POSSESSIVE = re.compile(r"(?<=\w)(?:'s\b|(?<=s)'(?!\w))")
_JOINING = re.compile(r"(?<!\d)\.|\.(?!\d)|(?<=\w)'(?=\w)")
"""Periods, except between digits, and apostrophes inside words."""
_VIRUSES = re.compile("[^aeou]uses$")
_APOSTROPHES = str.maketrans(dict.fromkeys("\u2018\u2019\u02bc\u00b4`", "'"))
_STROKES = str.maketrans("\u0131\u0142\u00f8\u0111\u0127\u0167", "ilodht")
"""Letters whose diacritic Unicode does not separate, e.g. of Lodz, Tromso, and the Turkish i."""
# Marks that readers leave out: accents of Latin, Greek and Cyrillic, vowel marks of Hebrew and
# Arabic, and the Arabic tatweel. Marks of other scripts, such as the vowels of Devanagari, are
# letters.
_MARKS = re.compile("[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c7\u0640\u064b-\u065f\u0670]")


@lru_cache(maxsize=_CACHED)
def normalize_name(text: str, lang: str = "") -> str:
    """The form of a name by which equal names are recognised. It is empty only if the text is empty
    or white space. Without a language, a second call changes nothing.

    Case, compatibility characters of Unicode (NFKC), diacritics, white space and punctuation are
    normalised: ``St. John's``, ``ST JOHNS`` and ``St John\u2019s`` are equal. Names that consist of
    punctuation keep it.

    lang: for ``en``, the possessive ('s, s') and regular plurals are removed from every word
        (``Parkinson's diseases`` becomes ``parkinson disease``).
    """
    folded = _fold(text)
    plain = folded.translate(_APOSTROPHES)
    if lang == "en":
        plain = _POSSESSIVE.sub("", plain)
    plain = normalize("NFC", "".join(map(_kept, _JOINING.sub("", plain))))
    words = plain.split()
    if lang == "en":
        words = [_singular(word) for word in words]
    return " ".join(words) or " ".join(normalize("NFKC", text).casefold().split())


def _fold(text: str) -> str:
    """Lower case without diacritics. NFKC may make letters that have a lower case, so it is applied
    twice."""
    lower = normalize("NFKC", normalize("NFKC", text).casefold())
    letters = _MARKS.sub("", normalize("NFD", lower)).translate(_STROKES)
    return normalize("NFC", letters)


def _kept(character: str) -> str:
    """The character, or a space instead of punctuation, or nothing instead of an invisible one."""
    kind = category(character)
    if kind == "Cf":
        return ""
    is_space = kind[0] in "PZ" or kind == "Cc"
    return " " if is_space and character not in _KEPT_PUNCTUATION else character


def _singular(word: str) -> str:
    """Remove a regular English plural; short words and -ss, -us and -is are not plurals. Plurals of
    -us end in -uses, those of -use mostly follow a vowel (causes, houses)."""
    if len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    if word.endswith(("sses", "shes", "ches", "xes", "zes")) or _VIRUSES.search(word):
        return word[:-2]
    return word[:-1]
