"""``Doc._.queries`` and ``Doc._.completions``: sentences with a gap, and the entities of a document
that belong in it."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from spacy.tokens import Doc, Span

from ..errors import InputError
from .given import list_of, name_of, probability, row_of, span_of
from .mentions import UNLINKED, characters, spans_of
from .span_values import data_of

PLACEHOLDER = "@placeholder"
"""The gap in the text of a query."""
# The form of spaCy's own keys for custom attributes of documents, so DocBin keeps them.
QUERIES = ("._.", "luke_queries", None, None)
COMPLETIONS = ("._.", "luke_completions", None, None)


class Query(NamedTuple):
    """text: contains ``@placeholder`` once. candidates: spans of the document, in text order; None:
    those of ``Doc.ents``, or of the component's spans group."""

    text: str
    candidates: tuple[Span, ...] | None = None


class Completion(NamedTuple):
    """An entity for the gap.

    text: of its best mention. mentions: in text order; in gold documents none if the text does not
    contain it. score: a probability.
    """

    text: str
    mentions: tuple[Span, ...]
    score: float = 1.0


class Completions(NamedTuple):
    """The candidates for a query, each entity once, best first. In a gold document all are right;
    none means that the right ones are not known."""

    query: str
    candidates: tuple[Completion, ...]

    @property
    def best(self) -> Completion | None:
        """The best candidate; None if there is none."""
        return self.candidates[0] if self.candidates else None


class Offsets(NamedTuple):
    """A completion by the characters [start, end) of its mentions, for any tokenisation."""

    text: str
    mentions: list[tuple[int, int]]
    score: float = 1.0


def get_queries(doc: Doc) -> tuple[Query, ...]:
    """The queries about a document, in the order in which they were set.

    A candidate that begins or ends inside a token becomes the span that contains it. A candidate
    outside the text, as in a part of a document, is left out.
    """
    return tuple(
        Query(text, None if stored is None else _candidates(doc, stored))
        for text, stored in data_of(doc).get(QUERIES, ())
    )


def set_queries(doc: Doc, queries: Iterable[str | Query | tuple[str, Any]]) -> None:
    """Replace the queries about a document, and remove the completions. Each is a string, or (text,
    candidates). Of candidates, characters, label and ``kb_id_`` are kept. Equal queries are
    allowed.

    Raises InputError for a text that does not contain ``@placeholder`` exactly once (so for an
    empty one), for one string instead of a list, for other types, and for a candidate that is empty
    or not a span of the document.
    """
    stored = []
    for item in list_of(queries, "Doc._.queries", "queries"):
        form = "a string or (text, candidates)"
        text, candidates = (
            Query(item) if isinstance(item, str) else row_of(item, Query, "A query", form)
        )
        check_query(text)
        rows = None
        if candidates is not None:
            spans = list_of(candidates, "The candidates of a query", "spans")
            checked = [span_of(doc, x, "A candidate") for x in spans]
            by_place = {(x.start, x.end): x for x in checked}
            rows = [_row(by_place[place]) for place in sorted(by_place)]
        stored.append([str(text), rows])
    clear_completions(doc)
    data_of(doc)[QUERIES] = stored


def check_query(text: str) -> None:
    """Raise InputError if a text does not contain the placeholder exactly once."""
    if not isinstance(text, str):
        raise InputError(f"A query is {text!r}, not a string.")
    n = text.count(PLACEHOLDER)
    if n != 1:
        raise InputError(f"The query {text[:80]!r} contains {PLACEHOLDER} {n} times, not once.")


def query_texts(doc: Doc) -> list[str]:
    """The texts of the queries about a document."""
    return [text for text, _ in data_of(doc).get(QUERIES, ())]


def copy_queries(source: Doc, target: Doc) -> None:
    """Copy the queries to a document with the same text; its completions are removed."""
    clear_completions(target)
    if QUERIES in data_of(source):
        data_of(target)[QUERIES] = [
            [text, None if rows is None else [list(row) for row in rows]]
            for text, rows in data_of(source)[QUERIES]
        ]


def candidates_of(doc: Doc, query: Query, spans_key: str | None) -> list[Span]:
    """The candidates of a query in text order, without white space: its own, or the spans of
    ``Doc.ents`` or of a spans group."""
    spans = spans_of(doc, spans_key) if query.candidates is None else query.candidates
    return [span for span in spans if span.text.strip()]


def merge_mentions(spans: Sequence[Span]) -> list[list[int]]:
    """Group spans by entity: those with the same ``kb_id_``, and those with the same text that have
    none. If all linked spans of a text have one ``kb_id_``, spans of this text without one are
    mentions of that entity, too.

    Returns the indices of the spans of each entity, in the order of first mentions.
    """
    linked: dict[str, set[str]] = defaultdict(set)
    for span in spans:
        if span.kb_id_ not in UNLINKED:
            linked[span.text].add(span.kb_id_)
    entities: dict[tuple[str, str], list[int]] = {}
    for i, span in enumerate(spans):
        ids = linked[span.text]
        key = ("text", span.text)
        if span.kb_id_ not in UNLINKED:
            key = ("id", span.kb_id_)
        elif len(ids) == 1:
            key = ("id", min(ids))
        entities.setdefault(key, []).append(i)
    return list(entities.values())


def change_queries(doc: Doc, change: Callable[[str], str]) -> None:
    """Change the texts of the queries, except the placeholders, and those of the completions.

    change: a text to one with the same number of characters."""
    stored, completions = data_of(doc).get(QUERIES), completion_offsets(doc)
    if stored:
        data_of(doc)[QUERIES] = [
            [PLACEHOLDER.join(map(change, text.split(PLACEHOLDER))), rows] for text, rows in stored
        ]
    if completions:
        changed = [[x._replace(text=change(x.text)) for x in items] for items in completions]
        set_completion_offsets(doc, changed)


def clear_queries(doc: Doc) -> None:
    """Remove all queries and completions from a document."""
    data_of(doc).pop(QUERIES, None)
    clear_completions(doc)


def has_completions(doc: Doc) -> bool:
    """Whether the completions of a document were set, including to none."""
    return COMPLETIONS in data_of(doc)


def clear_completions(doc: Doc) -> None:
    """Remove all completions from a document. Its queries remain."""
    data_of(doc).pop(COMPLETIONS, None)


def get_completions(doc: Doc) -> tuple[Completions, ...]:
    """The completions of each of ``Doc._.queries``; empty if they were not set. Mentions outside
    the text are left out."""
    return tuple(
        Completions(query, tuple(_completion(doc, item) for item in items))
        for query, items in zip(query_texts(doc), completion_offsets(doc))
    )


def completion_offsets(doc: Doc) -> list[list[Offsets]]:
    """The completions of each query by characters; empty if they were not set."""
    return [
        [Offsets(text, [(a, b) for a, b in mentions], score) for text, mentions, score in items]
        for items in data_of(doc).get(COMPLETIONS, ())
    ]


def set_completions(doc: Doc, completions: Iterable[Completions | Iterable[Any]]) -> None:
    """Replace the completions. There is one item per query: :class:`Completions`, or a list of
    (text, mentions) or (text, mentions, score), best first.

    Raises InputError if there are more or fewer items than queries, for an item of another type or
    of another query, for a mention that is empty or not a span of the document, and for a score
    that is not a probability.
    """
    rows = []
    items = list_of(completions, "Doc._.completions", "the completions of each query")
    for item, text in zip(items, query_texts(doc)):
        if isinstance(item, Completions) and item.query != text:
            raise InputError(
                f"An item of Doc._.completions is of the query {item.query!r}, but the query there "
                f"is {text!r}. The items must be in the order of Doc._.queries."
            )
    for item in items:
        given = item.candidates if isinstance(item, Completions) else item
        rows.append(
            [
                _offsets(doc, row_of(x, Completion, "A completion", "(text, mentions, score)"))
                for x in list_of(given, "An item of Doc._.completions", "completions")
            ]
        )
    set_completion_offsets(doc, rows)


def set_completion_offsets(doc: Doc, completions: Sequence[Sequence[Offsets]]) -> None:
    """Replace the completions, given by characters; see :func:`set_completions`."""
    n_queries, length = len(query_texts(doc)), len(doc.text)
    if len(completions) != n_queries:
        raise InputError(
            f"Doc._.completions needs one item for each of the {n_queries} queries, got "
            f"{len(completions)}. Set Doc._.queries first."
        )
    for text, mentions, score in (x for items in completions for x in items):
        name_of(text, "The text of a completion")
        probability(score, "The score of a completion")
        for start, end in mentions:
            if not 0 <= start < end <= length:
                raise InputError(
                    f"A mention has the characters {start} to {end} of a text of {length}."
                )
    # Lists, because DocBin and bytes do not keep tuples.
    data_of(doc)[COMPLETIONS] = [
        [[x.text, [[int(a), int(b)] for a, b in x.mentions], float(x.score)] for x in items]
        for items in completions
    ]


def check_same_queries(predicted: Doc, reference: Doc) -> None:
    """Raise InputError if the predicted document has other queries than its reference."""
    found, wanted = query_texts(predicted), query_texts(reference)
    if found != wanted:
        raise InputError(
            f"The predicted document {predicted.text[:60]!r} has {len(found)} queries, which are "
            f"not the {len(wanted)} of its reference. Set Doc._.queries to the same queries; "
            "spacy-luke.PresetEntsCorpus.v1 and 'spacy luke evaluate' do so."
        )


def _offsets(doc: Doc, item: Completion) -> Offsets:
    spans = list_of(item.mentions, "The mentions of a completion", "spans")
    places = [characters(span_of(doc, span, "A mention")) for span in spans]
    return Offsets(item.text, places, item.score)


def _completion(doc: Doc, item: Offsets) -> Completion:
    mentions = _candidates(doc, [(start, end, "", "") for start, end in item.mentions])
    return Completion(item.text, mentions, item.score)


def _row(span: Span) -> list[Any]:
    return [span.start_char, span.end_char, span.label_, span.kb_id_]


def _candidates(doc: Doc, rows: Iterable[Sequence[Any]]) -> tuple[Span, ...]:
    spans, length = [], len(doc.text)
    for start, end, label, kb_id in rows:
        if end <= length:
            span = doc.char_span(start, end, label, kb_id=kb_id, alignment_mode="expand")
            assert span is not None  # offsets are checked when they are set
            spans.append(span)
    return tuple(spans)
