"""Which unit the offsets of a file count, if the file does not say it: the one that fits tokens."""

from collections.abc import Iterable
from typing import NamedTuple

from spacy.language import Language
from spacy.tokens import Doc

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

    texts: those in which the units differ (``has_wide_characters``). usual: if both fit equally.

    Noted in the report if there are spans. Raises CorpusError for a text that is not valid.
    """
    fits, n_spans = {UTF16: 0, CHARACTERS: 0}, 0
    for location, text, places in texts:
        if not places:
            continue
        with errors_at(location):
            check_unicode(text)
            doc = make_text_doc(nlp, text)
        n_spans += len(places)
        fits[CHARACTERS] += sum(_fits(doc, text, *place) for place in places)
        fits[UTF16] += sum(_fits(doc, text, *_in_characters(text, place)) for place in places)
    unit = usual if fits[CHARACTERS] == fits[UTF16] else max(fits, key=lambda unit: fits[unit])
    if n_spans:
        report.notes.append(
            f"offsets count {unit}: of {n_spans} spans in texts with characters beyond U+FFFF, "
            f"{fits[UTF16]} fit tokens as utf16, {fits[CHARACTERS]} as characters"
        )
    return unit


def _in_characters(text: str, place: Place) -> Place:
    try:
        return from_utf16(text, place[0]), from_utf16(text, place[1])
    except CorpusError:
        return -1, -1


def _fits(doc: Doc, text: str, start: int, end: int) -> bool:
    return 0 <= start < end <= len(text) and doc.char_span(start, end) is not None
