"""Training on mentions that the knowledge base's counts contain: each is left out of its own prior.

Where aliases were counted in the texts that a linker learns from (links of a wiki), the prior of a
mention contains its own answer. (If each document counts once, however often it repeats a link, one
less is without the document.) A rare meaning that was counted once, there, is then a candidate
that only the text speaks for; in other texts it would be no candidate at all. A linker that learns
from such mentions trusts the prior too little.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache, cached_property

import numpy as np

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
_MOST_ALONE = 0.9
"""Of the gold links, that may teach nothing. In a wiki more than half have a name and entity that
one article alone links; names with several meanings are seldom among them."""


def leave_out(query: LinkQuery, targets: Targets) -> tuple[LinkQuery, Targets]:
    """The query and targets of an update with priors as if each mention had not been counted. A
    mention whose right candidate was counted nowhere else teaches nothing, unless it is that
    entity's name (:func:`.priors_without`).

    Mentions with several right candidates stay as they are, and those whose candidates have other
    priors than the counts.
    """
    tables = query.kb.tables
    if not tables.has_counts:
        return query, targets
    classes, known = (x.copy() for x in targets)
    features, prior_known = query.features.copy(), query.prior_known.copy()
    left = cache(lambda text, row: priors_without(tables, text, row))
    for i, row, text, count in _gold_counts(query, classes):
        if not count:
            continue
        priors = left(text, row)
        if row not in priors:
            classes[i], known[i] = 0.0, False
            continue
        for k in np.flatnonzero(query.prior_known[i]):
            prior, prior_known[i, k] = priors.get(int(query.rows[i, k]), (0.0, True))
            features[i, k, 0] = np.log(max(prior, LEAST_PRIOR))
    return replace(query, features=features, prior_known=prior_known), (classes, known)


def _gold_counts(query: LinkQuery, classes: Array) -> Iterator[tuple[int, int, str, float]]:
    """The mentions with one right candidate: number, row of the candidate, text, and how often this
    was counted; 0 if the candidate's prior is not that of the counts. classes: (n, 1 + K) targets,
    "NIL" first."""
    mentions = [span for spans in query.by_doc for span in spans]
    meanings = cache(lambda text: equal_meanings(query.kb.tables, text))
    for i in np.flatnonzero(classes[:, 1:].sum(-1) == 1).tolist():
        j = int(classes[i].argmax()) - 1  # the others of this row are 0
        text, row = mentions[i].text, int(query.rows[i, j])
        count, prior = meanings(text).get(row, (0.0, 0.0))
        same = np.isclose(query.features[i, j, 0], np.log(max(prior, LEAST_PRIOR)), atol=1e-3)
        yield i, row, text, count if same and query.prior_known[i, j] else 0.0


class CountedLinks:
    """How many of the gold links the counts of aliases contain, if these are numbers of documents.
    Numbers of links are not less."""

    def __init__(self, tables: Tables):
        self._tables = tables
        self._links: Counter[tuple[str, int]] = Counter()
        self._docs: Counter[tuple[str, int]] = Counter()
        self._counts: dict[tuple[str, int], float] = {}

    def add(self, query: LinkQuery, classes: Array) -> None:
        """The gold links of some whole documents. classes: (n, 1 + K) targets."""
        of_docs = set()
        for i, row, text, count in _gold_counts(query, classes):
            link = normalize_name(text, self._tables.lang), row
            self._links[link] += 1
            of_docs.add((int(query.of_doc[i]), link))
            self._counts[link] = min(count, self._counts.get(link, count))
        self._docs.update(link for _, link in of_docs)

    @cached_property
    def alone(self) -> int:
        """After all were added: links whose entity would not be among the candidates without
        them."""
        tables = self._tables
        once = {x: n for x, n in self._links.items() if 0 < self._counts[x] <= 1}
        return sum(
            n for (text, row), n in once.items() if row not in priors_without(tables, text, row)
        )

    def are_left_out(self, name: str, n_other: int) -> bool:
        """Whether the counts contain them, and not nearly all of them would then teach nothing;
        this is logged for a component. n_other: gold links of other entities than candidates, which
        the counts do not contain."""
        shares = {x: min(1.0, self._counts[x] / self._docs[x]) for x in self._links}
        counted = sum(n * shares[link] for link, n in self._links.items())
        total = self._links.total()
        if not counted or counted < _ENOUGH * (total + n_other):
            return False
        if self.alone > _MOST_ALONE * total:
            LOGGER.warning(
                "%s: the counts of aliases contain the links of the training data, but %d of %d "
                "would teach nothing without their own count. So they keep it, and the linker "
                "learns to trust priors less than it should in other texts.",
                name,
                self.alone,
                total,
            )
            return False
        LOGGER.info(
            "%s: the counts of aliases contain the links of the training data. So each is left out "
            "of its own prior in training (setting leave_one_out). %d of %d have a name and entity "
            "that were counted once, and teach nothing.",
            name,
            self.alone,
            total,
        )
        return True
