"""Scores of ``Span.kb_id_``, the links of mentions to a knowledge base."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

from spacy.scorer import PRFScore
from spacy.tokens import Span
from spacy.training import Example
from spacy.util import registry

from ..annotations.candidates import get_candidates
from ..annotations.mentions import NIL, UNLINKED, Place, all_spans, characters
from .answers import Answer, Answers, calibration_scores
from .ner import wrong_if_not_gold
from .relations import FIGURES, by_type, common_places, mean

NO_LINK = ""
AMBIGUOUS = "ambiguous_"
Candidates = Sequence[tuple[str, float]]
SETTINGS = ("spans_key", "labels_discard")
"""Of a component, that decide what counts."""


class LinkedMention(NamedTuple):
    """An annotated mention, or a linked span that is not a mention in the reference.

    label: of the mention in the reference, else of the predicted span.
    gold: the right ids, or ``NO_LINK`` alone if the mention is none of the entities; empty if the
        reference lacks the mention.
    link: the predicted id, or ``NO_LINK``.
    is_shared: whether both documents have the mention.
    candidates: (id, score) without "NIL"; None if they were not set.
    """

    label: str
    gold: frozenset[str]
    link: str
    is_shared: bool
    candidates: Candidates | None

    @property
    def has_id(self) -> bool:
        return bool(self.gold) and not self.is_nil

    @property
    def is_nil(self) -> bool:
        return NO_LINK in self.gold

    @property
    def is_right(self) -> bool:
        return self.link in self.gold

    @property
    def is_ambiguous(self) -> bool:
        """Whether a shared mention is ambiguous; see :func:`link_score`."""
        reachable = self.is_nil or self.has_right_candidate()
        return len(self.candidates or ()) > 1 and reachable

    def has_right_candidate(self, n: int | None = None) -> bool:
        """Whether a right id is among the first n candidates, or among all of them."""
        return any(name in self.gold for name, _ in (self.candidates or ())[:n])


@registry.scorers("spacy-luke.luke_linker_scorer.v1")
def make_luke_linker_scorer(prefix: str = "nel") -> Callable[..., dict[str, Any]]:
    """Accuracy, precision, recall and F of links: :func:`link_score`.

    prefix: of the names of the scores, before "_"; another one if a pipeline has several such
        components.
    """
    return partial(link_score, prefix=prefix)


def link_score(
    examples: Iterable[Example],
    *,
    spans_key: str | None = None,
    labels_discard: Collection[str] = (),
    prefix: str = "nel",
    **kwargs: Any,
) -> dict[str, Any]:
    """Accuracy, precision, recall and F of predicted links, from 0 to 1.

    A mention of the reference is annotated with an id, or as none of the entities ("NIL"). Without
    ``kb_id_`` it is not annotated, and not scored. A predicted span without ``kb_id_`` has no link,
    as if it were "NIL". If the reference has a mention several times with different ids, each of
    them is right; a "NIL" beside them is ignored. Of several predicted spans with the same
    characters, the first that has a link counts.

    A mention is *shared* if a predicted span has the same characters; labels are not compared. An
    *ambiguous* mention is a shared one with at least two candidates (``Span._.candidates`` of the
    predicted span), one of which is right or whose annotation is "NIL". "NIL" is never counted as a
    candidate.

    spans_key: the group of ``Doc.spans`` with the mentions; ``Doc.ents`` without it.
    labels_discard: labels of mentions of the reference that are not scored.
    prefix: of the names of the scores.

    Of shared mentions, as in spaCy's ``Scorer.score_links``. A right link is a true positive; a
    wrong link is a false positive, and a false negative if the annotation is an id; a missing link
    is a false negative:

    - ``nel_micro_p``, ``_r``, ``_f``: over all mentions; ``nel_score`` is the last of them, and
      ``nel_score_desc`` says so;
    - ``nel_macro_p``, ``_r``, ``_f``: means over the labels of shared mentions in the reference;
    - ``nel_f_per_type``: label -> p, r, f.

    Of shared mentions:

    - ``nel_kb_acc``: of those annotated with an id, the share with a right link;
    - ``nel_acc``: of all, the share with a right link or, if annotated as "NIL", without a link;
    - ``nel_doc_acc``: the mean over documents of ``nel_kb_acc`` of the document;
    - ``nel_nil_p``, ``_r``, ``_f``: of "NIL". Precision is the share of mentions without a link
      that are annotated as "NIL", recall the share of mentions annotated as "NIL" without a link;
    - ``nel_candidate_recall``: of those annotated with an id, the share that has a right candidate;
      ``nel_candidate_recall_1``: the share whose first candidate is right. A mention without
      candidates has none that is right. Both are None if the candidates of no mention were set.

    Of ambiguous mentions alone: all of these but ``nel_f_per_type`` and ``nel_candidate_recall``,
    with ``nel_ambiguous_`` in place of ``nel_``, and their number ``nel_ambiguous_mentions``.

    End to end, including the mentions that the pipeline did or did not find:

    - ``nel_end_to_end_p``, ``_r``, ``_f``: precision is the share of right ones among predicted
      links, recall the share of mentions annotated with an id that have a right link. A link on a
      span that is not a mention of the reference is wrong if the reference's mentions are annotated
      (``Doc.ents`` set for its tokens, or the group present, and :func:`.is_annotated`). Links on
      mentions that are not scored do not count.

    And :func:`.calibration_scores` of the links that the end-to-end scores count. The score of a
    link is that of the candidate; links that are not candidates, such as those of another
    component, have no score and are left out.

    Shares are None if there is no such mention. Precision, recall and F are None if no mention of
    the reference is annotated with an id (for ``nel_nil_``: with "NIL"; for ``nel_ambiguous_``: no
    ambiguous one). Otherwise they are 0 if nothing was predicted, or no mention was
    found. All values are None without annotated mentions.
    """
    by_doc = _all_mentions(examples, spans_key, labels_discard)
    mentions = list(chain(*by_doc))
    shared = [[x for x in of_doc if x.is_shared] for of_doc in by_doc]
    ambiguous = [[x for x in of_doc if x.is_ambiguous] for of_doc in shared]
    per_type = _count(chain(*shared))
    end_to_end = sum(_count(mentions).values(), PRFScore()).to_dict()
    has_ids = any(x.has_id for x in mentions)
    has_nil = any(x.is_nil for x in mentions)
    of_shared = _of_found(shared, has_ids, has_nil)
    n_ambiguous = sum(map(len, ambiguous))
    scores = {
        "score": of_shared["micro_f"],
        "score_desc": "micro F" if has_ids else None,
        **of_shared,
        "f_per_type": by_type(per_type, ()) if has_ids else None,
        **_of_ambiguous(ambiguous),
        f"{AMBIGUOUS}mentions": n_ambiguous if has_ids or has_nil else None,
        **_figures("end_to_end", end_to_end, has_ids),
    }
    named = {f"{prefix}_{name}": value for name, value in scores.items()}
    return {**named, **calibration_scores(_answers(mentions), prefix)}


def link_answers(
    examples: Iterable[Example],
    *,
    spans_key: str | None = None,
    labels_discard: Collection[str] = (),
) -> Answers:
    """Predicted links with their scores; see :func:`link_score`. Annotated mentions that another
    component has linked are not asked for."""
    return _answers(chain(*_all_mentions(examples, spans_key, labels_discard)))


def count_links(
    examples: Iterable[Example],
    *,
    spans_key: str | None = None,
    labels_discard: Collection[str] = (),
) -> dict[str, PRFScore]:
    """Label -> counts of right, wrong and missed links, end to end; see :func:`link_score`."""
    return _count(chain(*_all_mentions(examples, spans_key, labels_discard)))


def _answers(mentions: Iterable[LinkedMention]) -> Answers:
    answers = Answers()
    for mention in mentions:
        # With ``overwrite = false`` the linker is not asked for what has a link.
        of_another = mention.link != NO_LINK and mention.candidates is None
        answers.n_gold.update([mention.label] if mention.has_id and not of_another else [])
        score = dict(mention.candidates or ()).get(mention.link)
        if score is not None:
            answers.found.append(Answer(mention.label, score, mention.is_right))
    return answers


def _count(mentions: Iterable[LinkedMention]) -> dict[str, PRFScore]:
    """Label -> counts of right, wrong and missed links."""
    per_type: dict[str, PRFScore] = {}
    for mention in mentions:
        linked, right = mention.link != NO_LINK, mention.is_right
        score = per_type.setdefault(mention.label, PRFScore())
        score.tp += linked and right
        score.fp += linked and not right
        score.fn += mention.has_id and not right
    return per_type


def _count_nil(mentions: Iterable[LinkedMention]) -> PRFScore:
    score = PRFScore()
    for mention in mentions:
        linked = mention.link != NO_LINK
        score.tp += mention.is_nil and not linked
        score.fp += mention.has_id and not linked
        score.fn += mention.is_nil and linked
    return score


def _of_found(
    by_doc: Sequence[Sequence[LinkedMention]], ids: bool = False, nil: bool = False
) -> dict[str, float | None]:
    """The scores of mentions that both documents have. by_doc: those of each document. ids, nil:
    whether there are such annotations elsewhere, so that scores are 0 where nothing was found."""
    mentions = list(chain(*by_doc))
    per_type = _count(mentions)
    micro = sum(per_type.values(), PRFScore()).to_dict()
    macro = mean([score.to_dict() for score in per_type.values()])
    ids, nil = ids or any(x.has_id for x in mentions), nil or any(x.is_nil for x in mentions)
    return {
        **_figures("micro", micro, ids),
        **_figures("macro", macro, ids),
        **_accuracies(by_doc),
        **_figures("nil", _count_nil(mentions).to_dict(), nil),
        **_candidate_recall(mentions),
    }


def _of_ambiguous(by_doc: Sequence[Sequence[LinkedMention]]) -> dict[str, float | None]:
    scores = _of_found(by_doc)
    del scores["candidate_recall"]  # those that are annotated with an id have it by definition
    return {f"{AMBIGUOUS}{name}": value for name, value in scores.items()}


def _accuracies(by_doc: Iterable[Iterable[LinkedMention]]) -> dict[str, float | None]:
    """by_doc: the mentions of each document."""
    with_id = [[x.is_right for x in of_doc if x.has_id] for of_doc in by_doc]
    of_docs = [share for share in map(_mean, with_id) if share is not None]
    return {
        "kb_acc": _mean(list(chain(*with_id))),
        "acc": _mean([x.is_right for x in chain(*by_doc)]),
        "doc_acc": _mean(of_docs),
    }


def _candidate_recall(mentions: Collection[LinkedMention]) -> dict[str, float | None]:
    known = any(x.candidates is not None for x in mentions)
    with_id = [x for x in mentions if known and x.has_id]
    return {
        "candidate_recall": _mean([x.has_right_candidate() for x in with_id]),
        "candidate_recall_1": _mean([x.has_right_candidate(1) for x in with_id]),
    }


def _figures(part: str, values: dict[str, float], counts: bool) -> dict[str, float | None]:
    return {f"{part}_{figure}": values[figure] if counts else None for figure in FIGURES}


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _all_mentions(
    examples: Iterable[Example], spans_key: str | None, labels_discard: Collection[str]
) -> list[list[LinkedMention]]:
    return [list(_mentions(example, spans_key, labels_discard)) for example in examples]


def _mentions(
    example: Example, spans_key: str | None, labels_discard: Collection[str]
) -> Iterator[LinkedMention]:
    """The annotated mentions of a document, then the links on spans that are not mentions."""
    gold = _gold(example, spans_key, labels_discard)
    predicted = _predicted(example, spans_key)
    common = common_places(example, example.predicted)
    for place, (label, ids) in gold.items():
        if ids:
            span = predicted.get(place)
            right = frozenset(ids - {NO_LINK} or {NO_LINK})
            yield LinkedMention(label, right, _link(span), span is not None, _candidates(span))
    for span in wrong_if_not_gold(example, list(predicted.values()), spans_key):
        if common(characters(span)) not in gold and _link(span):
            link, candidates = _link(span), _candidates(span)
            yield LinkedMention(span.label_, frozenset(), link, False, candidates)


def _gold(
    example: Example, spans_key: str | None, labels_discard: Collection[str]
) -> dict[Place, tuple[str, set[str]]]:
    """All mentions of the reference: place -> label and right links; none if it is not scored."""
    common = common_places(example, example.reference)
    gold: dict[Place, tuple[str, set[str]]] = {}
    for span in all_spans(example.reference, spans_key):
        place = common(characters(span))
        label, links = gold.setdefault(place, (span.label_, set()))
        if span.kb_id_ and span.label_ not in labels_discard:
            gold[place] = (label if links else span.label_, links | {_link(span)})
    return gold


def _predicted(example: Example, spans_key: str | None) -> dict[Place, Span]:
    """Place -> a predicted span, the first that has a link if any has."""
    common = common_places(example, example.predicted)
    predicted: dict[Place, Span] = {}
    for span in all_spans(example.predicted, spans_key):
        place = common(characters(span))
        if place not in predicted or not _link(predicted[place]):
            predicted[place] = span
    return predicted


def _link(span: Span | None) -> str:
    return NO_LINK if span is None or span.kb_id_ in UNLINKED else span.kb_id_


def _candidates(span: Span | None) -> Candidates | None:
    candidates = None if span is None else get_candidates(span)
    return None if candidates is None else [x for x in candidates if x.id != NIL]
