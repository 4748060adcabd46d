"""Links of mentions: writing them, and the gold ones as targets."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from spacy.tokens import Doc, Span, SpanGroup
from spacy.training import Example

from ..annotations.annotated import is_annotated
from ..annotations.group_spans import spans_by_row
from ..annotations.mentions import Place, all_spans
from ..kb.entity import NIL
from ..kb.text_table import TextTable
from ..metrics.relations import common_places
from ..report import LOGGER, log_lost
from .class_loss import Targets

Array = np.ndarray

FIRST = "first candidate"


def spans_to_link(
    doc: Doc, key: str | None, discarded: Collection[str]
) -> tuple[list[Span], list[set[str]]]:
    """The mentions of ``Doc.ents`` or of a spans group that are linked, in text order, and all
    labels of each: spans with equal tokens are one mention, and that with a link is returned.

    discarded: labels of spans that are left as they are.
    """
    by_place: dict[Place, Span] = {}
    labels: dict[Place, set[str]] = defaultdict(set)
    for span in all_spans(doc, key):
        if len(span) and span.label_ not in discarded:
            place = span.start, span.end
            if span.kb_id or place not in by_place:
                by_place[place] = span
            labels[place].add(span.label_)
    places = sorted(by_place)
    return [by_place[place] for place in places], [labels[place] for place in places]


def write_links(doc: Doc, ids: Mapping[Place, str], settings: Mapping[str, Any]) -> None:
    """Set ``kb_id_`` of the mentions at some places, tokens [start, end).

    settings: ``spans_key``: the group; None for ``Doc.ents``. ``overwrite``: also if a mention has
    a link. ``labels_discard``: labels of spans that keep theirs.
    """
    key = settings["spans_key"]

    def new_id(span: Span) -> str | None:
        if span.label_ in settings["labels_discard"]:
            return None
        return ids.get((span.start, span.end)) if settings["overwrite"] or not span.kb_id else None

    if key is None:
        for ent in doc.ents:
            new = new_id(ent)
            if new is not None:
                for token in ent:
                    token.ent_kb_id_ = new
    elif key in doc.spans:
        group = doc.spans[key]
        rows = spans_by_row(doc, group)
        kept = [i for i, span in enumerate(rows) if span is not None]
        spans = [_linked(span, new_id(span)) for span in rows if span is not None]
        attrs = {name: _of_rows(value, len(rows), kept) for name, value in group.attrs.items()}
        doc.spans[key] = SpanGroup(doc, name=group.name, attrs=attrs, spans=spans)


def _of_rows(values: Any, n_rows: int, kept: Sequence[int]) -> Any:
    """An attribute of a spans group of which some spans are kept: values of spans, such as
    ``scores``, a list, tuple or array (n_rows, ...), are those of the kept ones; others stay."""
    if len(kept) == n_rows:
        return values
    if isinstance(values, list | tuple):
        return [values[i] for i in kept] if len(values) == n_rows else values
    is_array = getattr(values, "ndim", 0) > 0 and len(values) == n_rows
    return values[list(kept)] if is_array else values


def _linked(span: Span, new: str | None) -> Span:
    kb_id = span.kb_id_ if new is None else new
    return Span(span.doc, span.start, span.end, span.label_, kb_id=kb_id, span_id=span.id_)


def gold_ids(
    examples: Sequence[Example],
    by_doc: Sequence[Sequence[Span]],
    key: str | None,
    discard: Collection[str],
) -> Iterator[set[str]]:
    """The gold ids of each mention of the predicted documents; none if it is not annotated, or has
    a label of ``discard`` there."""
    for eg, mentions in zip(examples, by_doc, strict=True):
        gold = reference_links(eg, key, discard)
        place_of = common_places(eg, eg.predicted)
        for span in mentions:
            yield gold.get(place_of((span.start_char, span.end_char)), set())


def reference_links(
    eg: Example, key: str | None, discard: Collection[str]
) -> dict[Place, set[str]]:
    """The annotated links of an example: the place of a mention, comparable with those of predicted
    mentions -> its ids, which may be "NIL". discard: labels whose mentions do not count."""
    links: dict[Place, set[str]] = defaultdict(set)
    doc, place_of = eg.reference, common_places(eg, eg.reference)
    if is_annotated(doc, "ents"):
        for span in all_spans(doc, key):
            if span.kb_id_ and span.label_ not in discard:
                links[place_of((span.start_char, span.end_char))].add(span.kb_id_)
    return links


def link_targets(
    gold: Iterable[set[str]], rows: Array, ids: TextTable, has_nil: bool = True
) -> Targets:
    """Targets (n, 1 + K): "NIL", and each candidate. Not known are mentions that are not annotated,
    and those whose gold entity is not a candidate.

    rows: (n, K) of candidates in the knowledge base, -1 where there is none. has_nil: whether "NIL"
    can be predicted; else mentions that are "NIL" are not known.
    """
    targets = np.zeros((len(rows), 1 + rows.shape[1]), dtype=np.float32)
    for target, own, names in zip(targets, rows, gold, strict=True):
        found = [ids.find(name) for name in names - {NIL}]
        target[1:] = np.isin(own, [row for row in found if row is not None])
        target[0] = has_nil and names == {NIL}
    return targets, np.asarray(targets.any(axis=1))


def count_links(
    counts: dict[str, int],
    examples: Sequence[Example],
    by_doc: Sequence[Sequence[Span]],
    rows: Array,
    fit: Array,
    ids: TextTable,
    key: str | None,
    discard: Collection[str],
) -> None:
    """Add to ``counts``: all predicted mentions, gold "NIL" and those of them that teach nothing
    (they are no mention, too long or without candidates), gold links, those that cannot be learned,
    by reason, and those whose first candidate is right.

    by_doc: the mentions of each predicted document. rows: (n, K) of their candidates. fit: (n,)
    whether a window contains a mention. discard: labels whose mentions do not count.
    """
    row = 0
    for eg, mentions in zip(examples, by_doc, strict=True):
        place_of = common_places(eg, eg.predicted)
        row_of = {place_of((x.start_char, x.end_char)): row + i for i, x in enumerate(mentions)}
        row += len(mentions)
        counts["mentions"] += len(mentions)
        for place, names in reference_links(eg, key, discard).items():
            own = row_of.get(place)
            if names == {NIL}:
                counts["NIL"] += 1
                learned = own is not None and fit[own] and (rows[own] >= 0).any()
                counts["NIL out of reach"] += not learned
                continue
            counts["gold"] += 1
            known = [found for name in names if (found := ids.find(name)) is not None]
            if own is None:
                counts["no mention"] += 1
            elif not fit[own]:
                counts["too long"] += 1
            elif not known:
                counts["unknown id"] += 1
            elif not np.isin(rows[own], known).any():
                counts["no candidate"] += 1
            else:
                counts[FIRST] += rows[own, 0] in known


def report_links(
    name: str, counts: Mapping[str, int], n_docs: int, key: str | None, k: int
) -> None:
    """Log what :func:`count_links` counted for a component in ``n_docs`` documents. key: the spans
    group of the mentions, or None. k: the most candidates of a mention."""
    # A pipeline that is initialised without data gets one document, which spaCy makes.
    if n_docs > 1 and not counts["mentions"] + counts["gold"] + counts["NIL"]:
        where = "Doc.ents" if key is None else f"the spans group {key!r}"
        LOGGER.warning(
            "%s: none of the %d documents of the data has a mention in %s, so there is nothing to "
            "learn. spans_key says where mentions are.",
            name,
            n_docs,
            where,
        )
    lost = [counts[x] for x in ("no mention", "too long", "unknown id", "no candidate")]
    if counts["mentions"] and not counts["gold"] + counts["NIL"]:
        LOGGER.warning(
            "%s: none of the %d mentions of the data has a kb_id_ in the references, so there is "
            'nothing to learn. ("NIL" means that a mention is none of the entities.)',
            name,
            counts["mentions"],
        )
    if not counts["gold"] + counts["NIL"]:
        return
    found = counts["gold"] - sum(lost)
    log_lost(
        sum(lost),
        "%s: of %d gold links %d have the right entity among their candidates (recall at %d, the "
        "most candidates of a mention: %.1f %%; at 1: %.1f %%). The others cannot be learned: %d "
        "are not entities of the documents, %d are longer than a window, %d have an id that is not "
        'in the knowledge base, and %d have other candidates or none. %d mentions are "NIL".',
        name,
        counts["gold"],
        found,
        k,
        100 * found / max(counts["gold"], 1),
        100 * counts[FIRST] / max(counts["gold"], 1),
        *lost,
        counts["NIL"],
    )
