"""Training on mentions that the knowledge base's counts contain: each is left out of its own prior.

Where aliases were counted in the texts that a linker learns from (links of a wiki), the prior of a
mention contains its own answer. A rare meaning that was counted once, there, is then a candidate
that only the text speaks for; in other texts it would be no candidate at all. A linker that learns
from such mentions trusts the prior too little.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from spacy.tokens import Span

from ..kb.candidates import equal_meanings, priors_without
from ..kb.normalize import normalize_name
from ..kb.tables import Tables
from ..report import LOGGER
from .class_loss import Targets
from .link_candidates import LEAST_PRIOR
from .link_query import LinkQuery

Array = np.ndarray

_ENOUGH = 0.99
"""Of the gold links, that the counts contain: then they are of the same texts. (In a few, tokens
and annotation may differ.)"""


def mentions_of(query: LinkQuery) -> list[Span]:
    return [span for spans in query.by_doc for span in spans]


def one_gold(classes: Array) -> tuple[Array, Array]:
    """The mentions with one right candidate, and its number among the candidates. classes:
    (n, 1 + K) targets, "NIL" first."""
    rows = np.flatnonzero(classes[:, 1:].sum(-1) == 1)
    return rows, classes[rows].argmax(-1) - 1  # the others of these rows are 0


def leave_out(query: LinkQuery, targets: Targets) -> tuple[LinkQuery, Targets]:
    """The query and targets of an update with priors as if each mention had not been counted. A
    mention whose right candidate was counted nowhere else teaches nothing."""
    classes, known = (x.copy() for x in targets)
    features, tables = query.features.copy(), query.kb.tables
    mentions = mentions_of(query)
    for i, j in zip(*one_gold(classes)):
        if not query.prior_known[i, j]:
            continue
        row = int(query.rows[i, j])
        priors = priors_without(tables, mentions[i].text, row)
        if row not in priors:
            classes[i], known[i] = 0.0, False
            continue
        for k in np.flatnonzero(query.prior_known[i]):
            prior = priors.get(int(query.rows[i, k]), 0.0)
            features[i, k, 0] = np.log(max(prior, LEAST_PRIOR))
    return replace(query, features=features), (classes, known)


class CountedLinks:
    """How many of the gold links the counts of aliases contain."""

    def __init__(self, tables: Tables):
        self._tables = tables
        self._links: Counter[tuple[str, int]] = Counter()
        self._counts: dict[tuple[str, int], float] = {}

    def add(self, query: LinkQuery, classes: Array) -> None:
        """The gold links of some documents. classes: (n, 1 + K) targets. Those with another prior
        than that of the counts are not in them."""
        mentions: Sequence[Span] = mentions_of(query)
        for i, j in zip(*one_gold(classes)):
            text, row = mentions[i].text, int(query.rows[i, j])
            link = normalize_name(text, self._tables.lang), row
            self._links[link] += 1
            count, prior = equal_meanings(self._tables, text).get(row, (0.0, 0.0))
            same = np.isclose(query.features[i, j, 0], np.log(max(prior, LEAST_PRIOR)), atol=1e-3)
            self._counts[link] = count if same and query.prior_known[i, j] else 0.0

    def are_left_out(self, name: str) -> bool:
        """Whether the counts contain them, and at least half of them would still teach something;
        this is logged for a component."""
        counted = sum(min(n, self._counts[link]) for link, n in self._links.items())
        alone = sum(self._counts[link] == 1 for link in self._links)
        if not counted or counted < _ENOUGH * self._links.total():
            return False
        if alone > self._links.total() / 2:
            LOGGER.info(
                "%s: the counts of aliases contain the links of the training data, but %d of %d "
                "would teach nothing without their own count. So they keep it.",
                name,
                alone,
                self._links.total(),
            )
            return False
        LOGGER.info(
            "%s: the counts of aliases contain the links of the training data. So each is left out "
            "of its own prior in training (setting leave_one_out). %d of %d are the only ones with "
            "their name and entity, and teach nothing.",
            name,
            alone,
            self._links.total(),
        )
        return True
