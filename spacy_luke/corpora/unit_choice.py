"""Which unit the offsets of a file count, if the file does not say it: the one that fits tokens."""

from collections.abc import Iterable
from typing import NamedTuple
from unicodedata import category

from spacy.language import Language

from ..errors import CorpusError
from .characters import make_text_doc
from .checks import check_unicode, errors_at
from .conversion_report import Report
from .offset_units import CHARACTERS, UTF16, from_utf16
from .relation_records import Place


class PlacedText(NamedTuple):
    """A text, where it is (file and record, for errors), and the places of its spans."""

    location: str
    text: str
    places: list[Place]


def find_unit(texts: Iterable[PlacedText], nlp: Language, report: Report, usual: str) -> str:
    """What offsets count: the unit in which more spans begin and end with tokens.

    texts: those in which the units differ (``has_wide_characters``). usual: if both fit equally,
    also in how many spans begin and end with letters or digits.

    Noted in the report if there are spans, and counted if both fit equally. Raises CorpusError for
    a text that is not valid.
    """
    fits, n_spans, unclear = {UTF16: (0, 0), CHARACTERS: (0, 0)}, 0, list[str]()
    for location, text, places in texts:
        if not places:
            continue
        with errors_at(location):
            check_unicode(text)
            doc = make_text_doc(nlp, text)
        n_spans += len(places)
        for place in places:
            readings = {UTF16: _in_characters(text, place), CHARACTERS: place}
            if readings[UTF16] != place and any(_cut(text, *x).strip() for x in readings.values()):
                unclear.append(location)
            for unit, reading in readings.items():
                n_fit, n_letters = fits[unit]
                if found := _cut(text, *reading):
                    n_fit += doc.char_span(*reading) is not None
                    fits[unit] = n_fit, n_letters + _is_within_letters(found)
    is_tie = fits[CHARACTERS] == fits[UTF16]
    unit = usual if is_tie else max(fits, key=lambda unit: fits[unit])
    if n_spans:
        report.notes.append(
            f"offsets count {unit}: of {n_spans} spans in texts with characters beyond U+FFFF, "
            f"{fits[UTF16][0]} fit tokens as utf16, {fits[CHARACTERS][0]} as characters; "
            f"{fits[UTF16][1]} and {fits[CHARACTERS][1]} begin and end with letters or digits"
        )
    if is_tie and unclear:
        what = f"spans that fit as utf16 and as characters alike, read as {unit} (see --offsets)"
        report.count(what, unclear[0], len(unclear))
    return unit


def _in_characters(text: str, place: Place) -> Place:
    try:
        return from_utf16(text, place[0]), from_utf16(text, place[1])
    except CorpusError:
        return -1, -1


def _cut(text: str, start: int, end: int) -> str:
    return text[start:end] if 0 <= start < end <= len(text) else ""


def _is_within_letters(span: str) -> bool:
    """Whether a text begins and ends with letters, their marks, or digits."""
    return all(category(x)[0] in "LMN" for x in (span[0], span[-1]))
