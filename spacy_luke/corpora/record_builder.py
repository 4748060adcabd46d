"""Builds the record of a text whose relations name their spans by ids."""

from collections.abc import Hashable
from typing import Any

from ..errors import CorpusError
from .characters import CharSpan, check_offsets
from .checks import check_unicode
from .conversion_report import Report
from .offset_units import UTF16, from_utf16, has_wide_characters
from .quotes import AT_OFFSETS, NOWHERE, find_quote
from .records import Record, check_meta
from .relation_records import Place, RelationRecord


class RecordBuilder:
    """Collects the spans and relations of a text. Methods raise CorpusError for invalid ones.

    unit: what the offsets of spans count, ``CHARACTERS`` or ``UTF16``.
    """

    def __init__(self, text: str, location: str, report: Report, unit: str = "") -> None:
        check_unicode(text)
        self.text, self.location, self.report = text, location, report
        self._utf16 = unit == UTF16 and has_wide_characters(text)
        self._spans: list[CharSpan] = []
        self._relations: list[RelationRecord] = []
        self._places: dict[Hashable, Place] = {}
        self._left_out: set[Hashable] = set()
        self._unclear: list[Place] = []

    def add_span(
        self,
        start: int,
        end: int,
        label: str,
        owner: str,
        name: Hashable = None,
        quote: str | None = None,
        kb_id: str = "",
    ) -> None:
        """Add a span. owner: its name in errors. name: its id in relations. quote: its text in the
        file; a span that is not there is left out, and counted."""
        if not label:
            raise CorpusError(f"{owner} has an empty label.")
        check_unicode(label)
        check_unicode(kb_id)
        if self._utf16:
            start, end = (from_utf16(self.text, edge) for edge in (start, end))
        if quote is not None:
            start, end, how = find_quote(self.text, start, end, quote)
            if how != AT_OFFSETS:
                self.report.count(how, self.location)
            if how == NOWHERE:
                self.leave_out(start, end, name)
                return
        if not 0 <= start == end <= len(self.text):  # an empty span is left out later
            check_offsets(f"{owner} ({label})", start, end, self.text)
        if name is not None and self._places.setdefault(name, (start, end)) != (start, end):
            raise CorpusError(f"{owner} has the id {name!r}, which an earlier one has.")
        self._spans.append(CharSpan(start, end, label, kb_id))

    def leave_out(self, start: int, end: int, name: Hashable = None) -> None:
        """Mark the tokens of a span that is left out as unknown; the caller counts it."""
        self._unclear.append((start, end))
        self._left_out.add(name)

    def add_relation(self, head: Hashable, tail: Hashable, label: str, owner: str) -> None:
        """Add a relation between the ids of two spans that were added before."""
        if not label:
            raise CorpusError(f"{owner} has an empty label.")
        check_unicode(label)
        missing = [name for name in (head, tail) if name not in self._places]
        if not missing:
            places = self._places[head], self._places[tail]
            self._relations.append(RelationRecord(*places, label))
        elif all(name in self._left_out for name in missing):
            self.report.count("relations left out: one of their spans was", self.location)
        else:
            self.report.count("relations left out: an id of theirs has no span", self.location)

    def record(self, name: Any = None, meta: Any = None) -> Record:
        """The record. name, meta: stored in ``Doc.user_data["id"]``, as a string, and
        ``["meta"]``."""
        own_name = "" if name is None else str(name)
        check_unicode(own_name)
        return Record(
            self.location,
            self.text,
            self._spans,
            self._relations,
            meta=check_meta(meta),
            name=own_name,
            unclear=tuple(self._unclear),
        )
