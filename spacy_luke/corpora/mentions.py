"""Where the annotation of a document goes: spans, entities, types and relations."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from spacy.tokens import Doc, Span

from ..annotations.relations import Relation, set_relations
from ..annotations.types import get_types, has_types, set_types
from .report import Report


@dataclass
class Marked:
    """A document and what a file says about it.

    spans: the annotated spans, in the file's order.
    unknown: tokens of which it is not known whether they are part of an entity.
    types: spans and the names of their types; no name says that the span has none.
    relations: head, tail and label.
    """

    doc: Doc
    spans: list[Span] = field(default_factory=list)
    unknown: set[int] = field(default_factory=set)
    types: list[tuple[Span, tuple[str, ...]]] = field(default_factory=list)
    relations: list[tuple[Span, Span, str]] = field(default_factory=list)


class Writer:
    """Writes the annotation of one file's documents, and counts it in the report.

    ``Doc.spans[key]`` takes every span, ``Doc.ents`` those that share no token with another.
    Entity annotation is left missing, not set to "outside", on the other tokens under a span
    that could not be an entity. A span, or a relation, that is given twice is taken once. A
    relation between a span and itself is left out: relations are kept by place.
    """

    def __init__(self, key: str, report: Report) -> None:
        self.key = key
        self.report = report
        self.pairs_without_relation = 0
        self._spans = 0
        self._ents = 0
        self._mixed_docs = 0
        self._first = ""

    def write(self, marked: Marked, where: str, sentences: int = 0) -> Doc:
        """Set a document's annotation; ``where`` is its place in the file, for the report."""
        spans = self._without_repeats(marked.spans, where)
        ents = self._set_spans(marked.doc, spans, marked.unknown)
        self._spans += len(spans)
        self._ents += len(ents)
        if len(ents) < len(spans):
            self._mixed_docs += 1
            self._first = self._first or where
        self._set_types(marked.types, where)
        self._set_relations(marked, where)
        self.report.add_doc(marked.doc, spans, sentences)
        return marked.doc

    def finish(self, no_relation: str = "") -> None:
        """Write the totals of the file; ``no_relation`` is its name for having no relation."""
        key, report = self.key, self.report
        report.notes.append(
            f"doc.spans[{key!r}] holds {self._spans} spans, doc.ents {self._ents} of them"
        )
        if no_relation:
            report.notes.append(
                f"{self.pairs_without_relation} pairs are marked {no_relation!r}, which is kept as "
                "no relation"
            )
        if self._mixed_docs:
            what = f"overlapping spans kept in doc.spans[{key!r}] and left out of doc.ents"
            where = f"{self._first}; {self._mixed_docs} documents"
            report.count(what, where, self._spans - self._ents)

    def _without_repeats(self, spans: Sequence[Span], where: str) -> list[Span]:
        found: dict[tuple[int, ...], Span] = {}
        for span in spans:
            found.setdefault((span.start, span.end, span.label, span.kb_id, span.id), span)
        if len(found) < len(spans):
            self.report.count("repeated spans taken once", where, len(spans) - len(found))
        return list(found.values())

    def _set_spans(self, doc: Doc, spans: list[Span], unknown: Iterable[int]) -> list[Span]:
        """Set ``doc.spans[key]`` and ``doc.ents``; return the entities."""
        doc.spans[self.key] = spans
        covered = [0] * len(doc)
        for span in spans:
            for i in range(span.start, span.end):
                covered[i] += 1
        ents = [span for span in spans if all(covered[i] == 1 for i in range(span.start, span.end))]
        inside = {i for ent in ents for i in range(ent.start, ent.end)}
        missing = {i for i, times in enumerate(covered) if times}.union(unknown) - inside
        doc.set_ents(ents, missing=[doc[i : i + 1] for i in sorted(missing)], default="outside")
        return ents

    def _set_types(self, types: Iterable[tuple[Span, tuple[str, ...]]], where: str) -> None:
        for span, names in types:
            known = get_types(span)
            if has_types(span):
                what = "types given more than once for the same place, put together"
                self.report.count(what, where)
            else:
                self.report.typed_spans += 1
            set_types(span, {**known, **dict.fromkeys(names, 1.0)})
            self.report.types.update(name for name in names if name not in known)

    def _set_relations(self, marked: Marked, where: str) -> None:
        found: dict[tuple[int, int, int, int, str], Relation] = {}
        for head, tail, label in marked.relations:
            place = (head.start, head.end, tail.start, tail.end, label)
            if place[:2] == place[2:4]:
                self.report.count("relations left out: both sides are the same span", where)
            elif place in found:
                self.report.count("repeated relations taken once", where)
            else:
                found[place] = Relation(head, tail, label)
        set_relations(marked.doc, found.values())
        self.report.relations.update(relation.label for relation in found.values())
