"""A batcher that varies the context of training examples: sentences, neighbours, documents.

A model trained on whole documents is worse on single sentences than one trained on sentences, and
vice versa. Training on both works for both, however the corpus is split.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from spacy.pipeline import Sentencizer
from spacy.training import Example
from spacy.util import minibatch, registry

from ..annotations.annotated import all_annotated_labels
from ..annotations.queries import query_texts
from ..annotations.questions import n_questions
from ..errors import ConfigError
from ..report import LOGGER
from ..validation import Count, Factor, check_settings
from .parts import cut, join

Array = np.ndarray
Batcher = Callable[[Iterable[Example]], Iterable[list[Example]]]

_NEIGHBOURS = (2, 5)  # minimum and maximum sentences per run
_MIN_JOINED = 0.25  # minimum length of documents joined from sentences, as a share of max_words


_BUFFER = 10_000
"""Documents that are cut, joined and shuffled together."""


class Context(NamedTuple):
    """Maximum length of an example, in sentences (may be infinite) and words."""

    sentences: float
    words: int


@registry.batchers("spacy-luke.mix_contexts.v1")
def mix_contexts(
    batcher: Batcher,
    sentence: Factor = 0.5,
    neighbours: Factor = 0.25,
    document: Factor = 0.25,
    max_words: Count = 400,
    join_sentences: bool = True,
) -> Batcher:
    """Make a batcher that cuts or joins each document anew in every epoch.

    batcher: makes batches of the resulting examples, e.g. ``spacy.batch_by_words.v1``.
    sentence, neighbours, document: relative frequency with which a document is cut into its
        sentences, cut into runs of 2 to 5 sentences, or kept whole. They need not add up to 1.
    max_words: maximum words per example. Longer documents are cut, and so are longer sentences:
        text without marks of sentences is one.
    join_sentences: join documents of one sentence at random, to runs of 2 to 5 (with frequency
        ``neighbours``) or to documents of up to ``max_words`` (with frequency ``document``). If
        false, they stay as they are.

    Sentence boundaries come from the reference, else from the predicted document, else from spaCy's
    rule-based sentencizer. No cut is made within an entity or a span of a group, nor between tokens
    that do not align. A relation across examples is not trained in that epoch (unless entities are
    merged, and have other mentions there), and neither are the questions and queries of a document
    that is cut or joined, which are counted and logged once. Documents with categories
    (``Doc.cats``) stay as they are, which is logged once: spaCy's ``textcat`` learns from a part
    without categories that none is true.

    Raises ConfigError if a share is negative, all are 0, or ``max_words`` is below 1.
    """
    arguments = {k: v for k, v in locals().items() if k != "batcher"}
    check_settings("mix_contexts", mix_contexts, arguments)
    if not sentence + neighbours + document:
        raise ConfigError("mix_contexts: sentence, neighbours and document are all 0.")
    return ContextMixer(batcher, [sentence, neighbours, document], max_words, join_sentences)


class ContextMixer:
    """See :func:`mix_contexts`. Uses Python's ``random``, which ``spacy train`` seeds."""

    def __init__(
        self, batcher: Batcher, shares: Sequence[float], max_words: int, join_sentences: bool
    ):
        self.batcher = batcher
        self.shares = list(shares)
        self.max_words = max_words
        self.join_sentences = join_sentences
        self._reports_asked = self._reports_categories = True

    def __call__(self, examples: Iterable[Example]) -> Iterator[list[Example]]:
        """One epoch's batches. Memory is bounded also if the corpus is streamed without end."""
        for buffered in minibatch(examples, _BUFFER):
            mixed = list(self.mix(buffered))
            self._report_asked(buffered, mixed)
            self._report_categories(buffered)
            random.shuffle(mixed)  # so that parts of one document are not in one batch
            yield from self.batcher(mixed)

    def _report_asked(self, before: Sequence[Example], after: Sequence[Example]) -> None:
        """Log once how many questions and queries are not trained."""
        n_before, n_after = (sum(map(_n_asked, examples)) for examples in (before, after))
        if n_after < n_before and self._reports_asked:
            self._reports_asked = False
            LOGGER.warning(
                "mix_contexts cut or joined documents, and questions and queries are about whole "
                "documents: the first %d documents have %d of them, and %d are not trained in "
                "this epoch.",
                len(before),
                n_before,
                n_before - n_after,
            )

    def _report_categories(self, examples: Sequence[Example]) -> None:
        """Log once how many documents stay as they are because they have categories."""
        n_classified = sum(bool(eg.reference.cats) for eg in examples)
        if n_classified and self._reports_categories:
            self._reports_categories = False
            LOGGER.warning(
                "mix_contexts: %d of the first %d documents have categories (Doc.cats), which are "
                "about whole documents. So they are neither cut nor joined.",
                n_classified,
                len(examples),
            )

    def mix(self, examples: Iterable[Example]) -> Iterator[Example]:
        """The examples in their contexts. Every token occurs once."""
        # Only documents with the same annotated layers and spans groups are joined.
        single_sentences: dict[tuple, list[Example]] = defaultdict(list)
        for eg in examples:
            if eg.reference.cats:
                yield eg
                continue
            (kind,) = random.choices(["sentence", "neighbours", "document"], self.shares)
            starts = possible_cuts(eg, self.max_words)
            if len(starts) > 1:
                yield from cut_example(eg, self._runs(kind, starts, len(eg.reference)))
            elif self.join_sentences and kind != "sentence":
                layers = all_annotated_labels(eg.reference), frozenset(eg.reference.spans)
                single_sentences[kind, layers].append(eg)
            else:
                yield eg
        for (kind, _), remaining in single_sentences.items():
            while remaining:
                yield join_examples(_take(remaining, self._context(kind, joined=True)))

    def _context(self, kind: str, joined: bool = False) -> Context:
        """Draw a maximum length. It limits how many sentences are shown together."""
        if kind == "sentence":
            return Context(1, self.max_words)
        if kind == "neighbours":
            return Context(random.randint(*_NEIGHBOURS), self.max_words)
        min_words = int(_MIN_JOINED * self.max_words) if joined else self.max_words
        return Context(np.inf, random.randint(min_words, self.max_words))

    def _runs(self, kind: str, starts: Array, n_tokens: int) -> list[tuple[int, int]]:
        """Group sentences into runs. Returns the (predicted, reference) start of each run.

        starts: (n_sentences, 2). n_tokens: of the reference.
        """
        runs: list[tuple[int, int]] = []
        ends = [*starts[1:, 1].tolist(), n_tokens]
        n_sentences, context = 0, self._context(kind)
        for (x, y), end in zip(starts.tolist(), ends):
            if runs and n_sentences < context.sentences and end - runs[-1][1] <= context.words:
                n_sentences += 1
                continue
            runs.append((x, y))
            n_sentences, context = 1, self._context(kind)
        return runs


def _take(remaining: list[Example], context: Context) -> list[Example]:
    """Remove the examples to be joined from the end of ``remaining``: at least one."""
    taken = [remaining.pop()]
    n_words = len(taken[0].reference)
    while remaining and len(taken) < context.sentences:
        n_words += len(remaining[-1].reference)
        if n_words > context.words:
            break
        taken.append(remaining.pop())
    return taken


def possible_cuts(eg: Example, max_words: int) -> Array:
    """(n, 2): the (predicted, reference) tokens before which an example may be cut. They start
    sentences, or divide one of more than ``max_words``; the first row is (0, 0)."""
    allowed = np.ones(len(eg.reference), dtype=bool)
    for spans in (eg.reference.ents, *eg.reference.spans.values()):
        for span in spans:
            allowed[span.start + 1 : span.end] = False
    inside = np.zeros(len(eg.predicted) + 1, dtype=bool)
    for spans in (eg.predicted.ents, *eg.predicted.spans.values()):
        for span in spans:
            inside[span.start + 1 : span.end] = True
    first, last = _aligned(eg)
    # A cut is possible only if no earlier reference token is aligned with this predicted token.
    # Reference "a b c", predicted "a bc": first and last are [0, 1, 1] and before is [-1, 0, 1], so
    # no cut is possible before c.
    before = np.concatenate([[-1], np.maximum.accumulate(last)[:-1]])
    allowed &= (first > before) & ~inside[first]
    rows = np.flatnonzero(_reference_starts(eg) & allowed)
    after_space = np.roll(eg.reference.to_array("SPACY").astype(bool), 1)
    cuts = _divided(rows[rows > 0].tolist(), allowed, allowed & after_space, max_words)
    rows = np.asarray(list(cuts), dtype=np.int64)
    return np.concatenate([[[0, 0]], np.stack([first[rows], rows], axis=1)])


def _divided(starts: list[int], allowed: Array, words: Array, max_words: int) -> Iterator[int]:
    """The starts of sentences but the first, and places in those of more than ``max_words``, which
    make parts of about one length.

    allowed: (n_tokens,) where a cut may be. words: (n_tokens,) where it does not divide a word
        either; in text without spaces this may be nowhere.
    """
    places, between_words = np.flatnonzero(allowed), np.flatnonzero(words)
    for start, end in zip([0, *starts], [*starts, len(allowed)]):
        if start:
            yield start
        while end - start > max_words:
            n_parts = -(-(end - start) // max_words)
            aim = start - (start - end) // n_parts
            start = (
                _last(between_words, (start + aim) // 2, aim)
                or _last(places, start, aim)
                or int(min(places[places > aim], default=end))
            )
            if start >= end:
                break
            yield start


def _last(places: Array, after: int, to: int) -> int:
    """The last of sorted places that is above ``after`` and at most ``to``; 0 if there is none."""
    i = np.searchsorted(places, to, side="right")
    return int(places[i - 1]) if i and places[i - 1] > after else 0


def _reference_starts(eg: Example) -> Array:
    """(n_reference_tokens,) whether a sentence starts at the token."""
    marks = eg.reference.to_array("SENT_START").astype(np.int64)
    if eg.reference.has_annotation("SENT_START", require_complete=True):
        return marks == 1
    # A document joined from unannotated ones has only the starts of these: what is annotated of any
    # document counts, and the rest is by a rule.
    first, _ = _aligned(eg)
    predicted = eg.predicted.to_array("SENT_START").astype(np.int64)
    others = np.where(first >= 0, predicted[first], 0)
    if not eg.predicted.has_annotation("SENT_START", require_complete=True):
        others = np.where(others == 0, Sentencizer().predict([eg.reference])[0], others)
    return np.where(marks == 0, others, marks) == 1


def _aligned(eg: Example) -> tuple[Array, Array]:
    """(n_reference_tokens,) the first and last predicted token aligned with each, or -1."""
    alignment = eg.alignment.y2x
    lengths = alignment.lengths[
        : len(eg.reference)
    ]  # one more if the last token contains white space
    ends = np.cumsum(lengths)
    is_aligned = lengths > 0
    first, last = np.full(len(ends), -1), np.full(len(ends), -1)
    first[is_aligned] = alignment.data[(ends - lengths)[is_aligned]]
    last[is_aligned] = alignment.data[ends[is_aligned] - 1]
    return first, last


def cut_example(eg: Example, starts: Sequence[tuple[int, int]]) -> list[Example]:
    """Cut both documents of an example. starts: first (predicted, reference) token per part."""
    if len(starts) == 1:
        return [eg]
    predicted, _ = cut(eg.predicted, [x for x, _ in starts])
    reference, _ = cut(eg.reference, [y for _, y in starts])
    return [Example(x, y) for x, y in zip(predicted, reference)]


def join_examples(examples: Sequence[Example]) -> Example:
    """Concatenate examples."""
    if len(examples) == 1:
        return examples[0]
    return Example(join([eg.predicted for eg in examples]), join([eg.reference for eg in examples]))


def _n_asked(eg: Example) -> int:
    """The number of questions and queries about a document."""
    return n_questions(eg.predicted) + len(query_texts(eg.predicted))
