"""Write the annotation read from a file to its documents: spans, entities, types, relations."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from spacy.tokens import Doc, Span

from ..annotations.relations import Relation, set_relations
from ..annotations.types import get_types, set_types
from .conversion_report import Report

MENTION = "MENTION"
"""The label of mentions in formats without labels."""
RelationSpans = tuple[Span | None, Span | None, str]
"""Head, tail and label of a relation; head or tail is None if the span was left out."""


@dataclass
class ParsedDoc:
    """A document and its annotation in the file.

    spans: the annotated spans, in file order.
    unknown: tokens that may or may not be part of an entity.
    types: spans and the names of their types; an empty tuple means that the span has none.
    """

    doc: Doc
    spans: list[Span] = field(default_factory=list)
    unknown: set[int] = field(default_factory=set)
    types: list[tuple[Span, tuple[str, ...]]] = field(default_factory=list)
    relations: list[RelationSpans] = field(default_factory=list)


class AnnotationWriter:
    """Writes the annotation of one file's documents and counts it in the report.

    ``Doc.spans[key]`` gets all spans, ``Doc.ents`` those that do not overlap another. Other tokens
    of a span that is not an entity have missing entity annotation, not "outside". Repeated spans
    and relations are written once. A relation between a span and itself is left out: relations are
    stored by the tokens of head and tail.
    """

    def __init__(self, key: str, report: Report) -> None:
        self.key = key
        self.report = report
        self.pairs_without_relation = 0
        self._n_spans = 0
        self._n_ents = 0
        self._n_overlap_docs = 0
        self._first_overlap = ""

    def write(self, parsed: ParsedDoc, location: str, sentences: int = 0) -> Doc:
        """Set a document's annotation; ``location`` is its position in the file, for the report."""
        spans = self._without_repeats(parsed.spans, location)
        ents = self._set_spans(parsed.doc, spans, parsed.unknown)
        self._n_spans += len(spans)
        self._n_ents += len(ents)
        if len(ents) < len(spans):
            self._n_overlap_docs += 1
            self._first_overlap = self._first_overlap or location
        self._set_types(parsed.types, location)
        self._set_relations(parsed, location)
        self.report.add_doc(parsed.doc, spans, sentences)
        return parsed.doc

    def finish(self, no_relation: str = "") -> None:
        """Add the totals to the report. no_relation: the format's label for "no relation"."""
        key, report = self.key, self.report
        report.notes.append(
            f"doc.spans[{key!r}] contains {self._n_spans} spans, doc.ents {self._n_ents} of them"
        )
        if no_relation:
            report.notes.append(
                f"{self.pairs_without_relation} pairs are labelled {no_relation!r}: they get no "
                "relation"
            )
        if self._n_overlap_docs:
            what = f"overlapping spans kept in doc.spans[{key!r}] and left out of doc.ents"
            location = f"{self._first_overlap}; {self._n_overlap_docs} documents"
            report.count(what, location, self._n_spans - self._n_ents)

    def _without_repeats(self, spans: Sequence[Span], location: str) -> list[Span]:
        distinct: dict[tuple[int, ...], Span] = {}
        for span in spans:
            distinct.setdefault((span.start, span.end, span.label, span.kb_id, span.id), span)
        if len(distinct) < len(spans):
            self.report.count("repeated spans taken once", location, len(spans) - len(distinct))
        return list(distinct.values())

    def _set_spans(self, doc: Doc, spans: list[Span], unknown: Iterable[int]) -> list[Span]:
        """Set ``doc.spans[key]`` and ``doc.ents``. Returns the entities.

        Example: of the spans [0, 2), [1, 3) and [4, 5), spans_per_token is [1, 2, 1, 0, 1]. The
        last span is an entity, and tokens 0 to 2 are missing.
        """
        doc.spans[self.key] = spans
        spans_per_token = [0] * len(doc)
        for span in spans:
            for i in range(span.start, span.end):
                spans_per_token[i] += 1
        ents = [span for span in spans if set(spans_per_token[span.start : span.end]) == {1}]
        inside = {i for ent in ents for i in range(ent.start, ent.end)}
        missing = {i for i, n in enumerate(spans_per_token) if n}.union(unknown) - inside
        doc.set_ents(ents, missing=[doc[i : i + 1] for i in sorted(missing)], default="outside")
        return ents

    def _set_types(self, types: Iterable[tuple[Span, tuple[str, ...]]], location: str) -> None:
        for span, names in types:
            earlier = get_types(span)
            if earlier is not None:
                what = "types given more than once for the same place, put together"
                self.report.count(what, location)
            else:
                self.report.typed_spans += 1
            earlier = earlier or {}
            set_types(span, {**earlier, **dict.fromkeys(names, 1.0)})
            self.report.types.update(name for name in names if name not in earlier)

    def _set_relations(self, parsed: ParsedDoc, location: str) -> None:
        relations: dict[tuple[int, int, int, int, str], Relation] = {}
        for head, tail, label in parsed.relations:
            if head is None or tail is None:
                self.report.count("relations left out: one of their spans was", location)
                continue
            key = (head.start, head.end, tail.start, tail.end, label)
            if key[:2] == key[2:4]:
                self.report.count("relations left out: both sides are the same span", location)
            elif key in relations:
                self.report.count("repeated relations taken once", location)
            else:
                relations[key] = Relation(head, tail, label)
        set_relations(parsed.doc, relations.values())
        self.report.relations.update(relation.label for relation in relations.values())
