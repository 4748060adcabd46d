"""``luke_ner``: entities as spans, each asked about as an entity token."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc, Span, SpanGroup
from spacy.training import Example, validate_examples, validate_get_examples
from spacy.vocab import Vocab
from thinc.api import Config, Model, Optimizer, set_dropout_rate
from thinc.types import Ragged

from ..errors import ConfigError
from ..layers.span_module import NIL
from ..layers.span_network import NETWORK, SpanQuery, SpanScores
from ..metrics.entities import luke_ner_score
from ..report import LOGGER
from .as_in_training import as_in_training
from .candidates import doc_lengths, span_table
from .card import record
from .decoding import Decoded, decode
from .ents import entity_tokens, set_entities
from .gold import gold_spans, match_gold, touches_missing
from .labelled import Labelled
from .span_limits import report_limits
from .span_loss import span_loss

Array = np.ndarray

DEFAULT_CONFIG = Config().from_str(
    """
[luke_ner]
spans_key = "luke_ner"
nested = false
threshold = 0.0
nil_bias = 0.0
overwrite = true
scorer = {"@scorers":"spacy-luke.luke_ner_scorer.v1"}

[luke_ner.suggester]
@misc = "spacy-luke.sentence_spans_suggester.v1"
max_words = 8

[luke_ner.model]
@architectures = "spacy-luke.SpanScorer.v1"
mode = "two-stage"

[luke_ner.model.encoder]
@architectures = "spacy-luke.LukeEncoder.v1"
name = "studio-ousia/luke-base"
"""
)


@Language.factory(
    "luke_ner",
    assigns=["doc.ents", "doc.spans", "token.ent_iob", "token.ent_type"],
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
    spans_key: str,
    nested: bool,
    threshold: float,
    nil_bias: float,
    overwrite: bool,
    scorer: Callable | None,
) -> "LukeNER":
    """Construct a span NER component.

    model: ``spacy-luke.SpanScorer.v1``.
    suggester: candidate spans; any registered spaCy suggester.
    spans_key: the spans group written (and, in nested mode, read as gold).
    nested: write only the spans group, where spans may overlap; else also ``Doc.ents``.
    threshold: least probability of a written span.
    nil_bias: taken off the logit of "no entity"; ``spacy luke tune-nil`` chooses it.
    overwrite: replace existing entities; if false they stay and new ones fill the gaps. Tokens that
        were blocked (``Doc.set_ents``) stay without an entity either way.
    """
    return LukeNER(
        nlp.vocab,
        model,
        suggester,
        name,
        spans_key=spans_key,
        nested=nested,
        threshold=threshold,
        nil_bias=nil_bias,
        overwrite=overwrite,
        scorer=scorer,
    )


class LukeNER(Labelled):
    """Find entities by asking about candidate spans.

    limits: how many gold spans of the training data cannot be found, by reason, once initialised.
    """

    published_nil = NIL

    def __init__(
        self,
        vocab: Vocab,
        model: Model,
        suggester: Callable[..., Ragged],
        name: str = "luke_ner",
        *,
        spans_key: str = "luke_ner",
        nested: bool = False,
        threshold: float = 0.0,
        nil_bias: float = 0.0,
        overwrite: bool = True,
        scorer: Callable | None = luke_ner_score,
    ):
        if not 0.0 <= threshold <= 1.0:
            raise ConfigError(f"{name}.threshold is {threshold}; it must be from 0 to 1.")
        if model.maybe_get_ref("network") is None or model.get_ref("network").name != NETWORK:
            raise ConfigError(f"{name}.model must be spacy-luke.SpanScorer.v1, got {model.name!r}.")
        self.vocab = vocab
        self.model = model
        self.suggester = suggester
        self.name = name
        self.scorer = scorer
        self.cfg: dict[str, Any] = {
            "labels": [],
            "spans_key": spans_key,
            "nested": nested,
            "threshold": threshold,
            "nil_bias": nil_bias,
            "overwrite": overwrite,
        }
        self.limits: dict[str, int] = {}

    # Labels

    @property
    def _nil(self) -> int:
        """The class of "no entity": the last."""
        return len(self.labels)

    @property
    def network(self) -> Model:
        return self.model.get_ref("network")

    def _classes(self) -> list[Any]:
        return [*self.labels, NIL]

    # Prediction

    def predict(self, docs: Iterable[Doc]) -> tuple[Ragged, SpanScores]:
        """Candidates and their scores; documents are not changed."""
        docs = list(docs)
        spans = self.suggester(docs, ops=self.model.ops)
        return spans, self.network.predict(SpanQuery(docs, spans))

    def set_annotations(self, docs: Iterable[Doc], scores: tuple[Ragged, SpanScores]) -> None:
        """Write entities (flat mode) and the spans group with ``attrs["scores"]``."""
        docs = list(docs)
        spans, values = scores
        offsets = np.concatenate([[0], np.cumsum([len(doc) for doc in docs])])
        table = span_table(spans, self.model.ops)
        of_doc = np.repeat(np.arange(len(docs)), doc_lengths(spans, self.model.ops))[values.asked]
        asked = table[values.asked]
        found = self._decode(docs, values, asked + offsets[of_doc, None])
        ends = np.searchsorted(of_doc[found.candidates], np.arange(len(docs)), side="right")
        start = 0
        for doc, end in zip(docs, ends.tolist()):
            self._annotate(doc, asked[found.candidates[start:end]], found, start, end)
            start = end

    def _decode(self, docs: Sequence[Doc], values: SpanScores, asked: Array) -> Decoded:
        taken = None
        if not self.cfg["nested"]:
            marks = [entity_tokens(doc) for doc in docs]
            kept = [x.blocked if self.cfg["overwrite"] else x.inside for x in marks]
            taken = np.concatenate([np.zeros(0, dtype=bool), *kept])  # also of no document
        return decode(
            self.model.ops.to_numpy(values.logits),
            asked[:, 0],
            asked[:, 1],
            float(self.cfg["nil_bias"]),
            float(self.cfg["threshold"] or 0.0),
            flat=not self.cfg["nested"],
            taken=taken,
        )

    def _annotate(self, doc: Doc, spans: Array, found: Decoded, start: int, end: int) -> None:
        labels = [self.labels[i] for i in found.labels[start:end]]
        new = [Span(doc, a, b, label=label) for (a, b), label in zip(spans.tolist(), labels)]
        group = SpanGroup(doc, name=self.cfg["spans_key"], spans=new)
        group.attrs["scores"] = found.scores[start:end].astype("float32")
        doc.spans[self.cfg["spans_key"]] = group
        if not self.cfg["nested"]:
            kept = [] if self.cfg["overwrite"] else list(doc.ents)
            set_entities(doc, [*kept, *new])

    # Training

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Optimizer | None = None,
        losses: dict[str, float] | None = None,
    ) -> dict[str, float]:
        """Learn from a batch: cross-entropy of the asked candidates and, in two-stage mode,
        the filter's binary cross-entropy, both summed and divided by the batch's tokens."""
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        examples = list(examples)
        validate_examples(examples, "LukeNER.update")
        docs = [eg.predicted for eg in examples]
        if not any(len(doc) for doc in docs):
            return losses
        set_dropout_rate(self.model, drop)
        spans = self.suggester(docs, ops=self.model.ops)
        targets, annotated = self._targets(examples, spans)
        keep = (targets != self._nil) & annotated
        scores, backprop = self.network.begin_update(SpanQuery(docs, spans, keep))
        n_tokens = sum(len(doc) for doc in docs)
        loss, d_scores = span_loss(self.model.ops, scores, targets, annotated, self._nil, n_tokens)
        backprop(d_scores)
        if sgd not in (None, False):
            self.finish_update(sgd)
        losses[self.name] += loss
        return losses

    def get_loss(
        self, examples: Iterable[Example], scores: tuple[Ragged, SpanScores]
    ) -> tuple[float, SpanScores]:
        """The loss and its gradient for predictions made by :meth:`predict`."""
        examples = list(examples)
        spans, values = scores
        targets, annotated = self._targets(examples, spans)
        n_tokens = sum(len(eg.predicted) for eg in examples)
        return span_loss(self.model.ops, values, targets, annotated, self._nil, n_tokens)

    def _targets(self, examples: Sequence[Example], spans: Ragged) -> tuple[Array, Array]:
        """(n_candidates,) class of each candidate, and whether its tokens are annotated."""
        gold = gold_spans(examples, self.cfg["spans_key"] if self.cfg["nested"] else None)
        table, lengths = span_table(spans, self.model.ops), doc_lengths(spans, self.model.ops)
        docs = np.repeat(np.arange(len(examples)), lengths)
        targets = np.full(len(table), self._nil, dtype=np.int64)
        matched = match_gold(docs, table, gold, [len(eg.predicted) for eg in examples])
        classes = {label: i for i, label in enumerate(self.labels)}
        unknown = sorted(set(gold.labels) - set(classes))
        if unknown:
            raise ConfigError(
                f"{self.name}: labels {unknown} are in the data but not in the component; add "
                "them with add_label, or initialise with all of the training data."
            )
        found = matched >= 0
        of_gold = np.asarray([classes[label] for label in gold.labels], dtype=np.int64)
        targets[found] = of_gold[matched[found]]
        return targets, ~touches_missing(docs, table, gold.missing)

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        labels: list[str] | None = None,
    ) -> None:
        """Collect labels, read the encoder's weights, and report gold that cannot be found.

        labels: the labels, instead of those in the data. Without either, the labels of a
        published span classifier are taken; where there are none, ConfigError is raised.
        """
        validate_get_examples(get_examples, "LukeNER.initialize")
        spans_key = self.cfg["spans_key"] if self.cfg["nested"] else None
        names = set(labels or ())
        if labels is None:
            for eg in get_examples():
                gold = eg.reference.ents if spans_key is None else ()
                if spans_key is not None and spans_key in eg.reference.spans:
                    gold = eg.reference.spans[spans_key]
                names.update(span.label_ for span in gold)
        self.network.layers[0].initialize()
        absent = f"spans under {spans_key!r}" if spans_key else "entities"
        self._initialize_classes(
            names,
            f"The training data has no {absent} and the encoder no published span classifier.",
        )
        self._check_score_weights(nlp)
        examples = as_in_training(nlp, self.name, get_examples())
        self.limits = report_limits(self.name, examples, spans_key, self.suggester, self.network)
        record(nlp, self.name, self.limits)

    def _check_score_weights(self, nlp: Language | None) -> None:
        """In nested mode the default weights, those of ``Doc.ents``, would choose nothing."""
        score = f"spans_{self.cfg['spans_key']}_f"
        weights = nlp.config["training"]["score_weights"] if nlp is not None else {score: 1.0}
        if self.cfg["nested"] and not weights.get(score):
            LOGGER.warning(
                "%s is in nested mode, but [training.score_weights] has no weight for %s: the "
                "best model of a training could not be told. Set %s = 1.0 and ents_f = null.",
                self.name,
                score,
                score,
            )
