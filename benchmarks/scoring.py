"""Scores of a trained row once, then predictions under any NIL bias."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import minibatch

from spacy_luke.pipeline.confidence import Confidence
from spacy_luke.pipeline.decoding import decode

from .baselines import TokenClassifier, decode_bio, first_tokens
from .datasets import bare
from .rows import COMPONENT, MODES

Array = np.ndarray
_STEP = 0.25
_WIDTH, _MOST = 3.0, 48.0
"""Biases up to the first are tried; while the best is the last of them, or none finds anything
right, up to twice as far."""


Item = tuple[int, int, int, str]
"""What is found in a document: an :class:`Entity`, or (document, head, tail, relation) with spans
counted in the order of the text."""


class Entity(NamedTuple):
    """An entity: document, first token, token after the last, label."""

    doc: int
    start: int
    end: int
    label: str


class PRF(NamedTuple):
    """Precision, recall and F1 in percent, strict span and label."""

    p: float
    r: float
    f: float


@dataclass
class Scored:
    """A model's scores on a corpus.

    offsets: (n_docs + 1,) tokens. logits: (n, n_classes) of tokens (O first) where ``starts``
    is None, else of the spans starts[i]:ends[i] (NIL last), counted through the corpus.
    """

    labels: tuple[str, ...]
    offsets: Array
    logits: Array
    starts: Array | None = None
    ends: Array | None = None

    def entities(self, bias: float) -> list[Entity]:
        """Flat entities when ``bias`` is taken off the logit of "no entity"."""
        if self.starts is None or self.ends is None:
            logits = self.logits - bias * (np.arange(self.logits.shape[1]) == 0)
            starts, ends, labels = decode_bio(logits.argmax(-1), first_tokens(self.offsets))
        else:
            of_doc = np.searchsorted(self.offsets, self.starts, side="right") - 1
            anything = Confidence(self.labels, 0.0, {}, None)
            chosen, labels, _ = decode(
                self.logits, self.starts, self.ends, of_doc, bias, anything, flat=True
            )
            starts, ends = self.starts[chosen], self.ends[chosen]
        docs = np.searchsorted(self.offsets, starts, side="right") - 1
        base = self.offsets[docs]
        rows = zip(docs.tolist(), (starts - base).tolist(), (ends - base).tolist())
        return [Entity(*row, self.labels[label]) for row, label in zip(rows, labels)]

    def labels_of(self, gold: Sequence[Entity]) -> list[str]:
        """The most probable label of each gold span, if it is told that there is an entity; empty
        for a span that was not asked about. Of tokens: by the product of the probabilities of their
        labels, whether the entity begins there or not."""
        if self.starts is None or self.ends is None:
            # O is the first class; then the beginning and the inside of each label.
            both = self.logits[:, 1:].reshape(len(self.logits), -1, 2)
            of_label = np.logaddexp(both[..., 0], both[..., 1])
            scores = {x: of_label[slice(*self._places(x))].sum(0) for x in gold}
        else:
            rows = {x: i for i, x in enumerate(zip(self.starts.tolist(), self.ends.tolist()))}
            found = [(x, rows.get(self._places(x))) for x in gold]
            scores = {x: self.logits[row, :-1] for x, row in found if row is not None}
        return [self.labels[int(scores[x].argmax())] if x in scores else "" for x in gold]

    def _places(self, entity: Entity) -> tuple[int, int]:
        base = int(self.offsets[entity.doc])
        return base + entity.start, base + entity.end

    def recall(self, gold: Sequence[Entity]) -> float:
        """Percent of gold spans that were asked about, whatever their label."""
        if self.starts is None or self.ends is None:
            return 100.0
        asked = set(zip(self.starts.tolist(), self.ends.tolist()))
        return 100.0 * sum(self._places(x) in asked for x in gold) / max(len(gold), 1)


def score_docs(nlp: Language, row: str, docs: Sequence[Doc], batch_size: int = 128) -> Scored:
    """Run a trained row's component on gold words, without any gold entity."""
    pipe: Any = nlp.get_pipe(COMPONENT)
    offsets = np.concatenate([[0], np.cumsum([len(doc) for doc in docs])]).astype(np.int64)
    logits, spans = [], []
    base = 0
    for batch in minibatch([bare(nlp, doc) for doc in docs], batch_size):
        batch = list(batch)
        if isinstance(pipe, TokenClassifier):
            logits.append(pipe.predict(batch))
        elif row == "ner":
            logits.append(np.concatenate([_as_logits(pipe(doc), pipe.labels) for doc in batch]))
        else:
            candidates, scores = pipe.predict(batch)
            if row in MODES:
                candidates = candidates.spans
            asked, values = _span_logits(pipe, row, scores)
            table = pipe.model.ops.to_numpy(candidates.dataXd).reshape(-1, 2).astype(np.int64)
            starts = np.concatenate([[0], np.cumsum([len(doc) for doc in batch])])[:-1] + base
            lengths = pipe.model.ops.to_numpy(candidates.lengths)
            spans.append((table + np.repeat(starts, lengths)[:, None])[asked])
            logits.append(values)
        base += sum(len(doc) for doc in batch)
    values = np.concatenate(logits)
    if not spans:
        return Scored(pipe.labels, offsets, values)
    table = np.concatenate(spans)
    return Scored(pipe.labels, offsets, values, table[:, 0], table[:, 1])


def _as_logits(doc: Doc, labels: Sequence[str]) -> Array:
    """(n_tokens, 1 + 2 * n_labels) logits of :func:`decode_bio` that say what ``Doc.ents`` says,
    with any bias: a transition-based model gives no scores of single entities."""
    classes = np.zeros(len(doc), dtype=np.int64)
    for ent in doc.ents:
        first = 1 + 2 * list(labels).index(ent.label_)
        classes[ent.start : ent.end] = first + 1
        classes[ent.start] = first
    return 1000.0 * np.eye(1 + 2 * len(labels))[classes]


def _span_logits(pipe: Any, row: str, scores: Any) -> tuple[Any, Array]:
    """Which candidates have a score, and their logits with NIL last. For stock ``spancat`` the
    logits are log-probabilities, which rank spans as its own flat decoding does."""
    if row in MODES:
        return scores.rows, pipe.model.ops.to_numpy(scores.logits)
    return slice(None), np.log(np.maximum(pipe.model.ops.to_numpy(scores), 1e-30))


def gold_entities(docs: Sequence[Doc]) -> list[Entity]:
    return [Entity(i, x.start, x.end, x.label_) for i, doc in enumerate(docs) for x in doc.ents]


def prf(predicted: Sequence[Item], gold: Sequence[Item]) -> PRF:
    """Micro: over all items."""
    right = len(set(predicted) & set(gold))
    p, r = 100.0 * right / max(len(predicted), 1), 100.0 * right / max(len(gold), 1)
    return PRF(p, r, 200.0 * right / max(len(predicted) + len(gold), 1))


def macro_prf(predicted: Sequence[Item], gold: Sequence[Item]) -> PRF:
    """Means over the labels that occur in gold, each with the score of its items alone."""
    names = sorted({item[3] for item in gold})
    parts = [
        prf([x for x in predicted if x[3] == name], [x for x in gold if x[3] == name])
        for name in names
    ]
    return PRF(*(sum(values) / max(len(parts), 1) for values in zip(*parts)))


def choose_bias(scored: Scored, gold: Sequence[Entity]) -> float:
    """The bias with the best F1; among equals the one nearest to 0."""
    found: dict[float, float] = {}
    width = _WIDTH
    while True:
        most = round(width / _STEP)
        for bias in (i * _STEP for i in range(-most, most + 1)):
            if bias not in found:
                found[bias] = prf(scored.entities(bias), gold).f
        best = max(found, key=lambda bias: (found[bias], -abs(bias), bias))
        if (found[best] and abs(best) < width) or width >= _MOST:
            return best
        width *= 2


def pack_entities(items: Iterable[Item], labels: list[str]) -> list[list[int]]:
    """Entities, or relations, as (document, start or head, end or tail, label index)."""
    return [[*item[:3], labels.index(item[3])] for item in items]


def unpack_entities(rows: Iterable[list[int]], labels: list[str]) -> list[Entity]:
    return [Entity(doc, start, end, labels[label]) for doc, start, end, label in rows]
