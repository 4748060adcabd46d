"""How many gold spans a luke_ner can never find, and why."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import minibatch
from thinc.api import Model

from ..layers.span_network import SpanQuery
from ..layers.task_layer import fits
from ..report import tell
from .gold import gold_spans, match_gold


def report_limits(
    name: str,
    examples: Iterable[Example],
    spans_key: str | None,
    make_query: Callable[[Sequence[Doc]], SpanQuery],
    model: Model,
) -> dict[str, int]:
    """Count the gold spans (``gold``), those that do not fit the tokens (``misaligned``), that are
    not suggested (``unsuggested``), and that the network's limits exclude (``unaskable``); and say
    so. spans_key: None for ``Doc.ents``."""
    total = misaligned = unsuggested = unaskable = n_absent = 0
    for batch in minibatch(examples, 64):
        examples = list(batch)
        query = make_query([eg.predicted for eg in examples])
        gold = gold_spans(examples, spans_key)
        matched = match_gold(query.of_doc, query.table, gold, [len(doc) for doc in query.docs])
        fit = fits(model, query)
        n_suggested = len(np.unique(matched[matched >= 0]))
        total += len(gold.docs) + int(gold.n_misaligned.sum())
        misaligned += int(gold.n_misaligned.sum())
        unsuggested += len(gold.docs) - n_suggested
        unaskable += n_suggested - len(np.unique(matched[(matched >= 0) & fit]))
        n_absent += sum(spans_key not in eg.reference.spans for eg in examples if spans_key)
    lost = misaligned + unsuggested + unaskable
    tell(
        lost,
        "%s: %d of %d gold spans cannot be predicted: %d do not fit the tokens, %d are not "
        "suggested, %d have too many pieces, or a token without any at an end.",
        *(name, lost, total, misaligned, unsuggested, unaskable),
    )
    tell(
        n_absent,
        "%s: %d documents have no spans group %r: they count as not annotated, and nothing is "
        "learned from them. Where there is nothing to find, give them an empty group.",
        *(name, n_absent, spans_key),
    )
    return {
        "gold": total,
        "misaligned": misaligned,
        "unsuggested": unsuggested,
        "unaskable": unaskable,
    }
