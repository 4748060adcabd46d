"""Where sentences start, by rules on text: no tokens are needed, and any script has sentences.

A mark of the script ends a sentence, for example a full-width or Devanagari full stop. A period, an
exclamation mark or a question mark ends one if a space follows, and no small letter. A period ends
none if it belongs to an abbreviation, an initial or an ordinal number. A boundary that is missed
makes a sentence longer; one that is wrong cuts a sentence in two.

Thai and Lao have no such marks: every space between two letters of them is a boundary, so that
phrases count as sentences.
"""

import re
from functools import lru_cache

from spacy.util import get_lang_class

from .abbreviations import ABBREVIATIONS, ENDINGS, TITLES

_FINAL = "。！？｡．‼⁇⁈⁉।॥။։۔؟።፧፨។៕᙮᠃᠉꓿\u037e"
"""Marks that end a sentence whatever follows."""
_CLOSING = "\"'”’›)]}）］｝」』】》〉〕“»"
_OPENING = "\"'“‘„‚«‹([{（［｛「『【《〈〔¿¡*"
_DASHES = "–—-"
_QUOTES = r"[“»](?!\w)"
"""They open a quotation in some languages, and close it in others."""
_MARKS = re.compile(rf"[.!?…{_FINAL}]+(?:[{re.escape(_CLOSING[:-2])}]|{_QUOTES})*")
_GREEK_MARKS = re.compile(_MARKS.pattern.replace("[.", "[;.", 1))
_FRENCH_QUOTE = re.compile(r"[ \u00a0\u202f]»")
_WORD_BEFORE = re.compile(rf"[^\s{re.escape(_OPENING)}]*$")
_LONGEST_WORD = 40
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
_INSIDE_PERIODS = re.compile(r"(?:[^\W\d_]{1,3}\.-?)+[^\W\d_]{1,3}")
_ROMAN = re.compile("[IVXLC]+")
_GOES_ON = re.compile("[、，,;；:：と]|って|など")
"""After a closing quotation mark in Japanese and Chinese: the sentence around it goes on."""
_SOUTH_EAST = re.compile("(?<=[\u0e01-\u0eff]) +(?=[\u0e01-\u0eff])")
_ORDINALS = frozenset(
    ("de", "da", "nb", "fi", "et", "cs", "sk", "pl", "hu", "hr", "sr", "bs", "sl", "tr", "lv", "is")
)
"""Languages that write ordinal numbers with a period: ``3. Oktober``."""
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
        start = _next_start(text, match, language)
        if start < len(text):
            starts.add(start)
    if language in ("th", "lo"):
        starts.update(match.end() for match in _SOUTH_EAST.finditer(text))
    return sorted(starts)


def _next_start(text: str, match: re.Match[str], language: str) -> int:
    """Where the sentence after these marks starts; the end of the text if they do not end one."""
    end = match.end()
    if language == "fr" and (quote := _FRENCH_QUOTE.match(text, end)):
        end = quote.end()
    start = end
    while start < len(text) and text[start].isspace():
        start += 1
    if start == len(text):
        return start
    marks = match[0].rstrip(_CLOSING)
    if not any(mark in _FINAL for mark in marks):
        ends = _period_ends(text, match.start(), marks, start, language)
        if not ends or (start == end and _UNSPACED.match(text, start) is None):
            return len(text)
        return start
    is_decimal = marks[-1] == "．" and text[start].isdigit()  # with a full-width point
    is_quoted = len(marks) < len(match[0]) and _GOES_ON.match(text, start) is not None
    return len(text) if is_decimal or is_quoted else start


def _period_ends(text: str, at: int, marks: str, start: int, language: str) -> bool:
    """Whether ``.``, ``!``, ``?`` or ``…`` at a character end a sentence, and the next word, at
    ``start``, may begin one."""
    first = start
    while first < len(text) - 1 and text[first] in _OPENING + _DASHES:
        first += 1
    if _is_small(text[first]) or text[start] in ",;:":
        return False
    if marks != ".":
        return True
    before = _WORD_BEFORE.search(text, max(0, at - _LONGEST_WORD), at)
    word = before[0] if before is not None else ""
    key = word.lower() + "."
    if key in ENDINGS:
        return text[first].isupper()
    if (len(word) == 1 and word.isalpha()) or _INSIDE_PERIODS.fullmatch(word) is not None:
        return False
    if language == "de" and key.endswith("str."):
        return not text[first].isdigit()
    if word.isdecimal() and (at == len(word) or (language in _ORDINALS and len(word) < 3)):
        return False  # of a list, or an ordinal number
    if language in _ORDINALS and _ROMAN.fullmatch(word) is not None:
        return False
    if key in ("no.", "nr."):
        return not text[first].isdigit()
    return key not in _abbreviations(language)


def _is_small(letter: str) -> bool:
    """Georgian letters are small for Unicode, but sentences begin with them."""
    return letter.islower() and not "\u10d0" <= letter <= "\u10ff"
