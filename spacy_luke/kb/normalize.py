"""Names in a form that does not depend on case, diacritics or punctuation."""

import re
from collections.abc import Callable
from functools import lru_cache
from itertools import groupby
from unicodedata import category, normalize

_CACHED = 1 << 16
_KEPT_PUNCTUATION = frozenset("#%&@")
"""Parts of names (C#, AT&T); all symbols, such as + and $, are kept, too."""
_POSSESSIVE = re.compile(r"(?<=\w)(?:'s\b|(?<=s)'(?!\w))")
_JOINING = re.compile(r"(?<!\d)\.|\.(?!\d)|(?<=\w)'(?=\w)")
"""Periods, except between digits, and apostrophes inside words."""
_VIRUSES = re.compile("[^aeou]uses$")
_APOSTROPHES = str.maketrans(
    dict.fromkeys("\u2018\u2019\u02b9\u02bb\u02bc\u00b4\u1ffd\u05f3\u2032`", "'")
)
_STROKES = str.maketrans("\u0131\u0142\u00f8\u0111\u0127\u0167", "ilodht")
"""Letters whose diacritic Unicode does not separate, e.g. of Lodz, Tromso, and the Turkish i."""
# Marks that readers leave out: accents of Latin, Greek and Cyrillic, vowel marks of Hebrew and
# Arabic, the Arabic tatweel, and selectors of variants (of Han characters and emoji). Marks of
# other scripts, such as the vowels of Devanagari, are letters.
_MARKS = re.compile(
    "[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c7\u0640\u064b-\u065f\u0670"
    "\ufe00-\ufe0f\U000e0100-\U000e01ef]"
)


@lru_cache(maxsize=_CACHED)
def normalize_name(text: str, lang: str = "") -> str:
    """The form of a name by which equal names are recognised. It is empty only if the text is empty
    or white space. Without a language, a second call changes nothing.

    Case, compatibility characters of Unicode (NFKC), diacritics, white space and punctuation are
    normalised: ``St. John's``, ``ST JOHNS`` and ``St John\u2019s`` are equal. Names that consist of
    punctuation keep it.

    lang: in the languages of :data:`_WITHOUT_ENDING`, the possessive ('s, s') is removed from every
        word; for ``en``, regular plurals, too (``Parkinson's diseases`` becomes ``parkinson
        disease``), and for the others the genitive -s (``Berlins`` becomes ``berlin``).
    """
    words, without_ending = _plain(text, lang).split(), _without_ending(lang)
    if without_ending:
        words = [without_ending(word) for word in words]
    return " ".join(words) or " ".join(normalize("NFKC", text).casefold().split())


@lru_cache(maxsize=_CACHED)
def normalize_tokens(
    texts: tuple[str, ...], lang: str = ""
) -> tuple[str, tuple[tuple[int, int], ...]]:
    """The normalised form of tokens without white space between them, and the characters
    [start, end) of each token in it, an empty range if nothing of it is left.

    The form is that of ``normalize_name`` for the joined texts, but empty if they are punctuation
    alone. Example: of ``("Spider", "-", "Man")`` it is ``spider man``, with (0, 6), (0, 0) and
    (7, 10).
    """
    without_ending = _without_ending(lang)
    letters: list[_Letter] = []
    for token, text in enumerate(texts):
        letters += [(x, token) for x in fold_name(text)]
    if without_ending:
        letters = _without(_POSSESSIVE, letters)
    kept = [(_kept(x), token) for x, token in _without(_JOINING, letters)]
    form: list[_Letter] = []
    for is_space, run in groupby((x for x in kept if x[0]), lambda x: x[0].isspace()):
        if is_space:
            continue
        word = list(run)
        if without_ending:
            shorter = without_ending("".join(x for x, _ in word))
            word = [(x, token) for x, (_, token) in zip(shorter, word)]
        form += [(" ", -1), *word] if form else word
    places: dict[int, tuple[int, int]] = {}
    for i, (_, token) in enumerate(form):
        places[token] = places.get(token, (i, i))[0], i + 1
    return "".join(x for x, _ in form), tuple(places.get(i, (0, 0)) for i in range(len(texts)))


_Letter = tuple[str, int]
"""A character, and the token that it is of."""


def _without(pattern: re.Pattern[str], letters: list[_Letter]) -> list[_Letter]:
    """The characters without those that a pattern matches."""
    text = "".join(x for x, _ in letters)
    removed = {i for match in pattern.finditer(text) for i in range(*match.span())}
    return [x for i, x in enumerate(letters) if i not in removed]


def fold_name(text: str) -> str:
    """Lower case without diacritics, with one kind of apostrophe. NFKC may make letters that have a
    lower case, so it is applied twice."""
    # The acute accent as an apostrophe is a space and a mark in NFKC.
    lower = normalize("NFKC", normalize("NFKC", text.translate(_APOSTROPHES)).casefold())
    letters = _MARKS.sub("", normalize("NFD", lower)).translate(_STROKES)
    return normalize("NFC", letters).translate(_APOSTROPHES)


def is_shortened(text: str, lang: str) -> bool:
    """Whether :func:`normalize_name` takes the ending of a plural or genitive off a word, not only
    that of a possessive: of ``AIDS`` and ``Windows'``, not of ``McDonald's``."""
    without_ending = _without_ending(lang)
    words = _plain(text, lang).split()
    return without_ending is not None and any(without_ending(x) != x for x in words)


def _plain(text: str, lang: str) -> str:
    """A name without possessives and punctuation; words have their endings."""
    plain = fold_name(text)
    if _without_ending(lang):
        plain = _POSSESSIVE.sub("", plain)
    return normalize("NFC", "".join(map(_kept, _JOINING.sub("", plain))))


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


def _without_genitive(word: str) -> str:
    """Remove the -s of a Germanic genitive (Berlins, Chinas, Sveriges). Short words, and those in
    -is, -os, -us, -ss, -xs and -zs, mostly have none (Hans, Paris, Carlos, Markus)."""
    return word[:-1] if len(word) > 4 and word[-1] == "s" and word[-2] not in "iousxz" else word


_WITHOUT_ENDING: dict[str, Callable[[str], str]] = {
    "en": _singular,
    **dict.fromkeys(("da", "de", "lb", "nb", "nn", "no", "sv"), _without_genitive),
}
"""Languages whose possessives are removed -> what removes an ending of a word."""


def _without_ending(lang: str) -> Callable[[str], str] | None:
    """Of ``de-formal`` and other forms of a language, that of the language."""
    return _WITHOUT_ENDING.get(lang.partition("-")[0])
