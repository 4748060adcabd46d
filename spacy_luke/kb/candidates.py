"""The entities that a mention may mean: by its text as written, normalised, or similar to it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

import numpy as np
from pydantic import Field
from rapidfuzz import fuzz, process

from ..validation import Count, check_settings
from .arrays import Array
from .entity import check_texts
from .normalize import normalize_name
from .tables import Tables
from .whole_words import join_unspaced

Match = Literal["exact", "normalised", "fuzzy", "nearest"]
Fuzzy = Literal["never", "fallback", "always"]
Likeness = Annotated[float, Field(gt=0, le=1)]

_MOST_CHARACTERS = 1_000
"""Longer texts are not compared with aliases; they may equal one."""
DIGITS = 6
"""Of likenesses, which are rounded before they are compared."""
SMOOTHING = 0.1
"""The share of the prior by all spellings of an alias where one is equal as it is written. Measured
in docs/knowledge_base.md."""
_SIMILAR_COST = 50
"""In lookups of equal aliases, by the memory that is read."""


@dataclass(frozen=True)
class CandidateSettings:
    """k: maximum number of candidates per mention.

    fuzzy: ``fallback`` searches similar aliases if none is equal; ``always`` also if there are
    fewer than ``k`` candidates by equal aliases; ``never``.

    min_likeness: of similar aliases, above 0, at most 1 (equal).

    shortlist: number of aliases, those that share most trigrams, whose likeness is computed.
    budget: number of entries of the trigram index that are read per mention.
    """

    k: Count = 30
    fuzzy: Fuzzy = "fallback"
    min_likeness: Likeness = 0.6
    shortlist: Count = 300
    budget: Count = 300_000

    def __post_init__(self) -> None:
        check_settings("candidates", CandidateSettings, vars(self))


@dataclass(frozen=True)
class FoundEntity:
    """row: of the entity. form: row of an alias that means it. prior: probability of the entity,
    given the text. likeness: of the alias and the mention, 1 if they are equal or equal when
    normalised; if the match is ``nearest``, of their vectors. counted: whether the prior of an
    equal alias was counted or given; of similar ones it is not asked."""

    row: int
    form: int
    prior: float
    match: Match
    likeness: float = 1.0
    counted: bool = False


def find_candidates(
    tables: Tables, mentions: Iterable[str], settings: CandidateSettings
) -> list[list[FoundEntity]]:
    """The candidates of each text: entities of equal aliases first, then of aliases that are equal
    when normalised, then of similar ones by decreasing likeness. Each of these is ordered by
    decreasing prior, and equal priors by the order of the file.

    Repeated texts are looked up once. Empty texts have no candidates. Raises InputError if
    ``mentions`` is one text.
    """
    check_texts(mentions, "mentions")
    texts = list(mentions)
    results = {}
    for text in dict.fromkeys(texts):
        results[text] = _candidates(tables, text, settings)
        tables.looked_up()
    return [results[text] for text in texts]


def _candidates(tables: Tables, text: str, settings: CandidateSettings) -> list[FoundEntity]:
    if not text.strip():
        return []
    name = normalize_name(text, tables.lang)
    results = {found.row: found for found in _equal(tables, text, name, settings.k)}
    wanted = {"never": False, "fallback": not results, "always": len(results) < settings.k}
    if wanted[settings.fuzzy] and len(name) <= _MOST_CHARACTERS:
        for found in _similar(tables, name, settings, settings.k + len(results)):
            results.setdefault(found.row, found)
    return list(results.values())[: settings.k]


class _Equal(NamedTuple):
    """The entities of equal aliases (n,), in the order of the file: priors, forms, whether a form
    is equal as it is written, whether the prior was counted or given, and the counts of all forms,
    NaN if one of them has none."""

    entities: Array
    priors: Array
    forms: Array
    exact: Array
    counted: Array
    weights: Array


def _equal(tables: Tables, text: str, name: str, k: int) -> Iterator[FoundEntity]:
    """The first ``k`` entities of equal aliases, by exact match, prior and order of the file.
    name: the normalised text."""
    found = _meanings(tables, text, name)
    if found is None:
        return
    order = np.lexsort((found.entities, -found.priors, ~found.exact))[:k]
    for row, prior, form, exact, counted, _ in zip(*(x[order].tolist() for x in found)):
        match: Match = "exact" if exact else "normalised"
        yield FoundEntity(row, form, prior, match, counted=counted)


def _meanings(tables: Tables, text: str, name: str, without: int | None = None) -> _Equal | None:
    """What a text means by equal aliases; None if there are none. without: an entity that counts
    one time fewer; it, and a spelling that it alone had, may then not exist."""
    key, form = tables.keys.find(name), tables.forms.find(text)
    if key is None and (joined := join_unspaced(text)) != text:
        key = tables.keys.find(normalize_name(joined, tables.lang))
    if key is None:
        return None
    if form is None:
        form = tables.forms.find(text.strip())
    of_key = tables.meanings_of_key(key, without)
    entities, priors, forms = of_key.entities, of_key.priors, of_key.forms
    counted, exact = of_key.counted, np.zeros(len(entities), bool)
    own = None if form is None else tables.meanings_of_form(form, without)
    if own is not None and len(own.entities):
        at = np.searchsorted(entities, own.entities)  # both are in the order of the file
        exact[at], forms[at], counted = True, own.forms, np.full(len(exact), own.counted.any())
        # One distribution: the alias as it is written, smoothed with all of its spellings.
        smoothed = SMOOTHING * priors
        smoothed[at] = own.priors + SMOOTHING * (priors[at] - own.priors)
        priors = smoothed
    return _Equal(entities, priors, forms, exact, counted, of_key.weights)


def equal_meanings(tables: Tables, text: str) -> dict[int, tuple[float, float]]:
    """The entities of aliases that equal a text, at least when normalised: row -> how often the
    aliases were counted to mean it (0 if one was not counted), and its prior. Empty if there are
    none, or if the weights of aliases are probabilities."""
    found = _meanings(tables, text, normalize_name(text, tables.lang))
    if found is None or not tables.has_counts:
        return {}
    counts = zip(np.nan_to_num(found.weights).tolist(), found.priors.tolist())
    return dict(zip(found.entities.tolist(), counts))


def priors_without(tables: Tables, text: str, row: int) -> dict[int, tuple[float, bool]]:
    """The entities of equal aliases if one mention of the entity ``row`` had not been counted:
    row -> prior, and whether it was counted or given. That entity is left out if the knowledge base
    would not have it (:meth:`.Tables.meanings_of_keys`). The weights of aliases must be counts."""
    found = _meanings(tables, text, normalize_name(text, tables.lang), row)
    if found is None:
        return {}
    return dict(zip(found.entities.tolist(), zip(found.priors.tolist(), found.counted.tolist())))


def _similar(tables: Tables, name: str, settings: CandidateSettings, n: int) -> list[FoundEntity]:
    """At least the best ``n`` entities, if there are as many: by decreasing likeness, then prior,
    then order of the file."""
    tables.looked_up(_SIMILAR_COST)
    keys = tables.trigrams.most_similar(name, settings.shortlist, settings.budget)
    scores = likeness(name, [tables.keys[key] for key in keys.tolist()])
    order = np.lexsort((keys, -scores))
    keys, scores = keys[order], scores[order]
    n_kept = int((scores >= settings.min_likeness).sum())
    n_keys = min(n, n_kept)
    while True:
        if n_keys:  # with all of the same likeness
            n_keys = min(n_kept, int((scores >= scores[n_keys - 1]).sum()))
        meanings = tables.meanings_of_keys(keys[:n_keys])
        likenesses = scores[meanings.aliases]
        best = best_entities(meanings.entities, meanings.forms, likenesses, meanings.priors, n)
        if len(best) == n or n_keys == n_kept:
            break
        n_keys = min(4 * n_keys, n_kept)
    columns = (meanings.entities, meanings.forms, meanings.priors, likenesses)
    rows = zip(*(column[best].tolist() for column in columns))
    return [FoundEntity(row, form, prior, "fuzzy", score) for row, form, prior, score in rows]


def best_entities(rows: Array, forms: Array, scores: Array, priors: Array, k: int) -> Array:
    """Which meanings (n,) are the best of the ``k`` best entities (m,): by decreasing score, then
    prior, then in the order of the file."""
    order = np.lexsort((forms, rows, -priors, -scores))
    _, firsts = np.unique(rows[order], return_index=True)
    return order[np.sort(firsts)[:k]]


def likeness(name: str, others: Sequence[str]) -> Array:
    """The likeness (n,) of a normalised name and others: the share of characters that stay when one
    is edited into the other, with words in the given order or sorted, whichever is more."""
    if not others:
        return np.zeros(0)
    as_given = process.cdist([name], others, scorer=fuzz.ratio, dtype=np.float64)[0]
    by_words = process.cdist([name], others, scorer=fuzz.token_sort_ratio, dtype=np.float64)[0]
    return np.round(np.maximum(as_given, by_words) / 100, DIGITS)
