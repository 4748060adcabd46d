"""Count the gold spans that a ``luke_ner`` cannot predict, by reason."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import minibatch
from thinc.api import Model

from ..layers.span_network import SpanQuery
from ..layers.task_layer import fits
from ..report import log_lost
from .gold import GoldSpans, gold_spans, match_gold

Array = np.ndarray

_N_SHOWN = 3
"""How many spans that are not suggested the log names."""


def report_limits(
    name: str,
    examples: Iterable[Example],
    spans_key: str | None,
    make_query: Callable[[Sequence[Doc]], SpanQuery],
    model: Model,
) -> dict[str, int]:
    """Count and log all gold spans (``gold``; a repeated one once), and those that do not fit the
    tokens (``misaligned``), that are not suggested (``unsuggested``), whose tokens are those of
    another with another label, of which one is learned (``second label``), or that the model does
    not score (``too long``: too many pieces, or a token without pieces at an end).

    spans_key: None for ``Doc.ents``.
    """
    total = misaligned = unsuggested = second_label = too_long = n_unannotated = 0
    shown: list[str] = []
    for batch in minibatch(examples, 64):
        examples = list(batch)
        query = make_query([eg.predicted for eg in examples])
        gold = gold_spans(examples, spans_key)
        matched = match_gold(query.of_doc, query.table, gold, [len(doc) for doc in query.docs])
        fit = fits(model, query)
        is_suggested = np.zeros(len(gold.docs), dtype=bool)
        is_suggested[matched[matched >= 0]] = True
        n_suggested = int(is_suggested.sum())
        misaligned += int(gold.n_misaligned.sum())
        is_repeated = _are_at(gold, is_suggested, same_label=True) & ~is_suggested
        is_second = _are_at(gold, is_suggested) & ~is_suggested & ~is_repeated
        total += int((~is_repeated).sum()) + int(gold.n_misaligned.sum())
        second_label += int(is_second.sum())
        is_lost = ~is_suggested & ~is_second & ~is_repeated
        unsuggested += int(is_lost.sum())
        for i in np.flatnonzero(is_lost)[: _N_SHOWN - len(shown)]:
            shown.append(_described(query.docs[gold.docs[i]][gold.starts[i] : gold.ends[i]]))
        too_long += n_suggested - len(np.unique(matched[(matched >= 0) & fit]))
        n_unannotated += sum(not _is_annotated(eg.reference, spans_key) for eg in examples)
    n_lost = misaligned + unsuggested + second_label + too_long
    log_lost(
        n_lost,
        "%s: %d of %d gold spans cannot be predicted: %d do not fit the tokens, %d are not "
        "suggested (too long for the suggester, across a sentence start, or with white space at an "
        "end%s), %d have the tokens of another with another label, %d have too many pieces or a "
        "token without pieces at an end.",
        *(name, n_lost, total, misaligned, unsuggested),
        *("".join(f"; {x}" for x in shown), second_label, too_long),
    )
    what, remedy = "no annotation in Doc.ents", "set doc.ents = []"
    if spans_key:
        what, remedy = f"no spans group {spans_key!r}", "give it an empty group"
    log_lost(
        n_unannotated,
        "%s: %d documents have %s: they count as not annotated, and nothing is learned from them. "
        "If a document has no entities, %s.",
        *(name, n_unannotated, what, remedy),
    )
    return {
        "gold": total,
        "misaligned": misaligned,
        "unsuggested": unsuggested,
        "second label": second_label,
        "too long": too_long,
    }


def _is_annotated(doc: Doc, spans_key: str | None) -> bool:
    return not doc or (spans_key in doc.spans if spans_key else doc.has_annotation("ENT_IOB"))


def _are_at(gold: GoldSpans, chosen: Array, same_label: bool = False) -> Array:
    """(n,) whether each gold span has the tokens, or tokens and label, of one that is chosen."""
    columns = [gold.docs, gold.starts, gold.ends]
    if same_label:
        columns.append(np.unique(gold.labels, return_inverse=True)[1])
    places = np.stack(columns, axis=1)
    _, inverse = np.unique(places, axis=0, return_inverse=True)
    return np.isin(inverse.ravel(), inverse.ravel()[chosen])


def _described(span: Span) -> str:
    """A span that is not suggested, with what explains it."""
    starts = [token.text for token in span[1:] if token.is_sent_start]
    reason = f"a sentence starts at {starts[0]!r}" if starts else f"{len(span)} tokens"
    if span[0].is_space or span[-1].is_space:
        reason = "white space at an end"
    return f"{span.text!r}: {reason}"
