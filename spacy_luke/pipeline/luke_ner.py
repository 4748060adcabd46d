"""``luke_ner``: finds entities by scoring candidate spans as entity inputs."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc, Span, SpanGroup
from spacy.training import Example
from spacy.util import minibatch
from spacy.vocab import Vocab
from thinc.api import Config, Model
from thinc.types import Ragged

from ..errors import ConfigError
from ..layers.span_network import NIL, SpanQuery, SpanScores, set_prior
from ..layers.span_scorer import NODE
from ..layers.task_layer import encoder_of, head_of
from ..metrics.answers import Answers
from ..metrics.ner import luke_ner_score, ner_answers
from ..report import LOGGER
from ..validation import Name, Probability, setting
from .as_in_training import as_in_training
from .class_loss import Targets
from .classifier_pipe import ClassifierPipe
from .decoding import decode
from .ents import entity_tokens, set_doc_ents
from .gold import gold_spans, match_gold, touches_missing
from .known_counts import KnownCounts
from .known_input import KnownWarnings, hide_ids, labels_of, read_known, with_known
from .span_limits import report_limits
from .span_loss import span_loss
from .suggested import suggested

Array = np.ndarray

DEFAULT_CONFIG = Config().from_str(
    """
[luke_ner]
spans_key = null
nested = false
threshold = 0.0
nil_bias = 0.0
overwrite = true
known = null
known_bias = 0.0
scorer = {"@scorers":"spacy-luke.luke_ner_scorer.v1"}

[luke_ner.suggester]
@misc = "spacy-luke.sentence_spans_suggester.v1"
max_words = 8

[luke_ner.model]
@architectures = "spacy-luke.SpanScorer.v1"
mode = "two-stage"
label_weight = 3.0

[luke_ner.model.encoder]
@architectures = "spacy-luke.LukeEncoder.v1"
name = "studio-ousia/luke-base"
"""
)


@Language.factory(
    "luke_ner",
    assigns=["doc.ents", "doc.spans", "span._.score", "token.ent_iob", "token.ent_type"],
    default_config=DEFAULT_CONFIG["luke_ner"],
    default_score_weights={
        "ents_f": 1.0,
        "ents_p": 0.0,
        "ents_r": 0.0,
        "ents_per_type": None,
    },
)
def make_luke_ner(
    nlp: Language,
    name: str,
    model: Model,
    suggester: Callable[..., Ragged],
    spans_key: str | None,
    nested: bool,
    threshold: float,
    nil_bias: float,
    overwrite: bool,
    known: str | None,
    known_bias: float,
    scorer: Callable | None,
) -> "LukeNER":
    """Construct a named entity component.

    model: ``spacy-luke.SpanScorer.v1``.
    suggester: proposes candidate spans; any registered spaCy suggester.
    spans_key: the spans group that is written and, in nested mode, read as gold; by default it has
        the component's name.
    nested: write only the spans group, in which spans may overlap; else also ``Doc.ents``.
    threshold: least score of a written span.
    nil_bias: subtracted from the logit of "no entity"; ``spacy luke tune`` chooses it.
    overwrite: replace existing entities; if false, they are kept, and new entities are added where
        they do not overlap. Blocked tokens (``Doc.set_ents``) never get an entity.
    known: a spans group with known names, such as ``known_names`` writes: an input of the model.
    known_bias: added to the logits of labels of a known span that is not inside a longer one;
        ``spacy luke tune`` chooses it.
    """
    return LukeNER(
        nlp.vocab,
        model,
        name,
        suggester,
        scorer,
        spans_key=spans_key,
        nested=nested,
        threshold=threshold,
        nil_bias=nil_bias,
        overwrite=overwrite,
        known=known,
        known_bias=known_bias,
    )


class LukeNER(ClassifierPipe[SpanQuery, SpanScores]):
    """Find entities by scoring candidate spans."""

    architecture = "spacy-luke.SpanScorer.v1"
    node = NODE
    out_of_reach = ("misaligned", "unsuggested", "second label", "too long")
    published_nil = NIL

    spans_key: Name | None = setting()
    nested: bool = setting()
    threshold: Probability = setting()
    nil_bias: float = setting()
    overwrite: bool = setting()
    known: Name | None = setting()
    known_bias: float = setting()

    suggester: Callable[..., Ragged]

    def __init__(
        self,
        vocab: Vocab,
        model: Model,
        name: str,
        suggester: Callable[..., Ragged],
        scorer: Callable | None = luke_ner_score,
        **cfg: Any,
    ) -> None:
        super().__init__(vocab, model, name, scorer, **{"known": None, "known_bias": 0.0, **cfg})
        self.suggester = suggester
        self._known_warnings = KnownWarnings()
        self._known_group()

    @property
    def key(self) -> str:
        """The name of its spans group, as of ``span_ruler``."""
        return self.spans_key or self.name

    def _known_group(self) -> str | None:
        """``known``. Raises ConfigError if it is the component's own group, as after one of both
        was set, or the component renamed."""
        if self.known == self.key:
            raise ConfigError(
                f"{self.name}.known is {self.known!r}, the spans group that {self.name} itself "
                "writes. Give the list another spans_key."
            )
        return self.known

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        self._known_group()  # such a pipeline could not be loaded
        super().to_disk(path, exclude=exclude)

    # Classes and candidates

    @property
    def _nil(self) -> int:
        """The number of the class "no entity": the last."""
        return len(self.labels)

    @property
    def _gold_key(self) -> str | None:
        return self.key if self.nested else None

    def _classes(self) -> list[Any]:
        return [*self.labels, NIL]

    def _labels_of(self, doc: Doc) -> Iterable[str]:
        key = self._gold_key
        spans = doc.ents if key is None else doc.spans.get(key, ())
        return {span.label_ for span in spans}

    def _query(self, docs: Sequence[Doc], hide: bool = False) -> SpanQuery:
        query = SpanQuery(docs, suggested(self.suggester, docs))
        key = self._known_group()
        if key is None:
            return query
        labels = self._known_labels
        known = read_known(docs, key, labels)
        self._known_warnings.of_labels(self.name, key, docs, known, labels)
        return with_known(query, hide_ids(known) if hide else known, len(labels))

    @property
    def _known_labels(self) -> list[str]:
        """The labels of known spans that the head has learned."""
        return list(head_of(self.model).config.get("known_labels", ()))

    # Prediction

    def set_annotations(self, docs: Iterable[Doc], scores: tuple[SpanQuery, SpanScores]) -> None:
        """Write the spans group with ``attrs["scores"]`` and, in flat mode, ``Doc.ents``."""
        docs = list(docs)
        if self.known is not None:
            self._known_warnings.of_groups(self.name, self.known, docs)
        query, values = scores
        table, of_doc = query.table[values.rows], query.of_doc[values.rows]
        offsets = np.concatenate([[0], np.cumsum([len(doc) for doc in docs])])
        # Count tokens over the batch: [0, 2) of a document after one of 5 tokens becomes [5, 7).
        in_batch = table + offsets[of_doc, None]
        rows, classes, found_scores = decode(
            self._biased(query, values),
            in_batch[:, 0],
            in_batch[:, 1],
            of_doc,
            self.nil_bias,
            self._confidence,
            flat=not self.nested,
            blocked=None if self.nested else self._blocked(docs),
        )
        # Rows are in document order: of_doc[rows] [0, 0, 2] -> ends [2, 2, 3].
        ends = np.searchsorted(of_doc[rows], np.arange(len(docs)), side="right")
        start = 0
        for doc, end in zip(docs, ends.tolist()):
            own = slice(start, end)
            spans = [
                Span(doc, a, b, label=self.labels[c])
                for (a, b), c in zip(table[rows[own]].tolist(), classes[own].tolist())
            ]
            self._annotate(doc, spans, found_scores[own])
            start = end

    def _biased(self, query: SpanQuery, values: SpanScores) -> Array:
        """(n_rows, n_classes) the logits, those of labels raised for known spans, which so come
        before spans that overlap them, too."""
        logits = values.logits
        if query.known is None or not self.known_bias:
            return logits
        logits = np.array(logits)
        logits[query.known.is_known[values.rows], :-1] += self.known_bias
        return logits

    def _blocked(self, docs: Sequence[Doc]) -> Array:
        """(n_tokens,) tokens of the batch that no entity may cover."""
        by_doc = [np.zeros(0, dtype=bool)]  # there may be no documents
        for doc in docs:
            inside, blocked = entity_tokens(doc)
            by_doc.append(blocked if self.overwrite else inside)
        return np.concatenate(by_doc)

    def _annotate(self, doc: Doc, spans: list[Span], scores: Array) -> None:
        group = SpanGroup(doc, name=self.key, spans=spans)
        group.attrs["scores"] = scores.astype("float32")
        doc.spans[self.key] = group
        if not self.nested:
            kept = [] if self.overwrite else list(doc.ents)
            set_doc_ents(doc, [*kept, *spans])

    def answers(self, examples: Iterable[Example]) -> Answers:
        return ner_answers(examples, spans_key=self.key, nested=self.nested)

    def score(self, examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
        return super().score(examples, **{"spans_key": self.key, **kwargs})

    # Training

    def _query_to_learn(self, docs: Sequence[Doc]) -> SpanQuery:
        return self._query(docs, hide=True)

    def _before_update(self, query: SpanQuery, targets: Targets) -> tuple[SpanQuery, Targets]:
        """Gold spans always pass the filter."""
        classes, annotated = targets
        return query._replace(keep=(classes != self._nil) & annotated), targets

    def _loss(
        self, query: SpanQuery, scores: SpanScores, targets: Targets
    ) -> tuple[float, SpanScores]:
        """Cross-entropy of the scored candidates and, in two-stage mode, the filter's binary
        cross-entropy, both summed and divided by the batch's tokens."""
        n_tokens = sum(len(doc) for doc in query.docs)
        return span_loss(self.model.ops, scores, *targets, self._nil, n_tokens)

    def _targets(self, examples: Sequence[Example], query: SpanQuery) -> Targets:
        """Known are the candidates whose tokens are all annotated."""
        gold = gold_spans(examples, self._gold_key)
        table, of_doc = query.table, query.of_doc
        targets = np.full(len(table), self._nil, dtype=np.int64)
        matched = match_gold(of_doc, table, gold, [len(doc) for doc in query.docs])
        classes = {label: i for i, label in enumerate(self.labels)}
        unknown = sorted(set(gold.labels) - set(classes))
        if unknown:
            raise self._unknown_labels(unknown)
        is_gold = matched >= 0
        gold_classes = np.asarray([classes[label] for label in gold.labels], dtype=np.int64)
        targets[is_gold] = gold_classes[matched[is_gold]]
        return targets, ~touches_missing(of_doc, table, gold.missing)

    def _head_config(
        self, nlp: Language | None, get_examples: Callable[[], Iterable[Example]]
    ) -> dict[str, Any]:
        if self.known is None:
            return {}
        examples = self._as_in_training(nlp, get_examples)
        return {"known_labels": labels_of((eg.predicted for eg in examples), self.known)}

    def _count_known(self, examples: Iterable[Example], key: str) -> None:
        """Count what the list is worth on the data: the model begins with that."""
        counts = KnownCounts(self._known_labels, self._classes())
        for batch in minibatch(examples, 64):
            query = self._query([eg.predicted for eg in batch])
            gold = gold_spans(batch, self._gold_key)
            n_gold = len(gold.labels) + int(gold.n_misaligned.sum())
            counts.add(query, self._targets(batch, query), n_gold)
        find, language = encoder_of(self.model).entities.find, self.vocab.lang or None
        counts.report(self.name, key, lambda x: find(x, language) is not None)
        if self._known_labels:
            set_prior(self.model, counts.prior())

    def _find_limits(
        self, nlp: Language | None, get_examples: Callable[[], Iterable[Example]]
    ) -> dict[str, int]:
        self._check_score_weights(nlp)
        if self.known is not None:
            self._count_known(self._as_in_training(nlp, get_examples), self.known)
        examples = map(self._with_known_labels, self._as_in_training(nlp, get_examples))
        return report_limits(self.name, examples, self._gold_key, self._query, self.model)

    def _with_known_labels(self, eg: Example) -> Example:
        """Raises ConfigError if the reference has others: an update would, maybe much later."""
        unknown = sorted(set(self._labels_of(eg.reference)) - set(self.labels))
        if unknown:
            raise self._unknown_labels(unknown)
        return eg

    def _as_in_training(
        self, nlp: Language | None, get_examples: Callable[[], Iterable[Example]]
    ) -> Iterable[Example]:
        return as_in_training(nlp, self.name, self._annotated(get_examples()))

    def _check_score_weights(self, nlp: Language | None) -> None:
        """Log a warning in nested mode if the score of the spans group has no weight: the default
        weights are those of ``Doc.ents``, whose scores are all 0 then."""
        score = f"spans_{self.key}_f"
        weights = {score: 1.0}
        if nlp is not None:
            weights = nlp.config.interpolate()["training"]["score_weights"]
        if self.nested and not weights.get(score):
            LOGGER.warning(
                "%s is in nested mode, but [training.score_weights] has no weight for %s: training "
                "could not select a best model. Set %s = 1.0, and ents_f = null if no other "
                "component finds entities.",
                self.name,
                score,
                score,
            )
