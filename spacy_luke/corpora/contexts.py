"""Training examples cut and joined anew in every epoch: sentences, neighbours, documents.

A model trained on whole documents is worse on single sentences than one trained on sentences, and
the other way round. Training on both works for both, regardless of how the corpus is split.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from spacy.pipeline import Sentencizer
from spacy.training import Example
from spacy.util import registry

from ..annotations.annotated import everything_annotated
from ..errors import ConfigError
from .parts import cut, join

Array = np.ndarray
Batcher = Callable[[Iterable[Example]], Iterable[list[Example]]]

_NEIGHBOURS = (2, 5)  # sentences of a run, the fewest and the most
_LEAST_JOINED = 0.25  # of max_words: how short a document made of single sentences may be


class Context(NamedTuple):
    """How much of a document one example shows: at most so many sentences, and words."""

    sentences: float
    words: int


@registry.batchers("spacy-luke.mix_contexts.v1")
def mix_contexts(
    batcher: Batcher,
    sentence: float = 0.5,
    neighbours: float = 0.25,
    document: float = 0.25,
    max_words: int = 400,
    join_sentences: bool = True,
) -> Batcher:
    """Make a batcher that shows each document, in each epoch, in one of three contexts.

    batcher: makes batches of the resulting examples, e.g. ``spacy.batch_by_words.v1``.
    sentence, neighbours, document: how often a document is cut into its sentences, cut into runs of
        2 to 5 sentences, or kept whole. They need not add up to 1.
    max_words: longest run, in words; a longer document is cut into several. (A longer sentence is
        one example.)
    join_sentences: documents of one sentence are joined at random, to runs of 2 to 5 or to
        documents of up to ``max_words``, as often as ``neighbours`` and ``document`` say. If false,
        they stay as they are.

    Sentences are those of the reference; if it has none, those of the predicted document; if
    neither has any, those of spaCy's rule-based sentencizer. No cut is made within an entity or a
    span of a group, nor where the two sides' tokens do not align. Relations that reach beyond an
    example are not trained in that epoch.

    Raises ConfigError if a share is negative, all are 0, or ``max_words`` is below 1.
    """
    shares = {"sentence": sentence, "neighbours": neighbours, "document": document}
    for name, share in shares.items():
        if share < 0:
            raise ConfigError(f"mix_contexts.{name} is {share}; it must not be negative.")
    if not any(shares.values()):
        raise ConfigError("mix_contexts: sentence, neighbours and document are all 0.")
    if max_words < 1:
        raise ConfigError(f"mix_contexts.max_words is {max_words}; it must be at least 1.")
    return ContextMixer(batcher, list(shares.values()), max_words, join_sentences)


class ContextMixer:
    """See :func:`mix_contexts`. Draws from Python's ``random``, which ``spacy train`` seeds."""

    def __init__(
        self, batcher: Batcher, shares: Sequence[float], max_words: int, join_sentences: bool
    ):
        self.batcher = batcher
        self.shares = list(shares)
        self.max_words = max_words
        self.join_sentences = join_sentences

    def __call__(self, examples: Iterable[Example]) -> Iterator[list[Example]]:
        """One epoch's batches."""
        mixed = list(self.mix(examples))
        random.shuffle(mixed)  # the parts of a document do not stay together
        yield from self.batcher(mixed)

    def mix(self, examples: Iterable[Example]) -> Iterator[Example]:
        """One epoch's examples: every token of every document once."""
        # Documents of which different layers, or spans groups, are annotated are not joined.
        single: dict[tuple, list[Example]] = defaultdict(list)
        for eg in examples:
            (name,) = random.choices(["sentence", "neighbours", "document"], self.shares)
            starts = sentence_starts(eg)
            if len(starts) > 1:
                yield from cut_example(eg, self._runs(name, starts, len(eg.reference)))
            elif self.join_sentences and name != "sentence":
                said = everything_annotated(eg.reference), frozenset(eg.reference.spans)
                single[name, said].append(eg)
            else:
                yield eg
        for (name, _), left in single.items():
            while left:
                yield join_examples(self._take(left, self._context(name, joined=True)))

    def _context(self, name: str, joined: bool = False) -> Context:
        if name == "sentence":
            return Context(1, self.max_words)
        if name == "neighbours":
            return Context(random.randint(*_NEIGHBOURS), self.max_words)
        least = int(_LEAST_JOINED * self.max_words) if joined else self.max_words
        return Context(np.inf, random.randint(least, self.max_words))

    def _runs(self, name: str, starts: Array, n_tokens: int) -> list[tuple[int, int]]:
        """The sentences ``starts`` (n, 2) in runs: (predicted, reference) start of each run."""
        runs: list[tuple[int, int]] = []
        ends = [*starts[1:, 1].tolist(), n_tokens]
        n, context = 0, self._context(name)
        for (x, y), end in zip(starts.tolist(), ends):
            if runs and n < context.sentences and end - runs[-1][1] <= context.words:
                n += 1
                continue
            runs.append((x, y))
            n, context = 1, self._context(name)
        return runs

    def _take(self, left: list[Example], context: Context) -> list[Example]:
        """Remove from the end of ``left`` what is shown together: one example at least."""
        taken = [left.pop()]
        words = len(taken[0].reference)
        while left and len(taken) < context.sentences:
            words += len(left[-1].reference)
            if words > context.words:
                break
            taken.append(left.pop())
        return taken


def sentence_starts(eg: Example) -> Array:
    """(n, 2) predicted and reference token before which an example may be cut: the starts of
    sentences, the first of them (0, 0)."""
    is_start = _reference_starts(eg)
    for spans in (eg.reference.ents, *eg.reference.spans.values()):
        for span in spans:
            is_start[span.start + 1 : span.end] = False
    first, last = _aligned(eg)
    before = np.concatenate([[-1], np.maximum.accumulate(last)[:-1]])
    rows = np.flatnonzero(is_start & (first > before))
    rows = rows[rows > 0]
    return np.concatenate([[[0, 0]], np.stack([first[rows], rows], axis=1)])


def _reference_starts(eg: Example) -> Array:
    """(n_reference_tokens,) whether a sentence starts there."""
    if eg.reference.has_annotation("SENT_START"):
        return eg.reference.to_array("SENT_START").astype(np.int64) == 1
    if eg.predicted.has_annotation("SENT_START"):
        starts = eg.predicted.to_array("SENT_START").astype(np.int64) == 1
        first, _ = _aligned(eg)
        return (first >= 0) & starts[first]
    return np.asarray(Sentencizer().predict([eg.reference])[0], dtype=bool)


def _aligned(eg: Example) -> tuple[Array, Array]:
    """(n_reference_tokens,) first and last predicted token that each is aligned with, or -1."""
    alignment = eg.alignment.y2x
    lengths = alignment.lengths[: len(eg.reference)]  # white space in the last token adds one
    ends = np.cumsum(lengths)
    some = lengths > 0
    first, last = np.full(len(ends), -1), np.full(len(ends), -1)
    first[some] = alignment.data[(ends - lengths)[some]]
    last[some] = alignment.data[ends[some] - 1]
    return first, last


def cut_example(eg: Example, starts: Sequence[tuple[int, int]]) -> list[Example]:
    """Cut both sides of an example before the (predicted, reference) tokens ``starts``."""
    if len(starts) == 1:
        return [eg]
    predicted, _ = cut(eg.predicted, [x for x, _ in starts])
    reference, _ = cut(eg.reference, [y for _, y in starts])
    return [Example(x, y) for x, y in zip(predicted, reference)]


def join_examples(examples: Sequence[Example]) -> Example:
    """One example of all the tokens of several."""
    if len(examples) == 1:
        return examples[0]
    return Example(join([eg.predicted for eg in examples]), join([eg.reference for eg in examples]))
