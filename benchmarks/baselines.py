"""Plain token classification on the encoder: the baseline of the NER experiments.

A BIO softmax over the state of each word's first piece, read as the CoNLL evaluation does.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.pipeline import TrainablePipe
from spacy.scorer import get_ner_prf
from spacy.tokens import Doc, Span
from spacy.training import Example, validate_examples
from spacy.util import registry
from spacy.vocab import Vocab
from thinc.api import (
    Dropout,
    Linear,
    Model,
    Ops,
    Optimizer,
    chain,
    list2array,
    set_dropout_rate,
)
from thinc.types import Floats2d

from .datasets import SPANS_KEY

Array = np.ndarray
FACTORY = "luke_benchmark_token"
ARCHITECTURE = "spacy-luke.benchmarks.TokenLinear.v1"
SPANS_AS_ENTS = "luke_benchmark_spans_as_ents"


def _init_weights(ops: Ops, shape: tuple[int, ...]) -> Any:
    """Normal with a deviation of 0.02, as the heads of the span models."""
    drawn: Any = np.random.normal(0.0, 0.02, shape)
    return ops.asarray_f(drawn)


@registry.architectures(ARCHITECTURE)
def TokenLinear_v1(tok2vec: Model) -> Model[list[Doc], Floats2d]:
    """Dropout and a linear layer: logits (n_tokens, 2 n_labels + 1) of all documents."""
    return chain(tok2vec, list2array(), Dropout(0.1), Linear(init_W=_init_weights))


@Language.factory(
    FACTORY, assigns=["doc.ents"], default_config={"o_bias": 0.0}, default_score_weights={}
)
def make_token_classifier(
    nlp: Language, name: str, model: Model, o_bias: float
) -> "TokenClassifier":
    """o_bias: taken off the logit of O."""
    return TokenClassifier(nlp.vocab, model, name, o_bias)


def decode_bio(classes: Array, first: Array) -> tuple[Array, Array, Array]:
    """BIO classes to entities, as the CoNLL evaluation reads them.

    classes: (n_tokens,) 0 for O, 1 + 2l for B and 2 + 2l for I of label l. first: (n_tokens,)
    whether a document starts there. Returns starts, ends and labels, (n_entities,) each.
    """
    label = (classes - 1) // 2
    inside = classes > 0
    same = np.zeros(len(classes), dtype=bool)
    same[1:] = inside[1:] & (label[1:] == label[:-1]) & (classes[1:] % 2 == 0) & ~first[1:]
    begins = inside & ~same
    starts = np.flatnonzero(begins)
    stops = np.append(begins[1:] | ~inside[1:], True)[: len(classes)]
    ends = np.flatnonzero(inside & stops) + 1
    return starts, ends, label[starts]


class TokenClassifier(TrainablePipe):
    """Named entities by classifying words."""

    def __init__(self, vocab: Vocab, model: Model, name: str = FACTORY, o_bias: float = 0.0):
        self.vocab = vocab
        self.model = model
        self.name = name
        self.scorer: Callable = _score
        self.cfg: dict[str, Any] = {"labels": [], "o_bias": o_bias}

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(self.cfg["labels"])

    @property
    def label_data(self) -> list[str]:
        return list(self.labels)

    def predict(self, docs: Iterable[Doc]) -> Array:
        """Logits (n_tokens, n_classes) of all documents, as a numpy array."""
        return self.model.ops.to_numpy(self.model.predict(list(docs)))

    def set_annotations(self, docs: Iterable[Doc], scores: Array) -> None:
        docs = list(docs)
        offsets = np.concatenate([[0], np.cumsum([len(doc) for doc in docs])])
        scores = scores - self.cfg["o_bias"] * (np.arange(scores.shape[1]) == 0)
        starts, ends, labels = decode_bio(scores.argmax(-1), first_tokens(offsets))
        bounds = np.searchsorted(starts, offsets)
        for i, doc in enumerate(docs):
            mine = slice(bounds[i], bounds[i + 1])
            rows = zip(starts[mine] - offsets[i], ends[mine] - offsets[i], labels[mine])
            doc.set_ents([Span(doc, int(a), int(b), self.labels[x]) for a, b, x in rows])

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Optimizer | None = None,
        losses: dict[str, float] | None = None,
    ) -> dict[str, float]:
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        examples = list(examples)
        validate_examples(examples, "TokenClassifier.update")
        if not any(len(eg.predicted) for eg in examples):
            return losses
        set_dropout_rate(self.model, drop)
        scores, backprop = self.model.begin_update([eg.predicted for eg in examples])
        loss, d_scores = self.get_loss(examples, scores)
        backprop(d_scores)
        if sgd not in (None, False):
            self.finish_update(sgd)
        losses[self.name] += loss
        return losses

    def get_loss(self, examples: Iterable[Example], scores: Floats2d) -> tuple[float, Floats2d]:
        """Cross-entropy, summed and divided by the number of tokens."""
        ops = self.model.ops
        targets = ops.xp.asarray(self._targets(list(examples)))
        rows = ops.xp.arange(len(targets))
        d_scores = ops.softmax(scores)
        loss = -ops.xp.log(ops.xp.maximum(d_scores[rows, targets], 1e-30)).mean()
        d_scores[rows, targets] -= 1.0
        return float(loss), d_scores / len(targets)

    def _targets(self, examples: Sequence[Example]) -> Array:
        classes = {label: 1 + 2 * i for i, label in enumerate(self.labels)}
        parts = []
        for eg in examples:
            tags = np.zeros(len(eg.predicted), dtype=np.int64)
            for span in eg.get_aligned_spans_y2x(eg.reference.ents):
                tags[span.start : span.end] = classes[span.label_] + 1
                tags[span.start] -= 1
            parts.append(tags)
        return np.concatenate(parts)

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        labels: list[str] | None = None,
    ) -> None:
        examples = list(get_examples())
        found = {span.label_ for eg in examples for span in eg.reference.ents}
        self.cfg["labels"] = sorted(labels or found)
        docs = [eg.predicted for eg in examples[:2]]
        n_classes = 2 * len(self.labels) + 1
        Y = self.model.ops.alloc2f(sum(len(doc) for doc in docs), n_classes)
        self.model.initialize(X=docs, Y=Y)


def first_tokens(offsets: Array) -> Array:
    """(n_tokens,) whether a document starts there. offsets: (n_docs + 1,)."""
    first = np.zeros(int(offsets[-1]) + 1, dtype=bool)
    first[offsets[:-1]] = True
    return first[:-1]


def _score(examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
    return get_ner_prf(examples)


@Language.component(SPANS_AS_ENTS)
def spans_as_ents(doc: Doc) -> Doc:
    """Spans that do not overlap become the entities: what a span categoriser found is then scored
    as the rest."""
    doc.set_ents(list(doc.spans.get(SPANS_KEY, ())))
    return doc
