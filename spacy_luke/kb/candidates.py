"""The entities that a mention may mean: by its text as written, normalised, or similar to it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from pydantic import Field
from rapidfuzz import fuzz, process

from ..validation import Count, check_settings
from .arrays import Array
from .entity import check_texts
from .normalize import normalize_name
from .tables import Meanings, Tables

Match = Literal["exact", "normalised", "fuzzy", "nearest"]
Fuzzy = Literal["never", "fallback", "always"]
Likeness = Annotated[float, Field(gt=0, le=1)]

_MOST_CHARACTERS = 1_000
"""Longer texts are not compared with aliases; they may equal one."""
DIGITS = 6
"""Of likenesses, which are rounded before they are compared."""
_SIMILAR_COST = 50
"""In lookups of equal aliases, by the memory that is read."""


@dataclass(frozen=True)
class CandidateSettings:
    """k: maximum number of candidates per mention.

    fuzzy: ``fallback`` searches similar aliases if none is equal; ``always`` also if there are
    fewer than ``k`` candidates by equal aliases; ``never``.

    min_likeness: of similar aliases, from 0 to 1 (equal).

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
    given the alias. likeness: of the alias and the mention, 1 if they are equal or equal when
    normalised; if the match is ``nearest``, of their vectors."""

    row: int
    form: int
    prior: float
    match: Match
    likeness: float = 1.0


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
    results: dict[int, FoundEntity] = {}
    form = tables.forms.find(text)
    if form is None:
        form = tables.forms.find(text.strip())
    if form is not None:
        _add(results, tables.meanings_of_form(form), "exact", settings.k)
    name = normalize_name(text, tables.lang)
    key = tables.keys.find(name)
    if key is not None:
        _add(results, tables.meanings_of_key(key), "normalised", settings.k)
    wanted = {"never": False, "fallback": not results, "always": len(results) < settings.k}
    if wanted[settings.fuzzy] and len(name) <= _MOST_CHARACTERS:
        for found in _similar(tables, name, settings, settings.k + len(results)):
            results.setdefault(found.row, found)
    return list(results.values())[: settings.k]


def _add(results: dict[int, FoundEntity], meanings: Meanings, match: Match, k: int) -> None:
    for i in _most_probable(meanings, k + len(results)):
        row = int(meanings.entities[i])
        if row not in results:
            prior = float(meanings.priors[i])
            results[row] = FoundEntity(row, int(meanings.forms[i]), prior, match)


def _most_probable(meanings: Meanings, k: int) -> list[int]:
    return np.lexsort((meanings.entities, -meanings.priors))[:k].tolist()


def _similar(tables: Tables, name: str, settings: CandidateSettings, n: int) -> list[FoundEntity]:
    """At least the best ``n`` entities, if there are as many: by decreasing likeness, then prior,
    then order of the file."""
    tables.looked_up(_SIMILAR_COST)
    keys = tables.trigrams.most_similar(name, settings.shortlist, settings.budget)
    scores = likeness(name, [tables.keys[key] for key in keys.tolist()])
    best: dict[int, FoundEntity] = {}
    last = 2.0
    for i in np.lexsort((keys, -scores)).tolist():
        score = float(scores[i])
        if score < settings.min_likeness or (len(best) >= n and score < last):
            break
        last = score
        meanings = tables.meanings_of_key(int(keys[i]))
        for j in _most_probable(meanings, n):
            row, prior = int(meanings.entities[j]), float(meanings.priors[j])
            known = best.get(row)
            if known is None or (known.likeness == score and known.prior < prior):
                form = int(meanings.forms[j])
                best[row] = FoundEntity(row, form, prior, "fuzzy", score)
    return sorted(best.values(), key=lambda x: (-x.likeness, -x.prior, x.row))


def likeness(name: str, others: Sequence[str]) -> Array:
    """The likeness (n,) of a normalised name and others: the share of characters that stay when one
    is edited into the other, with words in the given order or sorted, whichever is more."""
    if not others:
        return np.zeros(0)
    as_given = process.cdist([name], others, scorer=fuzz.ratio, dtype=np.float64)[0]
    by_words = process.cdist([name], others, scorer=fuzz.token_sort_ratio, dtype=np.float64)[0]
    return np.round(np.maximum(as_given, by_words) / 100, DIGITS)
