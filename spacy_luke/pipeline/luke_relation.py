"""``luke_relation``: relations between the entities of a document."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import minibatch
from thinc.api import Config, Model

from ..annotations.annotated import annotated_labels, joined_starts
from ..annotations.mentions import entities_of, spans_of
from ..annotations.relations import Offsets, Relation, install_relations, relation_offsets
from ..errors import ConfigError
from ..inputs.pairs import Candidates
from ..layers.given_spans import ClassScores
from ..layers.pair_scorer import NETWORK, PairQuery
from ..layers.task_layer import fits
from ..metrics.relations import common_places, relation_score
from ..report import LOGGER, tell
from ..ties import TOLERANCE, likeliest
from ..validation import Name
from .class_loss import Targets
from .classifier_pipe import Settings
from .entity_task import EntityTask, given

Array = np.ndarray
Place = tuple[int, int]
LOST = ("no entity", "no candidate", "second label", "too long")

DEFAULT_CONFIG = Config().from_str(
    """
[luke_relation]
spans_key = null
multi_label = false
threshold = 0.5
pair_order = "both"
symmetric = []
merge_entities = false
scorer = {"@scorers":"spacy-luke.luke_relation_scorer.v1"}

[luke_relation.candidates]
@misc = "spacy-luke.relation_candidates.v1"
max_distance = 100

[luke_relation.model]
@architectures = "spacy-luke.PairScorer.v1"
mode = "probe"

[luke_relation.model.encoder]
@architectures = "spacy-luke.LukeEncoder.v1"
name = "studio-ousia/luke-base"
"""
)


@Language.factory(
    "luke_relation",
    assigns=["doc._.relations"],
    requires=["doc.ents"],
    default_config=DEFAULT_CONFIG["luke_relation"],
    default_score_weights={"rels_f": 1.0, "rels_p": 0.0, "rels_r": 0.0, "rels_per_type": None},
)
def make_luke_relation(
    nlp: Language,
    name: str,
    model: Model[PairQuery, ClassScores],
    candidates: Candidates,
    spans_key: str | None,
    multi_label: bool,
    threshold: float,
    pair_order: Literal["both", "text"],
    symmetric: list[str],
    merge_entities: bool,
    scorer: Callable | None,
) -> "LukeRelation":
    """Construct a relation component.

    model: ``spacy-luke.PairScorer.v1``.
    candidates: which pairs are scored, e.g. ``spacy-luke.relation_candidates.v1``.
    spans_key: relate the spans of this group; by default ``Doc.ents``.
    multi_label: a pair may have several relations, each with a probability of its own; else one,
        or none.
    threshold: least probability of a relation; where a pair has at most one, that one also has to
        be likelier than all others and than none.
    pair_order: ``both``: a pair is scored as (head, tail) and as (tail, head), as published;
        ``text``: once, the first entity of the text being the head, with classes for relations
        that run the other way.
    symmetric: labels without a direction: their head is the first in the text.
    merge_entities: mentions with the same ``kb_id_`` (but "NIL") are one entity, related through
        all of its mentions and reported on the first.
    """
    return LukeRelation(
        nlp.vocab,
        model,
        name,
        candidates,
        scorer,
        spans_key=spans_key,
        multi_label=multi_label,
        threshold=threshold,
        pair_order=pair_order,
        symmetric=list(symmetric),
        merge_entities=merge_entities,
    )


@dataclass(frozen=True)
class RelationQuery(PairQuery):
    """by_doc: the entities of each document, each a list of mentions. directions: (n_pairs, 2)
    whether a pair is a candidate in the order it is scored in, and the other way round."""

    by_doc: list[list[list[Span]]]
    directions: Array

    @property
    def starts(self) -> Array:
        """(n_docs + 1,) where a document's entities begin, counted through the batch."""
        return np.cumsum([0, *map(len, self.by_doc)])


class RelationSettings(Settings):
    multi_label: bool
    pair_order: Literal["both", "text"]
    symmetric: list[Name]
    merge_entities: bool


class LukeRelation(EntityTask[RelationQuery]):
    """Find relations between entities that are given."""

    architecture = "spacy-luke.PairScorer.v1"
    node = NETWORK
    settings = RelationSettings
    layer = "relations"
    out_of_reach = LOST
    published_nil = "no_relation"

    def __init__(
        self,
        vocab: Any,
        model: Model,
        name: str,
        candidates: Candidates,
        scorer: Callable | None = relation_score,
        **cfg: Any,
    ) -> None:
        super().__init__(vocab, model, name, scorer, **cfg)
        self.candidates = candidates
        install_relations()

    # Classes and candidates

    def _classes(self) -> list[Any]:
        """Labels, then those that run against the text, then none."""
        classes: list[Any] = list(self.labels)
        if self.cfg["pair_order"] == "text":
            directed = [x for x in self.labels if x not in self.cfg["symmetric"]]
            classes += [(label, "reversed") for label in directed]
        return classes if self.cfg["multi_label"] else [*classes, self.published_nil]

    def _labels_of(self, doc: Doc) -> Iterable[str]:
        return {item.label for item in self._gold(doc)}

    def _gold(self, doc: Doc) -> list[Offsets]:
        """Annotated relations of the labels that were judged; one labelled as none, as some corpora
        have it, is none."""
        judged = annotated_labels(doc, self.layer)
        return [
            item
            for item in relation_offsets(doc)
            if item.label != self.published_nil and (judged is None or item.label in judged)
        ]

    def _query(self, docs: Sequence[Doc]) -> RelationQuery:
        key, merged = self.cfg["spans_key"], self.cfg["merge_entities"]
        entities = [entities_of(spans_of(doc, key), merged) for doc in docs]
        candidates = [self._candidates(*both) for both in zip(docs, entities)]
        starts = np.cumsum([0, *map(len, entities)])
        nothing = np.zeros((0, 2), dtype=np.int64)
        pairs = [found + at for (found, _), at in zip(candidates, starts)]
        directions = np.concatenate([nothing.astype(bool), *(x for _, x in candidates)])
        return _query(docs, entities, np.concatenate([nothing, *pairs]), directions)

    def _part(self, query: RelationQuery, low: int, high: int) -> RelationQuery:
        first, pairs = query.starts[low], query.pairs
        rows = (first <= pairs[:, 0]) & (pairs[:, 0] < query.starts[high])
        docs, entities = query.docs[low:high], query.by_doc[low:high]
        return _query(docs, entities, pairs[rows] - first, query.directions[rows])

    def _candidates(self, doc: Doc, entities: list[list[Span]]) -> tuple[Array, Array]:
        """(n, 2) pairs that are scored, and (n, 2) their directions, see RelationQuery. Each once,
        and none of an entity with itself; in text order if either direction is a candidate."""
        found = np.asarray(self.candidates(doc, entities), dtype=np.int64).reshape(-1, 2)
        keep: Array = np.zeros((len(entities), len(entities)), dtype=bool)
        keep[found[:, 0], found[:, 1]] = True
        np.fill_diagonal(keep, False)
        pairs = np.argwhere(np.triu(keep | keep.T) if self.cfg["pair_order"] == "text" else keep)
        heads, tails = pairs.T
        directions: Array = np.stack([keep[heads, tails], keep[tails, heads]], axis=1)
        return pairs, directions

    def _possible(self, directions: Array) -> Array:
        """(n_pairs, n_classes) which classes run in a direction that is a candidate."""
        forward, backward = directions.T
        either = forward | backward

        def column(name: Any) -> Array:
            if isinstance(name, tuple):
                return backward
            return either if name in self.cfg["symmetric"] else forward

        columns = [column(name) for name in self._classes()]
        if not self.cfg["multi_label"]:
            columns[-1] = np.ones(len(directions), dtype=bool)
        return np.stack(columns, axis=1) if columns else np.zeros((len(directions), 0), dtype=bool)

    # Prediction

    def set_annotations(
        self, docs: Iterable[Doc], scores: tuple[RelationQuery, ClassScores]
    ) -> None:
        """Write ``Doc._.relations``."""
        query, values = scores
        possible = self._possible(query.directions[values.rows])
        best, classes, probabilities = self._decode(values, possible)
        rows, starts = values.rows[best], query.starts
        pairs, of_doc = query.pairs[rows], query.of_doc[rows]
        bounds = np.searchsorted(of_doc, np.arange(len(query.docs) + 1)).tolist()
        for i, (doc, a, b) in enumerate(zip(docs, bounds, bounds[1:])):
            table = (pairs[a:b] - starts[i]).tolist()
            chosen = zip(table, classes[a:b].tolist(), probabilities[a:b].tolist())
            doc._.relations = self._relations(query.by_doc[i], chosen)

    def _decode(self, values: ClassScores, possible: Array) -> tuple[Array, Array, Array]:
        """Indices of scored rows, classes and probabilities of what is likely enough."""
        logits = self.model.ops.to_numpy(values.logits).astype(np.float64)
        threshold = self.cfg["threshold"] - TOLERANCE
        if self.cfg["multi_label"]:
            probabilities = 1 / (1 + np.exp(-np.clip(logits, -50, 50)))
            rows, classes = np.nonzero((probabilities >= threshold) & possible)
            return rows, classes, probabilities[rows, classes]
        if not len(logits):
            nothing = np.zeros(0, dtype=np.int64)
            return nothing, nothing, np.zeros(0)
        logits[~possible] = -np.inf
        probabilities = np.exp(logits - logits.max(-1, keepdims=True))
        probabilities /= probabilities.sum(-1, keepdims=True)
        best = likeliest(logits)
        top = probabilities[np.arange(len(best)), best]
        rows = np.flatnonzero((best < logits.shape[1] - 1) & (top >= threshold))
        return rows, best[rows], top[rows]

    def _relations(self, entities: list[list[Span]], chosen: Iterable[tuple]) -> list[Relation]:
        names = self._classes()
        best: dict[tuple[int, int, str], float] = {}
        for (head, tail), c, probability in chosen:
            reverse = not isinstance(names[c], str)
            label = names[c][0] if reverse else names[c]
            if reverse or (label in self.cfg["symmetric"] and head > tail):
                head, tail = tail, head
            key = (head, tail, label)
            best[key] = max(probability, best.get(key, 0.0))
        return [
            Relation(entities[head][0], entities[tail][0], label, probability)
            for (head, tail, label), probability in best.items()
        ]

    # Training

    def _targets(self, examples: Sequence[Example], query: RelationQuery) -> Targets:
        """Known, for each pair, are the classes of the labels that were judged in its document. A
        pair without a gold relation is in none of these, but may be in any of the others."""
        classes, _ = self._match(examples, query)
        known = np.stack([self._judged(eg.reference) for eg in examples])[query.of_doc]
        known &= ~_across_texts(examples, query)[:, None]
        if not self.cfg["multi_label"]:
            open_rows = classes[:, -1] > 0
            classes[open_rows] = np.maximum(classes[open_rows], ~known[open_rows])
            # Where nothing was judged, any class may be right: such a row is left out.
            classes[~known[:, :-1].any(1)] = 0.0
        return classes, known

    def _judged(self, doc: Doc) -> Array:
        """(n_classes,) whether the document's annotators judged each class. "No relation" always
        counts as judged."""
        labels = annotated_labels(doc, self.layer)
        names = [name if isinstance(name, str) else name[0] for name in self._classes()]
        judged = [labels is None or name in labels for name in names]
        if not self.cfg["multi_label"]:
            judged[-1] = True
        return np.asarray(judged, dtype=bool)

    def _match(
        self, examples: Sequence[Example], query: RelationQuery, fit: Array | None = None
    ) -> tuple[Array, Counter[str]]:
        """(n_pairs, n_classes) gold of each candidate; and how many gold relations no candidate
        holds, by reason. fit: (n_pairs,) which candidates can be scored; else all."""
        classes = {name: i for i, name in enumerate(self._classes())}
        targets = np.zeros((len(query.pairs), len(classes)), dtype=np.float32)
        rows = {(a, b): i for i, (a, b) in enumerate(query.pairs.tolist())}
        possible, starts = self._possible(query.directions), query.starts.tolist()
        lost: Counter[str] = Counter()
        for i, eg in enumerate(examples):
            ours, theirs = (common_places(eg, doc) for doc in (eg.predicted, eg.reference))
            places = _places(query.by_doc[i], starts[i], ours)
            for item in self._gold(eg.reference):
                item = item._replace(head=theirs(item.head), tail=theirs(item.tail))
                reason = self._mark(item, places, rows, classes, possible, targets, fit)
                if reason:
                    lost[reason] += 1
        if not self.cfg["multi_label"]:
            targets[~targets.any(1), -1] = 1.0
        return targets, lost

    def _mark(
        self,
        item: Offsets,
        places: dict[Place, int],
        rows: dict[tuple[int, int], int],
        classes: dict[Any, int],
        possible: Array,
        targets: Array,
        fit: Array | None,
    ) -> str | None:
        """Make a gold relation's candidates positive, or say why there are none."""
        if item.head not in places or item.tail not in places:
            return "no entity"
        positive = [
            (row, c)
            for row, c in self._positive(places[item.head], places[item.tail], item, rows, classes)
            if possible[row, c]
        ]
        if not positive:
            return "no candidate"
        if fit is not None and not any(fit[row] for row, _ in positive):
            return "too long"
        for row, c in positive:
            if not self.cfg["multi_label"] and targets[row].any() > targets[row, c]:
                return "second label"
            targets[row, c] = 1.0
        return None

    def _positive(
        self,
        head: int,
        tail: int,
        item: Offsets,
        rows: dict[tuple[int, int], int],
        classes: dict[Any, int],
    ) -> list[tuple[int, int]]:
        """(row, class) of the candidates that say the same as a gold relation."""
        candidates = self._scored_as(head, tail, item)
        found = [(rows[a, b], name) for a, b, name in candidates if (a, b) in rows]
        if any(name not in classes for _, name in found):
            raise ConfigError(
                f"{self.name}: the label {item.label!r} is in the data but not in the "
                "component; add it with add_label, or initialise with all of the data."
            )
        return [(row, classes[name]) for row, name in found]

    def _scored_as(self, head: int, tail: int, item: Offsets) -> list[tuple[int, int, Any]]:
        """(first, second, class) of the candidates that a gold relation makes positive; head and
        tail are counted through the batch."""
        symmetric = item.label in self.cfg["symmetric"]
        if self.cfg["pair_order"] == "both":
            other = [(tail, head, item.label)] if symmetric else []
            return [(head, tail, item.label), *other]
        if head < tail or symmetric:
            return [(min(head, tail), max(head, tail), item.label)]
        return [(tail, head, (item.label, "reversed"))]

    def _count_limits(self, examples: Iterable[Example]) -> dict[str, int]:
        """Count the gold relations that cannot be predicted."""
        absent = [label for label in self.cfg["symmetric"] if label not in self.labels]
        if absent:
            LOGGER.warning(
                "%s: symmetric names %s, which no relation of the data has.", self.name, absent
            )
        counts = dict.fromkeys(("gold", *LOST), 0)
        for batch in minibatch(examples, 64):
            examples = list(batch)
            query = self._query([eg.predicted for eg in examples])
            _, lost = self._match(examples, query, fits(self.model, query))
            counts["gold"] += sum(len(self._gold(eg.reference)) for eg in examples)
            for reason, number in lost.items():
                counts[reason] += number
        tell(
            sum(counts.values()) - counts["gold"],
            "%s: of %d gold relations %d have a side that is no entity, %d are no candidate pair, "
            "%d are a pair's second label, %d are longer than a window: these cannot be predicted.",
            self.name,
            *counts.values(),
        )
        return counts


def _query(
    docs: Sequence[Doc], entities: list[list[list[Span]]], pairs: Array, directions: Array
) -> RelationQuery:
    """pairs: by the entities of all of these documents."""
    sizes = [len(entity) for doc in entities for entity in doc]
    mentions = [[span for entity in doc for span in entity] for doc in entities]
    of_entity = np.repeat(np.arange(len(sizes)), sizes)
    return RelationQuery(docs, given(mentions), of_entity, pairs, entities, directions)


def _across_texts(examples: Sequence[Example], query: RelationQuery) -> Array:
    """(n_pairs,) whether no text, of those that a document was joined from, has both entities."""
    texts: list[set[int]] = []  # of each entity
    for eg, entities in zip(examples, query.by_doc):
        ours, theirs = (common_places(eg, doc) for doc in (eg.predicted, eg.reference))
        starts = [theirs((start, start))[0] for start in joined_starts(eg.reference)]
        for mentions in entities:
            places = [ours((span.start_char, span.end_char))[0] for span in mentions]
            texts.append({bisect_right(starts, place) for place in places})
    apart = [texts[head].isdisjoint(texts[tail]) for head, tail in query.pairs.tolist()]
    return np.asarray(apart, dtype=bool)


def _places(
    entities: list[list[Span]], base: int, common: Callable[[Place], Place]
) -> dict[Place, int]:
    """What every mention is compared by -> its entity, counted through the batch."""
    return {
        common((span.start_char, span.end_char)): base + i
        for i, mentions in enumerate(entities)
        for span in mentions
    }
