"""``luke_relation``: relations between the entities of a document."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import minibatch
from thinc.api import Config, Model

from ..annotations.mentions import entities_of, spans_of
from ..annotations.relations import Offsets, Relation, install_relations, relation_offsets
from ..errors import ConfigError
from ..inputs.pairs import Candidates
from ..layers.pair_scorer import NETWORK, PairQuery, PairScores, askable
from ..metrics.relations import common_places, relation_score
from ..report import LOGGER, tell
from .class_loss import binary_loss, single_loss
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
    model: Model[PairQuery, PairScores],
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
    candidates: which pairs are asked about, e.g. ``spacy-luke.relation_candidates.v1``.
    spans_key: relate the spans of this group; by default ``Doc.ents``.
    multi_label: a pair may have several relations, each with a probability of its own; else one,
        or none.
    threshold: least probability of a relation; where a pair has at most one, that one also has to
        be likelier than all others and than none.
    pair_order: ``both``: a pair is asked about as (head, tail) and as (tail, head), as published;
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


class AskedPairs(NamedTuple):
    """query: what the model is asked. entities: those of each document, each a list of mentions;
    starts: (n_docs + 1,) where a document's entities begin, counted through the batch. ways:
    (n_pairs, 2) whether a pair is a candidate as it is asked about, and the other way round."""

    query: PairQuery
    entities: list[list[list[Span]]]
    starts: Array
    ways: Array


class LukeRelation(EntityTask):
    """Find relations between entities that are given."""

    network_name = NETWORK
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
        if cfg["pair_order"] not in ("both", "text"):
            raise ConfigError(f"{name}.pair_order is {cfg['pair_order']!r}; use 'both' or 'text'.")
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
        """Annotated relations; one labelled as none, as some corpora have it, is none."""
        return [item for item in relation_offsets(doc) if item.label != self.published_nil]

    def _ask(self, docs: Sequence[Doc]) -> AskedPairs:
        key, merged = self.cfg["spans_key"], self.cfg["merge_entities"]
        entities = [entities_of(spans_of(doc, key), merged) for doc in docs]
        candidates = [self._candidates(*both) for both in zip(docs, entities)]
        starts = np.cumsum([0, *map(len, entities)])
        nothing = np.zeros((0, 2), dtype=np.int64)
        pairs = [found + at for (found, _), at in zip(candidates, starts)]
        ways = np.concatenate([nothing.astype(bool), *(x for _, x in candidates)])
        return _asked(docs, entities, np.concatenate([nothing, *pairs]), ways)

    def _part(self, asked: AskedPairs, low: int, high: int) -> AskedPairs:
        first, pairs = asked.starts[low], asked.query.pairs
        rows = (first <= pairs[:, 0]) & (pairs[:, 0] < asked.starts[high])
        docs, entities = asked.query.docs[low:high], asked.entities[low:high]
        return _asked(docs, entities, pairs[rows] - first, asked.ways[rows])

    def _docs_of(self, asked: AskedPairs) -> Array:
        return np.searchsorted(asked.starts, asked.query.pairs[:, 0], side="right") - 1

    def _candidates(self, doc: Doc, entities: list[list[Span]]) -> tuple[Array, Array]:
        """((n, 2) pairs that are asked about, (n, 2) their ways, see AskedPairs). Each once, and
        none of an entity with itself; in text order if either direction is a candidate."""
        found = np.asarray(self.candidates(doc, entities), dtype=np.int64).reshape(-1, 2)
        keep: Array = np.zeros((len(entities), len(entities)), dtype=bool)
        keep[found[:, 0], found[:, 1]] = True
        np.fill_diagonal(keep, False)
        pairs = np.argwhere(np.triu(keep | keep.T) if self.cfg["pair_order"] == "text" else keep)
        heads, tails = pairs.T
        ways: Array = np.stack([keep[heads, tails], keep[tails, heads]], axis=1)
        return pairs, ways

    def _possible(self, ways: Array) -> Array:
        """(n_pairs, n_classes) which classes run in a direction that is a candidate."""
        forward, backward = ways.T
        either = forward | backward

        def column(name: Any) -> Array:
            if isinstance(name, tuple):
                return backward
            return either if name in self.cfg["symmetric"] else forward

        columns = [column(name) for name in self._classes()]
        if not self.cfg["multi_label"]:
            columns[-1] = np.ones(len(ways), dtype=bool)
        return np.stack(columns, axis=1) if columns else np.zeros((len(ways), 0), dtype=bool)

    # Prediction

    def set_annotations(self, docs: Iterable[Doc], scores: tuple[AskedPairs, PairScores]) -> None:
        """Write ``Doc._.relations``."""
        asked, values = scores
        rows, classes, chances = self._decode(values, self._possible(asked.ways[values.asked]))
        pairs = asked.query.pairs[values.asked[rows]]
        of_doc = self._docs_of(asked)[values.asked[rows]]
        for i, doc in enumerate(docs):
            mine = np.flatnonzero(of_doc == i)
            table = (pairs[mine] - asked.starts[i]).tolist()
            found = zip(table, classes[mine].tolist(), chances[mine].tolist())
            doc._.relations = self._relations(asked.entities[i], found)

    def _decode(self, values: PairScores, possible: Array) -> tuple[Array, Array, Array]:
        """Rows of ``asked``, classes and probabilities of what is likely enough."""
        logits = self.model.ops.to_numpy(values.logits).astype(np.float64)
        threshold = self.cfg["threshold"]
        if self.cfg["multi_label"]:
            chances = 1 / (1 + np.exp(-np.clip(logits, -50, 50)))
            rows, classes = np.nonzero((chances >= threshold) & possible)
            return rows, classes, chances[rows, classes]
        if not len(logits):
            nothing = np.zeros(0, dtype=np.int64)
            return nothing, nothing, np.zeros(0)
        logits[~possible] = -np.inf
        chances = np.exp(logits - logits.max(-1, keepdims=True))
        chances /= chances.sum(-1, keepdims=True)
        best = chances.argmax(-1)
        top = chances[np.arange(len(best)), best]
        rows = np.flatnonzero((best < logits.shape[1] - 1) & (top >= threshold))
        return rows, best[rows], top[rows]

    def _relations(self, entities: list[list[Span]], found: Iterable[tuple]) -> list[Relation]:
        names = self._classes()
        best: dict[tuple[int, int, str], float] = {}
        for (head, tail), c, chance in found:
            reverse = not isinstance(names[c], str)
            label = names[c][0] if reverse else names[c]
            if reverse or (label in self.cfg["symmetric"] and head > tail):
                head, tail = tail, head
            key = (head, tail, label)
            best[key] = max(chance, best.get(key, 0.0))
        return [
            Relation(entities[head][0], entities[tail][0], label, chance)
            for (head, tail, label), chance in best.items()
        ]

    # Training

    def _loss(
        self, examples: Sequence[Example], asked: AskedPairs, scores: PairScores
    ) -> tuple[float, PairScores]:
        targets, _ = self._targets(examples, asked)
        loss = binary_loss if self.cfg["multi_label"] else single_loss
        value, d_logits = loss(self.model.ops, scores.logits, targets[scores.asked])
        return value, scores._replace(logits=d_logits)

    def _targets(
        self, examples: Sequence[Example], asked: AskedPairs, fits: Array | None = None
    ) -> tuple[Array, Counter[str]]:
        """(n_pairs, n_classes) gold of each candidate; and how many gold relations no candidate
        holds, by reason. fits: (n_pairs,) which candidates a window can show; else all."""
        classes = {name: i for i, name in enumerate(self._classes())}
        targets = np.zeros((len(asked.query.pairs), len(classes)), dtype=np.float32)
        rows = {(a, b): i for i, (a, b) in enumerate(asked.query.pairs.tolist())}
        possible = self._possible(asked.ways)
        lost: Counter[str] = Counter()
        for i, eg in enumerate(examples):
            ours, theirs = (common_places(eg, doc) for doc in (eg.predicted, eg.reference))
            places = _places(asked.entities[i], int(asked.starts[i]), ours)
            for item in self._gold(eg.reference):
                item = item._replace(head=theirs(item.head), tail=theirs(item.tail))
                reason = self._mark(item, places, rows, classes, possible, targets, fits)
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
        fits: Array | None,
    ) -> str | None:
        """Make a gold relation's candidates positive, or say why there are none."""
        if item.head not in places or item.tail not in places:
            return "no entity"
        directions = self._asked_as(places[item.head], places[item.tail], item)
        found = [(rows[a, b], name) for a, b, name in directions if (a, b) in rows]
        if any(name not in classes for _, name in found):
            raise ConfigError(
                f"{self.name}: the label {item.label!r} is in the data but not in the "
                "component; add it with add_label, or initialise with all of the data."
            )
        found = [(row, name) for row, name in found if possible[row, classes[name]]]
        if not found:
            return "no candidate"
        if fits is not None and not any(fits[row] for row, _ in found):
            return "too long"
        for row, name in found:
            if not self.cfg["multi_label"] and targets[row].any() > targets[row, classes[name]]:
                return "second label"
            targets[row, classes[name]] = 1.0
        return None

    def _asked_as(self, head: int, tail: int, item: Offsets) -> list[tuple[int, int, Any]]:
        """(first, second, class) of the candidates that a gold relation makes positive; head and
        tail are counted through the batch."""
        symmetric = item.label in self.cfg["symmetric"]
        if self.cfg["pair_order"] == "both":
            other = [(tail, head, item.label)] if symmetric else []
            return [(head, tail, item.label), *other]
        if head < tail or symmetric:
            return [(min(head, tail), max(head, tail), item.label)]
        return [(tail, head, (item.label, "reversed"))]

    def _report_limits(self, examples: Iterable[Example]) -> None:
        """Count the gold relations that cannot be predicted."""
        absent = [label for label in self.cfg["symmetric"] if label not in self.labels]
        if absent:
            LOGGER.warning(
                "%s: symmetric names %s, which no relation of the data has.", self.name, absent
            )
        counts = dict.fromkeys(("gold", *LOST), 0)
        for batch in minibatch(examples, 64):
            examples = list(batch)
            asked = self._ask([eg.predicted for eg in examples])
            _, lost = self._targets(examples, asked, askable(self.model, asked.query))
            counts["gold"] += sum(len(self._gold(eg.reference)) for eg in examples)
            for reason, number in lost.items():
                counts[reason] += number
        self.limits = counts
        tell(
            sum(counts.values()) - counts["gold"],
            "%s: of %d gold relations %d have a side that is no entity, %d are no candidate pair, "
            "%d are a pair's second label, %d are longer than a window: these cannot be predicted.",
            self.name,
            *counts.values(),
        )


def _asked(
    docs: Sequence[Doc], entities: list[list[list[Span]]], pairs: Array, ways: Array
) -> AskedPairs:
    """pairs: by the entities of all of these documents."""
    sizes = [len(entity) for doc in entities for entity in doc]
    mentions = [[span for entity in doc for span in entity] for doc in entities]
    query = PairQuery(docs, given(mentions), np.repeat(np.arange(len(sizes)), sizes), pairs)
    return AskedPairs(query, entities, np.cumsum([0, *map(len, entities)]), ways)


def _places(
    entities: list[list[Span]], base: int, common: Callable[[Place], Place]
) -> dict[Place, int]:
    """What every mention is compared by -> its entity, counted through the batch."""
    return {
        common((span.start_char, span.end_char)): base + i
        for i, mentions in enumerate(entities)
        for span in mentions
    }
