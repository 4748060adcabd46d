"""Where sentences start, by rules on text: no tokens are needed, and any script has sentences.

A mark of the script ends a sentence, for example a full-width or Devanagari full stop. A period, an
exclamation mark or a question mark ends one if a space follows, and no small letter. A period ends
none if it belongs to an abbreviation, an initial, an ordinal number or the number of an item. Emoji
belong to the sentence before them. A boundary that is missed makes a sentence longer; one that is
wrong cuts a sentence in two.

Thai and Lao have no such marks: every space between two letters of them is a boundary, so that
phrases count as sentences.
"""

import re
from collections.abc import Container
from functools import lru_cache
from unicodedata import category

from spacy.util import get_lang_class

from .abbreviations import ABBREVIATIONS, ENDINGS, TITLES

_FINAL = "。！？｡．‼⁇⁈⁉।॥།༎။։۔؟።፧፨។៕᙮᠃᠉꓿\u037e"
"""Marks that end a sentence whatever follows."""
_CLOSING = "\"'”’›)]}）］｝」』】》〉〕“»"
_OPENING = "\"'“‘„‚«‹([{（［｛「『【《〈〔¿¡*"
_DASHES = "–—-"
_QUOTES = r"[“»](?!\w)"
"""They open a quotation in some languages, and close it in others."""
_MARKS = re.compile(rf"[.!?…{_FINAL}]+(?:[{re.escape(_CLOSING[:-2])}]|{_QUOTES})*")
_GREEK_MARKS = re.compile(_MARKS.pattern.replace("[.", "[;.", 1))
_FRENCH_QUOTE = re.compile(r"[ \u00a0\u202f]»")
_BEFORE_NUMBERS = frozenset(("no.", "nr."))
"""Abbreviations before numbers; elsewhere they are words."""
_HOURS = frozenset(("a.m.", "p.m."))
_WORD_BEFORE = re.compile(rf"[^\s{re.escape(_OPENING)}]*$")
_LONGEST_WORD = 40
_EMOJI = re.compile("(?: ?[\U0001f300-\U0001faff\u2764\u263a\ufe0f\u200d])+")
_OTHERS = "\u2600"
"""Emoji are not before it."""
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
_SYLLABLES = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff]")
"""Letters that are words, and no initials."""
_SPACED = re.compile(r"(?:(?<![^\W\d_])[^\W\d_]{1,2}\.[ \u00a0])+[^\W\d_]$")
"""An abbreviation with spaces, up to its last letter: ``т. д``."""
_CLITIC = re.compile(r"['’][a-z] (?=[^\W\d_])")
"""A word of Dutch and Afrikaans at the start of sentences, before a capital: ``'s Avonds``."""
_YEAR = re.compile(r"[0-9]{4}(?![0-9.,])")
_INSIDE_PERIODS = re.compile(r"(?:[^\W\d_]{1,3}\.-?)+[^\W\d_]{1,3}")
_ROMAN = re.compile("[IVXLC]+")
_GOES_ON = re.compile("[、，,;；:：と]|って|など|[我你他她它]们?[说說问問道答喊叫]")
"""After a closing quotation mark in Japanese and Chinese: the sentence around it goes on."""
_SOUTH_EAST = re.compile("(?<=[\u0e01-\u0eff]) +(?=[\u0e01-\u0eff])")
_ORDINALS = frozenset(
    ("de", "da", "nb", "fi", "et", "cs", "sk", "pl", "hu", "hr", "sr", "bs", "sl", "tr", "lv", "is")
)
"""Languages that write ordinal numbers with a period: ``3. Oktober``."""
_ROMAN_ORDINALS = _ORDINALS - {"pl"}
_LETTER_WORDS = {"gu": "છ", "hi": "हथ", "ne": "छ", "pa": "ਹਸ", "ps": "و", "si": "ය"}
"""Words of one letter, without its marks, with which sentences end."""
_SAME = {"no": "nb", "nn": "nb", "simple": "en", "sh": "hr"}
"""Codes of wikis whose abbreviations are those of another code."""


@lru_cache(maxsize=64)
def _abbreviations(language: str) -> frozenset[str]:
    """In lower case, with their period: those of spaCy's tokenizer for the language, and ours."""
    try:
        known = get_lang_class(language).Defaults.tokenizer_exceptions or {}
    except ImportError:  # spaCy lacks the language
        known = {}
    theirs = (x.lower() for x in known if x.endswith(".") and x[0].isalpha() and " " not in x)
    return TITLES.union(ABBREVIATIONS.get(language, ()), theirs)


def sentence_starts(text: str, language: str = "") -> list[int]:
    """The characters at which sentences of a paragraph start; the first one is 0.

    language: code of ISO 639, or of a wiki. Abbreviations of an unknown language are only found by
        their form.
    """
    language = language.partition("-")[0].partition("_")[0].lower()
    language = _SAME.get(language, language)
    starts = {0}
    for match in (_GREEK_MARKS if language == "el" else _MARKS).finditer(text):
        start = _next_start(text, match, language, starts)
        if start < len(text):
            starts.add(start)
    if language in ("th", "lo"):
        starts.update(match.end() for match in _SOUTH_EAST.finditer(text))
    return sorted(starts)


def _next_start(text: str, match: re.Match[str], language: str, starts: Container[int]) -> int:
    """Where the sentence after these marks starts; the end of the text if they do not end one.
    starts: of the sentences before."""
    end = match.end()
    if language == "fr" and (quote := _FRENCH_QUOTE.match(text, end)):
        end = quote.end()
    start = end
    while start < len(text) and text[start].isspace():
        start += 1
    if text[start : start + 1] > _OTHERS and (emoji := _EMOJI.match(text, end)):
        end = start = emoji.end()
        while start < len(text) and text[start].isspace():
            start += 1
    if start == len(text) or text[start] in _FINAL:
        return len(text)
    marks = match[0].rstrip(_CLOSING)
    if not any(mark in _FINAL for mark in marks):
        ends = _may_begin(text, start) and (
            marks != "." or _period_ends(text, match.start(), start, language, starts)
        )
        if not ends or (start == end and _UNSPACED.match(text, start) is None):
            return len(text)
        return start
    is_decimal = marks[-1] == "．" and text[start].isdigit()  # with a full-width point
    is_quoted = len(marks) < len(match[0]) and _GOES_ON.match(text, start) is not None
    return len(text) if is_decimal or is_quoted else start


def _may_begin(text: str, start: int) -> bool:
    """Whether a sentence may begin at a character: not with a small letter, or a pause."""
    if text[start] in ",;:":
        return False
    if text[start] in "'’" and (clitic := _CLITIC.match(text, start)):
        start = clitic.end()
    return not _is_small(text, _first(text, start))


def _first(text: str, start: int) -> int:
    """The first character that is no opening mark or dash; a space may follow a dash."""
    last = len(text) - 1
    while start < last and text[start] in _OPENING + _DASHES:
        start += 1 + (text[start] in _DASHES and text[start + 1].isspace())
    return min(start, last)


def _is_small(text: str, at: int) -> bool:
    """Georgian letters are small for Unicode, but sentences begin with them, and with iPhones."""
    letter = text[at]
    is_name = text[at + 1 : at + 2].isupper()
    return letter.islower() and not is_name and not "\u10d0" <= letter <= "\u10ff"


def _period_ends(text: str, at: int, start: int, language: str, starts: Container[int]) -> bool:
    """Whether the period at a character ends a sentence, before the next one at ``start``."""
    found = _WORD_BEFORE.search(text, max(0, at - _LONGEST_WORD), at)
    word = found[0] if found is not None else ""
    key = word.lower() + "."
    first = text[_first(text, start)]
    if _ends_before_capital(text, at, word):
        return first.isupper()
    letters = word if word.isascii() else "".join(x for x in word if category(x)[0] != "M")
    if _is_initial(letters, language) or _INSIDE_PERIODS.fullmatch(letters) is not None:
        return False
    if word.isdecimal():
        is_item = len(word) < 4 and at - len(word) in starts
        return not is_item and not (language in _ORDINALS and len(word) < 3)
    if language in _ROMAN_ORDINALS and _ROMAN.fullmatch(word) is not None:
        return False
    if key in _BEFORE_NUMBERS or (language == "de" and key.endswith("str.")):
        return not first.isdigit()
    if first.isdigit() and language not in ABBREVIATIONS and _is_short(letters):
        return _YEAR.match(text, start) is not None
    return key not in _abbreviations(language)


def _ends_before_capital(text: str, at: int, word: str) -> bool:
    """Whether it is an abbreviation of ENDINGS. ``E.A.`` and ``A. M.`` are initials."""
    if len(word) == 1 and word.islower():
        found = _SPACED.search(text, max(0, at - 9), at)
        word = "".join(found[0].split()) if found is not None else ""
    key = word.lower() + "."
    return key in ENDINGS and (key in _HOURS or not word.isupper())


def _is_initial(letters: str, language: str) -> bool:
    return (
        len(letters) == 1
        and letters.isalpha()
        and letters not in _LETTER_WORDS.get(language, "")
        and _SYLLABLES.match(letters) is None
    )


def _is_short(letters: str) -> bool:
    """Whether a word before a number may be an abbreviation, in a language without a list."""
    if not letters.isalpha() or _SYLLABLES.match(letters) is not None:
        return False
    return len(letters) <= (3 if letters < "\u0530" else 2)
