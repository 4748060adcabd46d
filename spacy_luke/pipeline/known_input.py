"""Known spans of documents as an input of span classification."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from spacy.tokens import Doc
from thinc.types import Ragged

from ..annotations.mentions import all_spans
from ..layers.known_spans import Known, known_features
from ..layers.span_network import SpanQuery
from ..report import LOGGER

Array = np.ndarray

HIDDEN = 0.3
"""The share of known spans whose ids training does not see, so that the classifier also learns from
[MASK]."""
_MANY = 20
"""Known spans from which it is told that none has a learned label."""
_SHOWN = 5


def read_known(docs: Sequence[Doc], key: str, labels: Sequence[str]) -> Known:
    """The known spans of documents: those of a spans group. A document without it has none. Ids are
    ``kb_id_``, or ``id_``, where ``span_ruler`` writes them.

    labels: those that the head has learned. Spans without tokens are left out, those that begin or
    end with white space, and those that are not on token boundaries any more, after tokens were
    merged.
    """
    numbers = {label: i for i, label in enumerate(labels)}
    rows = [
        (i, span.start, span.end, numbers.get(span.label_, -1), span.kb_id_ or span.id_)
        for i, doc in enumerate(docs)
        for span in all_spans(doc, key)
        if span.end > span.start and not (span[0].is_space or span[-1].is_space)
    ]
    table = np.asarray([row[:4] for row in rows], dtype=np.int64).reshape(-1, 4)
    return Known(table[:, 0], table[:, 1], table[:, 2], table[:, 3], [row[4] for row in rows])


def hide_ids(known: Known) -> Known:
    """Known spans of which a random share of places has no ids. Their labels stay: what these say
    is learned apart from the text (:meth:`.SpanScorer.score`)."""
    if not any(known.titles):
        return known
    places = np.stack([known.docs, known.starts, known.ends], 1)
    _, number = np.unique(places, axis=0, return_inverse=True)
    number = number.reshape(-1)
    hidden = (np.random.random(int(number.max()) + 1) < HIDDEN)[number]
    return known._replace(titles=["" if h else x for x, h in zip(known.titles, hidden)])


def with_known(query: SpanQuery, known: Known, n_labels: int) -> SpanQuery:
    """A query that also asks about all known spans. The query itself if there are none."""
    if not len(known.docs):
        return query
    table, of_doc = query.table, query.of_doc
    known_table = np.stack([known.starts, known.ends], 1)
    size = int(max(table.max(initial=0), known_table.max())) + 1
    of_known = _keys(known.docs, known_table, size)
    _, first = np.unique(of_known, return_index=True)
    more = first[~np.isin(of_known[first], _keys(of_doc, table, size))]
    suggested = np.ones(len(table), dtype=bool)
    if len(more):
        of_doc = np.concatenate([of_doc, known.docs[more]])
        order = np.argsort(of_doc, kind="stable")
        of_doc, table = of_doc[order], np.concatenate([table, known_table[more]])[order]
        suggested = np.append(suggested, np.zeros(len(more), dtype=bool))[order]
    lengths = np.bincount(of_doc, minlength=len(query.docs))
    spans: Any = Ragged(table.astype("int32"), lengths.astype("int32"))  # type: ignore[arg-type]
    features = known_features(table, of_doc, known, n_labels)
    return SpanQuery(query.docs, spans, known=features, suggested=suggested)


def _keys(docs: Array, table: Array, size: int) -> Array:
    """A number for each place. size: larger than every token of ``table``."""
    return (docs * size + table[:, 0]) * size + table[:, 1]


def labels_of(docs: Iterable[Doc], key: str) -> list[str]:
    """The labels of a spans group."""
    return sorted({span.label_ for doc in docs for span in all_spans(doc, key)})


class KnownWarnings:
    """What is logged once of the groups of known spans of a component. Its name, and that of the
    group, may change."""

    def __init__(self) -> None:
        self._is_told = False
        self._n_unlearned: int | None = 0
        """Known spans until one had a label that was learned; None: told, or there was one."""

    def of_groups(self, name: str, key: str, docs: Sequence[Doc]) -> None:
        """Warn if no document has the group, which is not an empty one."""
        if docs and not self._is_told and all(key not in doc.spans for doc in docs):
            self._is_told = True
            LOGGER.warning(
                "%s.known is %r, and a document has no such spans group: nothing is known of it. "
                "A component before %s must write it. This warning is logged once.",
                *(name, key, name),
            )

    def of_labels(
        self, name: str, key: str, docs: Sequence[Doc], known: Known, learned: Sequence[str]
    ) -> None:
        """Warn if none of many known spans has a label that the head has learned."""
        n_before = self._n_unlearned
        if n_before is None:
            return
        n_unlearned = n_before + len(known.docs)
        is_told = (known.labels >= 0).any() or n_unlearned >= _MANY
        self._n_unlearned = None if is_told else n_unlearned
        if is_told and not (known.labels >= 0).any():
            LOGGER.warning(
                "None of the first %d spans of the group %r has a label that %s has learned "
                "(learned: %s; found: %s): they count as known, and what their labels say is "
                "lost. Labels are learned by a training that begins anew, without a source. This "
                "warning is logged once.",
                *(n_unlearned, key, name, _some(learned)),
                _some(labels_of(docs, key)),
            )


def _some(labels: Sequence[str]) -> str:
    shown = [*map(repr, labels[:_SHOWN]), *(["..."] if len(labels) > _SHOWN else [])]
    return ", ".join(shown) or "none"
