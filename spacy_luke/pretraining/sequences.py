"""An article to training sequences: pieces, sentences that stay whole, links as entities."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..vocab.pieces import PieceTokenizer

Array = np.ndarray
Sentences = Callable[[Sequence[str]], list[list[int]]]
"""Of each text: the characters at which sentences start."""


@dataclass(frozen=True)
class Limits:
    """pieces: of a sequence, special ones included. entities: of a sequence. mention: pieces."""

    pieces: int = 512
    entities: int = 128
    mention: int = 30


@dataclass
class Article:
    """The pieces of an article, end to end.

    ids: (n_pieces,). word_starts: (n_pieces,) whether a word begins there. cuts: sorted piece
    indices where a sentence begins, 0 first. starts, ends: (n_links,) pieces of the links, sorted;
    links: (n_links,) their numbers in the article. dropped: links left out, by reason.
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
    """Pieces of a text, with its links (characters [start, end)) on them."""
    paragraphs = _paragraphs(text)
    texts = [text[a:b] for a, b in paragraphs]
    ids, offsets, words, cuts = [], [], [], []
    n_pieces = 0
    for (start, _), sentence_starts, (piece_ids, chars, first) in zip(
        paragraphs, sentences(texts), tokenizer.encode_texts(texts)
    ):
        ids.append(piece_ids)
        words.append(first)
        offsets.append(chars + start)
        at = np.searchsorted(chars[:, 1], np.asarray(sentence_starts, dtype=np.int64), side="right")
        cuts.append(at + n_pieces)
        n_pieces += len(piece_ids)
    chars = np.concatenate([np.zeros((0, 2), dtype=np.int64), *offsets])
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
    """Character ranges of the lines that are not blank."""
    ranges, start = [], 0
    for line in text.split("\n"):
        if line.strip():
            ranges.append((start, start + len(line)))
        start += len(line) + 1
    return ranges


def _on_pieces(
    text: str, chars: Array, link_starts: Array, link_ends: Array, max_mention: int
) -> tuple[Array, Array, Array, Counter[str]]:
    """Pieces of the links that are made of whole pieces and not too long, and their numbers."""
    # A space before a word is part of its first piece in byte-level BPE.
    spaced = np.asarray([a > 0 and text[a - 1] == " " for a in link_starts.tolist()], dtype=bool)
    first = np.searchsorted(chars[:, 1], link_starts, side="right")
    last = np.searchsorted(chars[:, 0], link_ends, side="left")
    inside = (first < last) & (first < len(chars))
    at = np.where(inside, first, 0)
    begins, stops = (
        (chars[at, 0], chars[np.maximum(last, 1) - 1, 1])
        if len(chars)
        else (np.zeros_like(at), np.zeros_like(at))
    )
    whole = inside & (stops == link_ends)
    whole &= (begins == link_starts) | (spaced & (begins == link_starts - 1))
    short = last - first <= max_mention
    dropped: Counter[str] = Counter()
    dropped["links not made of whole pieces"] = int((~whole).sum())
    dropped["links with too many pieces"] = int((whole & ~short).sum())
    kept = np.flatnonzero(whole & short)
    return first[kept], last[kept], kept, +dropped


def _inside(cuts: Array, starts: Array, ends: Array) -> Array:
    """(n_cuts,) whether a cut falls inside a link. starts, ends: sorted, not overlapping."""
    if not len(starts):
        return np.zeros(len(cuts), dtype=bool)
    before = np.searchsorted(starts, cuts, side="left") - 1
    return (before >= 0) & (ends[np.maximum(before, 0)] > cuts)


def cut_sequences(article: Article, limits: Limits) -> Iterator[tuple[int, int]]:
    """Piece ranges [start, end) of the sequences: as many whole sentences of the article as fit. A
    sentence that is too long alone is cut before a word that begins outside of links."""
    room = limits.pieces - 2
    ends = np.append(article.cuts[1:], len(article.ids))
    start = at = 0
    for end in ends.tolist():
        if at > start and not _fits(article, start, end, room, limits.entities):
            yield start, at
            start = at
        while not _fits(article, start, end, room, limits.entities):
            middle = _cut_before(article, start, end, room, limits.entities)
            yield start, middle
            start = middle
        at = end
    if at > start:
        yield start, at


def _fits(article: Article, start: int, end: int, room: int, most: int) -> bool:
    n_entities = np.searchsorted(article.starts, end) - np.searchsorted(article.starts, start)
    return end - start <= room and n_entities <= most


def _cut_before(article: Article, start: int, end: int, room: int, most: int) -> int:
    """Where to cut a sentence [start, end) that does not fit."""
    end = min(end, start + room)
    beyond = int(np.searchsorted(article.starts, start)) + most
    if beyond < len(article.starts):
        end = min(end, int(article.starts[beyond]))
    places = np.arange(start + 1, end + 1)
    places = places[places < len(article.ids)]
    places = places[~_inside(places, article.starts, article.ends)]
    words = places[article.word_starts[places]]
    for good in (words, places):
        if len(good):
            return int(good[-1])
    return end
