"""``luke_relation``: relations between the entities of a document."""

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

from ..annotations.annotated import annotated_labels
from ..annotations.attributes import require
from ..annotations.mentions import Place, characters, entities_of, spans_of
from ..annotations.relations import NO_RELATION, Offsets, Relation, gold_offsets
from ..calibration import sigmoid
from ..errors import ConfigError
from ..inputs.pairs import Candidates
from ..layers.given_spans import ClassScores
from ..layers.pair_scorer import PairQuery, PairScorer
from ..layers.task_layer import fits
from ..metrics.answers import Answers
from ..metrics.relations import SETTINGS, common_places, relation_answers, relation_score
from ..report import LOGGER, log_lost
from ..ties import likeliest
from ..validation import Name, Probability, setting
from .class_loss import Targets
from .entity_task import EntityTask, given_spans
from .relation_classes import RelationClasses
from .relation_targets import LOST, UNKNOWN_LABEL, RelationTargets, across_texts

Array = np.ndarray

DEFAULT_CONFIG = Config().from_str(
    """
[luke_relation]
spans_key = null
multi_label = false
threshold = null
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
    threshold: float | None,
    pair_order: Literal["both", "text"],
    symmetric: list[str],
    merge_entities: bool,
    scorer: Callable | None,
) -> "LukeRelation":
    """Construct a relation component.

    model: ``spacy-luke.PairScorer.v1``.
    candidates: the pairs that are scored, e.g. ``spacy-luke.relation_candidates.v1``.
    spans_key: the spans group with the entities; by default ``Doc.ents``.
    multi_label: a pair may have several relations, each with its own probability; else at most one.
    threshold: least score of a relation; by default 0.5 with ``multi_label``, else 0. Without
        ``multi_label`` a relation must also be more probable than all others and than
        "no relation".
    pair_order: ``both``: a pair is scored as (head, tail) and as (tail, head), as published.
        ``text``: a pair is scored once, in text order; a label has another class for relations
        whose head is the second entity.
    symmetric: labels without a direction; their head is the first entity in the text.
    merge_entities: mentions with the same ``kb_id_`` (except "NIL") are one entity. All of its
        mentions are scored, and its relations are written on the first.
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
    whether (first, second) is a candidate, and whether (second, first) is."""

    by_doc: list[list[list[Span]]]
    directions: Array

    @property
    def starts(self) -> Array:
        """(n_docs + 1,) the number of each document's first entity, counted over the batch."""
        return np.cumsum([0, *map(len, self.by_doc)])


class LukeRelation(EntityTask[RelationQuery]):
    """Predict relations between given entities."""

    architecture = "spacy-luke.PairScorer.v1"
    node = PairScorer.node
    layer = "relations"
    out_of_reach = LOST
    published_nil = NO_RELATION

    # None: see Confidence.of.
    threshold: Probability | None = setting()  # type: ignore[assignment]
    multi_label: bool = setting()
    pair_order: Literal["both", "text"] = setting()
    symmetric: list[Name] = setting()
    merge_entities: bool = setting()

    candidates: Candidates

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
        require("relations")

    # Classes and candidates

    @property
    def _relation_classes(self) -> RelationClasses:
        nil = None if self.multi_label else self.published_nil
        return RelationClasses(self.labels, self.symmetric, self.pair_order, nil)

    def _classes(self) -> list[Any]:
        return list(self._relation_classes.names)

    def _labels_of(self, doc: Doc) -> Iterable[str]:
        return {item.label for item in self._gold(doc)}

    def _gold(self, doc: Doc) -> list[Offsets]:
        """The gold relations with an annotated label."""
        annotated = annotated_labels(doc, self.layer)
        return [
            item
            for item in gold_offsets(doc, self.merge_entities, self.spans_key)
            if annotated is None or item.label in annotated
        ]

    def _query(self, docs: Sequence[Doc]) -> RelationQuery:
        key, merged = self.spans_key, self.merge_entities
        entities = [entities_of(spans_of(doc, key), merged) for doc in docs]
        pairs, directions = [np.zeros((0, 2), dtype=np.int64)], [np.zeros((0, 2), dtype=bool)]
        n_entities = 0
        for doc, of_doc in zip(docs, entities):
            doc_pairs, doc_directions = self._candidates(doc, of_doc)
            pairs.append(doc_pairs + n_entities)
            directions.append(doc_directions)
            n_entities += len(of_doc)
        return _query(docs, entities, np.concatenate(pairs), np.concatenate(directions))

    def _part(self, query: RelationQuery, low: int, high: int) -> RelationQuery:
        first, pairs = query.starts[low], query.pairs
        rows = (first <= pairs[:, 0]) & (pairs[:, 0] < query.starts[high])
        docs, entities = query.docs[low:high], query.by_doc[low:high]
        return _query(docs, entities, pairs[rows] - first, query.directions[rows])

    def _candidates(self, doc: Doc, entities: list[list[Span]]) -> tuple[Array, Array]:
        """(n, 2) pairs that are scored, and (n, 2) their directions (see RelationQuery). A pair of
        an entity with itself is omitted, and repeated pairs are scored once. With the pair order
        ``text`` a pair is in text order, and scored if either direction is a candidate."""
        n = len(entities)
        proposed = self._proposed(self.candidates(doc, entities))
        if len(proposed) and not 0 <= proposed.min() <= proposed.max() < n:
            raise ConfigError(
                f"{self.name}.candidates gave a pair that is not one of the {n} entities of the "
                f"document {doc.text[:60]!r}."
            )
        proposed = proposed[proposed[:, 0] != proposed[:, 1]]
        pairs = proposed if self.pair_order == "both" else np.sort(proposed, axis=1)
        # A pair (i, j) as the number i * n + j.
        pairs = np.stack(np.divmod(np.unique(pairs @ [n, 1]), max(n, 1)), axis=1)
        directions = [np.isin(pairs @ order, proposed @ [n, 1]) for order in ([n, 1], [1, n])]
        return pairs, np.stack(directions, axis=1)

    def _proposed(self, given: Any) -> Array:
        """The result of ``candidates``, (n, 2). Raises ConfigError for one of another form."""
        try:
            pairs = np.asarray(given)
        except ValueError:  # rows of several lengths
            pairs = np.asarray(None)
        if not pairs.size and pairs.ndim in (1, 2):
            return np.zeros((0, 2), dtype=np.int64)
        if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
            raise ConfigError(
                f"{self.name}.candidates must give pairs of the numbers of entities, (n, 2), and "
                f"gave {pairs.dtype} of the shape {pairs.shape}."
            )
        return pairs.astype(np.int64)

    # Prediction

    def set_annotations(
        self, docs: Iterable[Doc], scores: tuple[RelationQuery, ClassScores]
    ) -> None:
        """Write ``Doc._.relations``."""
        query, values = scores
        allowed = self._relation_classes.allowed(query.directions[values.rows])
        best, classes, found_scores = self._decode(values, allowed)
        rows, starts = values.rows[best], query.starts
        pairs, of_doc = query.pairs[rows], query.of_doc[rows]
        bounds = np.searchsorted(of_doc, np.arange(len(query.docs) + 1)).tolist()
        for i, (doc, a, b) in enumerate(zip(docs, bounds, bounds[1:])):
            table = (pairs[a:b] - starts[i]).tolist()
            chosen = zip(table, classes[a:b].tolist(), found_scores[a:b].tolist())
            doc._.relations = self._relations(query.by_doc[i], chosen)

    def _decode(self, values: ClassScores, allowed: Array) -> tuple[Array, Array, Array]:
        """Indices of scored rows, classes and scores of the predicted relations, (n,) each.

        allowed: (n_scored, n_classes) the classes that each row may have.
        """
        logits = values.logits.astype(np.float64)
        confidence, of_label = self._confidence, self._relation_classes.of_label
        if self.multi_label:
            scores = confidence.scores(of_label, sigmoid(logits))
            rows, classes = np.nonzero(confidence.accepts(of_label, scores) & allowed)
            return rows, classes, scores[rows, classes]
        if not len(logits):
            nothing = np.zeros(0, dtype=np.int64)
            return nothing, nothing, np.zeros(0)
        logits[~allowed] = -np.inf
        probabilities = np.exp(logits - logits.max(-1, keepdims=True))
        probabilities /= probabilities.sum(-1, keepdims=True)
        best = likeliest(logits)
        rows = np.flatnonzero(best < logits.shape[1] - 1)
        classes = best[rows]
        scores = confidence.scores(of_label[classes], probabilities[rows, classes])
        accepted = confidence.accepts(of_label[classes], scores)
        return rows[accepted], classes[accepted], scores[accepted]

    def _relations(self, entities: list[list[Span]], chosen: Iterable[tuple]) -> list[Relation]:
        """chosen: ((first, second), class number, score) of pairs of one document."""
        classes = self._relation_classes
        names = classes.names
        best: dict[tuple[int, int, str], float] = {}
        for (first, second), c, score in chosen:
            key = classes.relation_of(first, second, names[c])
            best[key] = max(score, best.get(key, 0.0))
        return [
            Relation(entities[head][0], entities[tail][0], label, score)
            for (head, tail, label), score in best.items()
        ]

    def answers(self, examples: Iterable[Example]) -> Answers:
        return relation_answers(examples, **{name: self.cfg[name] for name in SETTINGS})

    # Training

    def _targets(self, examples: Sequence[Example], query: RelationQuery) -> Targets:
        """Known are the classes whose labels are annotated in the pair's document. A pair without a
        gold relation has none of the known classes, but may have any of the others."""
        classes, _ = self._match(examples, query)
        known = np.stack([self._annotated_classes(eg.reference) for eg in examples])[query.of_doc]
        related = classes if self.multi_label else classes[:, :-1]
        across = across_texts(examples, query.by_doc, query.pairs)
        known[across & ~related.any(1)] = False
        if not self.multi_label:
            # Classes a, b, nil, of which b is not annotated: [0, 0, 1] -> [0, 1, 1], b or nil.
            unrelated = classes[:, -1] > 0
            classes[unrelated] = np.maximum(classes[unrelated], ~known[unrelated])
            # If no label is annotated, all classes are possible, and the row is ignored.
            classes[~known[:, :-1].any(1)] = 0.0
        return classes, known

    def _annotated_classes(self, doc: Doc) -> Array:
        """(n_classes,) whether each class is annotated in a document. "No relation" always is."""
        labels = annotated_labels(doc, self.layer)
        names = [name if isinstance(name, str) else name[0] for name in self._classes()]
        annotated = [labels is None or name in labels for name in names]
        if not self.multi_label:
            annotated[-1] = True
        return np.asarray(annotated, dtype=bool)

    def _match(
        self, examples: Sequence[Example], query: RelationQuery, fit: Array | None = None
    ) -> tuple[Array, Counter[str]]:
        """(n_pairs, n_classes) gold classes of the candidates, and the number of gold relations
        that are not learned, by reason. fit: (n_pairs,) whether each candidate can be scored."""
        targets = RelationTargets(self._relation_classes, query.pairs, query.directions, fit)
        lost: Counter[str] = Counter()
        for i, eg in enumerate(examples):
            entities = _entities_by_place(query, i, common_places(eg, eg.predicted))
            place_of = common_places(eg, eg.reference)
            mentions = self._gold_mentions(eg.reference)
            for item in self._gold(eg.reference):
                head, tail = (
                    next((entities[x] for x in map(place_of, places) if x in entities), None)
                    for side in (item.head, item.tail)
                    for places in [(side, *mentions.get(side, ()))]
                )
                reason = targets.add(head, tail, item.label)
                if reason == UNKNOWN_LABEL:
                    raise self._unknown_labels([item.label])
                if reason:
                    lost[reason] += 1
        targets.mark_unrelated()
        return targets.table, lost

    def _gold_mentions(self, doc: Doc) -> dict[Place, list[Place]]:
        """Merged entities are related whatever mention has the relation: the place of each mention
        -> those of all mentions of its entity."""
        if not self.merge_entities:
            return {}
        entities = entities_of(spans_of(doc, self.spans_key), merged=True)
        places = [list(map(characters, mentions)) for mentions in entities]
        return {place: of_entity for of_entity in places for place in of_entity}

    def _count_limits(self, examples: Iterable[Example]) -> dict[str, int]:
        """Count and log the gold relations that cannot be predicted, by reason."""
        unused = [label for label in self.symmetric if label not in self.labels]
        if unused:
            LOGGER.warning(
                "%s: symmetric contains %s, which are not labels of the data.", self.name, unused
            )
        counts, merged = dict.fromkeys(("gold", *LOST), 0), False
        for batch in minibatch(examples, 64):
            examples = list(batch)
            query = self._query([eg.predicted for eg in examples])
            _, lost = self._match(examples, query, fits(self.model, query))
            merged |= any(len(mentions) > 1 for doc in query.by_doc for mentions in doc)
            counts["gold"] += sum(len(self._gold(eg.reference)) for eg in examples)
            for reason, number in lost.items():
                counts[reason] += number
        if self.merge_entities and counts["gold"] and not merged:
            LOGGER.warning(
                "%s: merge_entities is true, but no document has two entities with the same "
                "kb_id_, so nothing is merged. The corpus reader must preset links (links = true).",
                self.name,
            )
        log_lost(
            sum(counts.values()) - counts["gold"],
            "%s: of %d gold relations %d have a side that is not an entity, %d are not a candidate "
            "pair, %d are the second label of a pair, %d are longer than a window: these cannot be "
            "predicted.",
            self.name,
            *counts.values(),
        )
        return counts


def _query(
    docs: Sequence[Doc], entities: list[list[list[Span]]], pairs: Array, directions: Array
) -> RelationQuery:
    """pairs: (n_pairs, 2) entities, counted over the documents."""
    sizes = [len(entity) for doc in entities for entity in doc]
    mentions = [[span for entity in doc for span in entity] for doc in entities]
    of_entity = np.repeat(np.arange(len(sizes)), sizes)
    return RelationQuery(docs, given_spans(mentions), of_entity, pairs, entities, directions)


def _entities_by_place(
    query: RelationQuery, i: int, place_of: Callable[[Place], Place]
) -> dict[Place, int]:
    """Places of the mentions in the i-th document -> entities, counted over the batch."""
    return {
        place_of((span.start_char, span.end_char)): entity
        for entity, mentions in enumerate(query.by_doc[i], int(query.starts[i]))
        for span in mentions
    }
