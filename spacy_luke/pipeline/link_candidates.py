"""The candidates of mentions, as arrays: what ``luke_linker`` scores."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from spacy.kb import Candidate, KnowledgeBase
from spacy.tokens import Span

from ..annotations.candidates import get_allowed_ids
from ..annotations.types import get_types
from ..errors import InputError
from ..kb.candidates import FoundEntity
from ..kb.knowledge_base import MappedKB
from ..layers.candidate_scorer import FEATURES
from ..report import LOGGER

Array = np.ndarray

GetCandidates = Callable[[KnowledgeBase, Span], Iterable[Candidate]]
GetCandidatesBatch = Callable[[KnowledgeBase, Iterable[Span]], Iterable[Iterable[Candidate]]]

LEAST_PRIOR = 1e-3
"""Of a candidate whose prior is 0 or unknown."""
LIKENESS_POWER = 30.0
"""A candidate by a similar alias loses as if its prior were multiplied with this power of the
likeness: 0.9 costs as much as a prior of 0.04."""
_BATCH, _OF_ONE = "get_candidates_batch", "the candidates of a mention"
_ROUNDING = 1e-3
"""By what a sum of probabilities may exceed 1."""
TYPE_BONUS = 2.0
"""What agreement of types adds to a logit."""


class LinkCandidate(NamedTuple):
    """row: of the entity in the knowledge base. prior: probability, given the alias. likeness: of
    alias and mention, up to 1. counted: whether the alias is equal to the mention, and the prior
    was counted or given."""

    row: int
    prior: float
    likeness: float
    counted: bool = False


Nearest = Callable[[Sequence[str]], Sequence[Sequence[FoundEntity]]]
Predicted = Callable[[Sequence[Span]], Sequence[Sequence[int]]]


def find_candidates(
    kb: MappedKB,
    mentions: Sequence[Span],
    one: GetCandidates | None,
    batch: GetCandidatesBatch,
    batch_size: int,
    nearest: Nearest,
    predicted: Predicted | None = None,
    strangers: set[str] | None = None,
) -> list[list[LinkCandidate]]:
    """The candidates of each mention, the best by prior and likeness first.

    A mention with ``Span._.allowed_ids`` has these as candidates, in that order, whatever their
    aliases.
    one: used instead of ``batch`` if it is not None. batch_size: mentions per call of ``batch``.
    Raises InputError if one of these functions returns something else than the candidates of every
    mention.
    nearest: gives more candidates, by vectors of names, for the texts of mentions that are not
    equal to an alias. predicted: gives more, by row, that an encoder predicts for mentions.
    strangers: gets the ids of candidates that are not in the knowledge base, which are left out;
    one of them is logged, if the set was empty.
    """
    strangers = set() if strangers is None else strangers
    found: list[Iterable[Candidate]] = []
    if one is not None:
        found = [_several(one(kb, mention), "get_candidates", _OF_ONE) for mention in mentions]
    else:
        for i in range(0, len(mentions), batch_size):
            part = mentions[i : i + batch_size]
            of_part = list(_several(batch(kb, part), _BATCH, "the candidates of every mention"))
            if len(of_part) != len(part):
                raise InputError(
                    f"{_BATCH} returned candidates of {len(of_part)} mentions for "
                    f"{len(part)}. It must return those of every mention, which may be none."
                )
            found += [_several(own, _BATCH, _OF_ONE) for own in of_part]
    known_strangers = len(strangers)
    by_row = [_by_row(kb, candidates, strangers) for candidates in found]
    unequal = [
        i for i, own in enumerate(by_row) if not any(x.likeness == 1.0 for x in own.values())
    ]
    of_names = nearest([mentions[i].text for i in unequal])
    for i, others in zip(unequal, of_names, strict=True):
        _add_nearest(by_row[i], others)
    if predicted is not None:
        for own, rows in zip(by_row, predicted(mentions), strict=True):
            _add_predicted(own, rows)
    unknown: list[str] = []
    results = [_allowed(kb, *pair, unknown) for pair in zip(mentions, by_row, strict=True)]
    if unknown:
        LOGGER.warning(
            "%d Span._.allowed_ids are not in the knowledge base (the first: %r).",
            len(unknown),
            unknown[0],
        )
    if strangers and not known_strangers:
        LOGGER.warning(
            "The function that gets candidates returned %r, which is not in the knowledge base. "
            "Such candidates are left out. This warning is logged once.",
            min(strangers),
        )
    return results


def _several(found: object, setting: str, what: str) -> Iterable[Any]:
    if not isinstance(found, Iterable):
        raise InputError(
            f"{setting} returned {found!r} instead of {what}, which may be none: an empty list."
        )
    return found


def _by_row(
    kb: MappedKB, found: Iterable[Candidate], strangers: set[str]
) -> dict[int, LinkCandidate]:
    """The ids of candidates that do not exist are added to ``strangers``."""
    candidates: dict[int, LinkCandidate] = {}
    for candidate in found:
        if not (hasattr(candidate, "entity_") and hasattr(candidate, "prior_prob")):
            raise InputError(
                f"The function that gets candidates returned {candidate!r}, which is no candidate "
                "as those of spaCy: it lacks entity_ or prior_prob."
            )
        row = kb.tables.ids.find(candidate.entity_)
        if row is None:
            strangers.add(candidate.entity_)
        elif row not in candidates:
            # Candidates of other generators have a prior alone.
            prior = getattr(candidate, "prior", candidate.prior_prob)
            if not 0 <= prior <= 1 + _ROUNDING:
                raise InputError(
                    f"The prior of the candidate {candidate.entity_!r} is {prior}. The function "
                    "that gets candidates must give a probability."
                )
            alike = getattr(candidate, "likeness", 1.0)
            counted = getattr(candidate, "counted", prior > 0)
            candidates[row] = LinkCandidate(row, prior, alike, counted)
    return candidates


def _add_nearest(candidates: dict[int, LinkCandidate], others: Sequence[FoundEntity]) -> None:
    """An entity that is found in both ways has the larger likeness."""
    for other in others:
        known = candidates.get(other.row)
        if known is None or known.likeness < other.likeness:
            candidates[other.row] = LinkCandidate(other.row, other.prior, other.likeness)


def _add_predicted(candidates: dict[int, LinkCandidate], rows: Sequence[int]) -> None:
    """Whatever their names, they count as if these were equal, with an unknown prior. An entity
    that was also found by a name keeps that if it is worth more."""
    for row in rows:
        predicted = LinkCandidate(row, 0.0, 1.0)
        known = candidates.get(row)
        if known is None or _worth(known) < _worth(predicted):
            candidates[row] = predicted


def _worth(candidate: LinkCandidate) -> float:
    """The terms of a score that are known without the text."""
    likeness = max(candidate.likeness, LEAST_PRIOR)
    return float(np.log(max(candidate.prior, LEAST_PRIOR)) + LIKENESS_POWER * np.log(likeness))


def _allowed(
    kb: MappedKB, mention: Span, candidates: dict[int, LinkCandidate], unknown: list[str]
) -> list[LinkCandidate]:
    """The candidates that the user allows. Whatever they are called, they count as if their names
    were equal to the mention. Ids that do not exist are added to ``unknown``."""
    allowed = get_allowed_ids(mention)
    if allowed is None:
        return list(candidates.values())
    rows = [kb.tables.ids.find(x) for x in allowed]
    unknown += [x for x, row in zip(allowed, rows) if row is None]
    known = list(dict.fromkeys(row for row in rows if row is not None))
    return [
        LinkCandidate(row, found.prior, 1.0, found.counted)
        if (found := candidates.get(row)) is not None and found.likeness == 1.0
        else LinkCandidate(row, 0.0, 1.0)
        for row in known
    ]


def candidate_arrays(
    kb: MappedKB,
    mentions: Sequence[Span],
    labels: Sequence[Collection[str]],
    candidates: Sequence[Sequence[LinkCandidate]],
    prior: bool,
    type_bias: Mapping[str, float],
) -> tuple[Array, Array, Array]:
    """Rows (n, K) of the knowledge base, -1 where there is no candidate; features
    (n, K, len(FEATURES)); and (n, K) whether the prior tells how often the mention's text means the
    entity.

    labels: of each mention. prior: whether it is a feature; else its logarithm is 0 for all.
    type_bias: type -> what is added to the logit of its entities; 0 for other types.
    """
    biases = {name.casefold(): bias for name, bias in type_bias.items()}
    width = max((len(x) for x in candidates), default=0)
    rows = np.full((len(mentions), width), -1, dtype=np.int64)
    features = np.zeros((len(mentions), width, len(FEATURES)), dtype=np.float32)
    prior_known = np.zeros(rows.shape, dtype=bool)
    for i, (mention, names, own) in enumerate(zip(mentions, labels, candidates, strict=True)):
        if not own:
            continue
        rows[i, : len(own)] = [x.row for x in own]
        if prior:
            features[i, : len(own), 0] = np.log([max(x.prior, LEAST_PRIOR) for x in own])
            prior_known[i, : len(own)] = [x.counted for x in own]
        likes = [max(x.likeness, LEAST_PRIOR) for x in own]
        features[i, : len(own), 1] = LIKENESS_POWER * np.log(likes)
        types = {x.casefold() for x in (*names, *(get_types(mention) or ())) if x}
        of_candidates = [kb.tables.types[x.row].casefold() for x in own]
        features[i, : len(own), 2] = _type_feature(of_candidates, types, biases)
    return rows, features, prior_known


def _type_feature(own: Sequence[str], wanted: Collection[str], bias: Mapping[str, float]) -> Array:
    """(n,) of candidates, by their types. The best bias of a mention's candidates counts 0, because
    biases say nothing of "none of them": mentions with candidates of one type are as without.

    wanted: the types that the mention has.
    """
    biases = np.asarray([bias.get(x, 0.0) for x in own])
    return TYPE_BONUS * np.asarray([x in wanted for x in own]) + (biases - biases.max())
