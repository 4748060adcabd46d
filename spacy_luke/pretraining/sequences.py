"""Cut an article into training sequences of whole sentences, with links as entities."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import cast

import numpy as np

from ..kb.whole_words import is_whole
from ..vocab.pieces import Encoded, PieceTokenizer

Array = np.ndarray
Sentences = Callable[[Sequence[str]], list[list[int]]]
"""Texts -> the characters at which sentences start, per text."""


@dataclass(frozen=True)
class SequenceLimits:
    """Maxima per sequence. pieces: with special pieces."""

    pieces: int
    entities: int


@dataclass
class Article:
    """The pieces of an article.

    ids: (n_pieces,). word_starts: (n_pieces,) whether the piece starts a word.
    cuts: sorted indices of the pieces that start a sentence; the first is 0.
    starts, ends: (n_links,) sorted piece ranges of the links. links: (n_links,) their indices in
        the article.
    dropped: reason -> number of links left out.
    """

    ids: Array
    word_starts: Array
    cuts: Array
    starts: Array
    ends: Array
    links: Array
    dropped: Counter[str] = field(default_factory=Counter)


def lay_out(
    text: str,
    link_starts: Array,
    link_ends: Array,
    tokenizer: PieceTokenizer,
    sentences: Sentences,
    max_mention: int,
) -> Article:
    """Tokenise a text and align its links (characters [start, end)) with pieces."""
    paragraphs = _paragraphs(text)
    ids, words, cuts = [], [], []
    n_pieces = 0
    encoded = _encode(text, paragraphs, link_starts, link_ends, tokenizer)
    starts_of = sentences([text[a:b] for a, b in paragraphs])
    for (start, _), sentence_starts, (piece_ids, chars, first) in zip(
        paragraphs, starts_of, encoded
    ):
        ids.append(piece_ids)
        words.append(first)
        # The first piece that ends after the start of the sentence.
        first_pieces = np.searchsorted(
            chars[:, 1], np.asarray(sentence_starts, dtype=np.int64) + start, side="right"
        )
        cuts.append(first_pieces + n_pieces)
        n_pieces += len(piece_ids)
    chars = _characters(encoded)
    first, last, kept, dropped = _on_pieces(text, chars, link_starts, link_ends, max_mention)
    every_cut = np.unique(np.concatenate([np.zeros(1, dtype=np.int64), *cuts]))
    every_cut = every_cut[every_cut < max(n_pieces, 1)]
    return Article(
        ids=np.concatenate([np.zeros(0, dtype=np.int64), *ids]),
        word_starts=np.concatenate([np.zeros(0, dtype=bool), *words]),
        cuts=every_cut[~_inside(every_cut, first, last)],
        starts=first,
        ends=last,
        links=kept,
        dropped=dropped,
    )


def _paragraphs(text: str) -> list[tuple[int, int]]:
    """Character ranges of lines that are not blank."""
    ranges, start = [], 0
    for line in text.split("\n"):
        if line.strip():
            ranges.append((start, start + len(line)))
        start += len(line) + 1
    return ranges


def _encode(
    text: str,
    paragraphs: Sequence[tuple[int, int]],
    link_starts: Array,
    link_ends: Array,
    tokenizer: PieceTokenizer,
) -> list[Encoded]:
    """The pieces of each paragraph, with their characters in the text.

    Pieces may extend over an end of a link of whole words, mostly in scripts without spaces. There
    the paragraph is cut, and encoded in parts, as mentions are at prediction.
    """
    encoded = _encode_ranges(text, paragraphs, tokenizer)
    cuts: set[int] = set()
    while True:
        *_, is_whole_pieces = _piece_ranges(text, _characters(encoded), link_starts, link_ends)
        lost = np.flatnonzero(~is_whole_pieces)
        links = zip(link_starts[lost].tolist(), link_ends[lost].tolist())
        # Other pieces between new cuts may be others, and extend over other links.
        edges = {x for a, b in links if _is_words(text, a, b) for x in (_before_space(text, a), b)}
        if edges <= cuts:
            return encoded
        _encode_again(
            text, paragraphs, encoded, sorted(edges - cuts), sorted(cuts | edges), tokenizer
        )
        cuts |= edges


def _is_words(text: str, start: int, end: int) -> bool:
    inside = text[start:end]
    return inside == inside.strip() != "" and is_whole(text, start, end)


def _before_space(text: str, start: int) -> int:
    """A space before a link belongs to its first piece."""
    return start - 1 if start and text[start - 1].isspace() else start


def _encode_again(
    text: str,
    paragraphs: Sequence[tuple[int, int]],
    encoded: list[Encoded],
    new: list[int],
    cuts: list[int],
    tokenizer: PieceTokenizer,
) -> None:
    """Encode the paragraphs with new cuts in the parts between all cuts. new, cuts: sorted."""
    parts: dict[int, list[tuple[int, int]]] = {}
    for i, (start, end) in enumerate(paragraphs):
        if bisect_right(new, start) < bisect_left(new, end):
            inner = cuts[bisect_right(cuts, start) : bisect_left(cuts, end)]
            parts[i] = list(pairwise([start, *inner, end]))
    again = iter(_encode_ranges(text, [x for of_one in parts.values() for x in of_one], tokenizer))
    for i, of_one in parts.items():
        found = zip(*islice(again, len(of_one)))
        encoded[i] = cast(Encoded, tuple(map(np.concatenate, found)))


def _encode_ranges(
    text: str, ranges: Sequence[tuple[int, int]], tokenizer: PieceTokenizer
) -> list[Encoded]:
    encoded = tokenizer.encode_texts([text[a:b] for a, b in ranges])
    return [(ids, chars + a, first) for (a, _), (ids, chars, first) in zip(ranges, encoded)]


def _characters(encoded: Iterable[Encoded]) -> Array:
    """(n_pieces, 2) the characters of all pieces."""
    return np.concatenate([np.zeros((0, 2), dtype=np.int64), *(chars for _, chars, _ in encoded)])


def _on_pieces(
    text: str, chars: Array, link_starts: Array, link_ends: Array, max_mention: int
) -> tuple[Array, Array, Array, Counter[str]]:
    """Piece ranges and indices of the links that consist of whole pieces and are not too long."""
    first, last, whole = _piece_ranges(text, chars, link_starts, link_ends)
    short = last - first <= max_mention
    dropped: Counter[str] = Counter()
    dropped["links not made of whole pieces"] = int((~whole).sum())
    dropped["links with too many pieces"] = int((whole & ~short).sum())
    kept = np.flatnonzero(whole & short)
    return first[kept], last[kept], kept, +dropped


def _piece_ranges(
    text: str, chars: Array, link_starts: Array, link_ends: Array
) -> tuple[Array, Array, Array]:
    """The first and the last piece of each link, and whether it consists of whole pieces.

    Example: pieces at the characters [0, 3), [3, 6), [7, 9). The link [3, 9) has the pieces [1, 3).
    The link [4, 9) begins within a piece.
    """
    # In byte-level BPE, a word's first piece includes the space before it, in SentencePiece any
    # white space.
    spaced = np.asarray([a > 0 and text[a - 1].isspace() for a in link_starts.tolist()], dtype=bool)
    first = np.searchsorted(chars[:, 1], link_starts, side="right")
    last = np.searchsorted(chars[:, 0], link_ends, side="left")
    inside = (first < last) & (first < len(chars))
    safe_first = np.where(inside, first, 0)
    begins, stops = (
        (chars[safe_first, 0], chars[np.maximum(last, 1) - 1, 1])
        if len(chars)
        else (np.zeros_like(first), np.zeros_like(first))
    )
    whole = inside & (stops == link_ends)
    whole &= (begins == link_starts) | (spaced & (begins == link_starts - 1))
    return first, last, whole


def _inside(cuts: Array, starts: Array, ends: Array) -> Array:
    """(n_cuts,) whether a cut is inside a link. starts, ends: sorted, not overlapping."""
    if not len(starts):
        return np.zeros(len(cuts), dtype=bool)
    before = np.searchsorted(starts, cuts, side="left") - 1
    return (before >= 0) & (ends[np.maximum(before, 0)] > cuts)


def cut_sequences(article: Article, limits: SequenceLimits) -> Iterator[tuple[int, int]]:
    """Piece ranges [start, end) of the sequences: as many whole sentences as fit. A sentence that
    is too long is cut before a word outside of links."""
    max_pieces = limits.pieces - 2
    ends = np.append(article.cuts[1:], len(article.ids))
    start = sentence_start = 0
    for end in ends.tolist():
        if sentence_start > start and not _fits(article, start, end, max_pieces, limits.entities):
            yield start, sentence_start
            start = sentence_start
        while not _fits(article, start, end, max_pieces, limits.entities):
            middle = _cut_before(article, start, end, max_pieces, limits.entities)
            yield start, middle
            start = middle
        sentence_start = end
    if sentence_start > start:
        yield start, sentence_start


def _fits(article: Article, start: int, end: int, max_pieces: int, max_entities: int) -> bool:
    n_entities = np.searchsorted(article.starts, end) - np.searchsorted(article.starts, start)
    return end - start <= max_pieces and n_entities <= max_entities


def _cut_before(article: Article, start: int, end: int, max_pieces: int, max_entities: int) -> int:
    """The piece before which to cut a sentence [start, end) that does not fit: the last that starts
    a word outside of links, else the last outside of links."""
    end = min(end, start + max_pieces)
    first_excess = int(np.searchsorted(article.starts, start)) + max_entities
    if first_excess < len(article.starts):
        end = min(end, int(article.starts[first_excess]))
    outside = np.arange(start + 1, end + 1)
    outside = outside[outside < len(article.ids)]
    outside = outside[~_inside(outside, article.starts, article.ends)]
    at_words = outside[article.word_starts[outside]]
    for candidates in (at_words, outside):
        if len(candidates):
            return int(candidates[-1])
    return end
