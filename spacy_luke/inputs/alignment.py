"""Tokens to word pieces, by one of two rules.

``tokens`` cuts the text at every spaCy token: pieces do not depend on the spans,
so components can share a word pass. ``mentions`` cuts only at mention boundaries, as the
published models were trained. Under both, a space before a cut joins the following piece; one
after the last token has none to join.

Where a space makes a difference to the pieces, ``spaces`` says which tokens (``tokens``) or parts
between cuts (``mentions``) have one before them: those that have one in the ``text``; all
(``words``, what ``add_prefix_space`` stands for); or, ``tokens`` only, all but those that begin
with an apostrophe or are one punctuation character (``conll``, as LUKE read CoNLL-2003). White
space is always as the text has it.
"""

import string
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from spacy.tokens import Doc

from ..vocab.pieces import PieceTokenizer
from .shapes import word_shape

Array = np.ndarray
TokenisationRule = Literal["tokens", "mentions"]
Spaces = Literal["text", "words", "conll"]

MAX_TOKEN_PIECES = 64
"""A longer token keeps its first pieces; how many tokens were cut is reported."""


@dataclass
class Pieces:
    """The pieces of a batch of documents, end to end, without special pieces.

    ids: (n_pieces,). shapes: (n_pieces,) word shapes, or None.
    token_starts, token_ends: (n_tokens,) the piece range of every token of the batch. A token
        without pieces (white space, for WordPiece) has an empty range at its place.
    token_offsets, piece_offsets: (n_docs + 1,) where each document starts.
    n_cut: (n_docs,) tokens that had more than MAX_TOKEN_PIECES pieces.
    """

    ids: Array
    shapes: Array | None
    token_starts: Array
    token_ends: Array
    token_offsets: Array
    piece_offsets: Array
    n_cut: Array

    @property
    def n_docs(self) -> int:
        return len(self.token_offsets) - 1


def align(
    docs: Sequence[Doc],
    tokenizer: PieceTokenizer,
    rule: TokenisationRule = "tokens",
    spans: Sequence[Array] | None = None,
    shapes: bool = False,
    spaces: Spaces | None = None,
) -> Pieces:
    """Tokenise documents into pieces.

    spans: for the rule ``mentions``, per document an (n, 2) array of token ranges
        [start, end) at whose boundaries the text is cut.
    spaces: what is preceded by a space; by default ``words`` where the tokenizer's files say
        ``add_prefix_space``, else ``text``.
    """
    if spaces is None:
        spaces = "words" if tokenizer.prefix_space else "text"
    if rule == "tokens":
        per_doc = _by_tokens(docs, tokenizer, spaces)
    else:
        cuts = spans if spans is not None else [np.zeros((0, 2), dtype=np.int64)] * len(docs)
        per_doc = [_by_mentions(doc, tokenizer, spaces, cut) for doc, cut in zip(docs, cuts)]
    piece_offsets = _offsets([len(ids) for ids, *_ in per_doc])
    starts = [s + base for (_, s, _, _), base in zip(per_doc, piece_offsets)]
    ends = [e + base for (_, _, e, _), base in zip(per_doc, piece_offsets)]
    pieces = Pieces(
        ids=_concat([ids for ids, *_ in per_doc]),
        shapes=None,
        token_starts=_concat(starts),
        token_ends=_concat(ends),
        token_offsets=_offsets([len(doc) for doc in docs]),
        piece_offsets=piece_offsets,
        n_cut=np.asarray([n for *_, n in per_doc], dtype=np.int64),
    )
    if shapes:
        of_token = np.asarray([word_shape(t.text) for doc in docs for t in doc], dtype=np.int64)
        pieces.shapes = np.zeros(len(pieces.ids), dtype=np.int64)
        lengths = pieces.token_ends - pieces.token_starts
        index = ranges(pieces.token_starts, pieces.token_ends)
        pieces.shapes[index] = np.repeat(of_token, lengths)
    return pieces


def ranges(starts: Array, ends: Array) -> Array:
    """All indices of the ranges [start, end), one range after the other."""
    lengths = ends - starts
    stops = np.cumsum(lengths)
    total = int(stops[-1]) if len(stops) else 0
    return np.arange(total) + np.repeat(starts - (stops - lengths), lengths)


_DocPieces = tuple[Array, Array, Array, int]  # ids, token starts, token ends, tokens cut


def _by_tokens(docs: Sequence[Doc], tokenizer: PieceTokenizer, spaces: Spaces) -> list[_DocPieces]:
    if tokenizer.spaces_matter:
        parts = [part for doc in docs for part in _token_parts(doc, spaces)]
    else:
        parts = [token.text for doc in docs for token in doc]
    encoded = tokenizer.encode_words(parts)
    result, at = [], 0
    for doc in docs:
        words = encoded[at : at + len(doc)]
        at += len(doc)
        n_cut = sum(len(word) > MAX_TOKEN_PIECES for word in words)
        if n_cut:
            words = [word[:MAX_TOKEN_PIECES] for word in words]
        offsets = _offsets([len(word) for word in words])
        result.append((_concat(words), offsets[:-1], offsets[1:], n_cut))
    return result


def _token_parts(doc: Doc, spaces: Spaces) -> list[str]:
    parts, space = [], False
    last = len(doc) - 1
    for i, token in enumerate(doc):
        text = token.text
        spaced = bool(token.whitespace_)
        if not spaced and i < last and text.endswith(" "):  # a space token's own last space
            text, spaced = text[:-1], True
        if spaces != "text" and text and not text[0].isspace():
            space = spaces == "words" or not _stands_close(text)
        parts.append(f" {text}" if space else text)
        space = spaced
    return parts


def _stands_close(word: str) -> bool:
    """Whether the rule ``conll`` puts no space before a word."""
    if word[0] == "'":
        return True
    return len(word) == 1 and (word in string.punctuation or unicodedata.category(word)[0] == "P")


def _by_mentions(doc: Doc, tokenizer: PieceTokenizer, spaces: Spaces, spans: Array) -> _DocPieces:
    text = doc[:].text  # without a space after the last token
    token_starts = np.asarray([token.idx for token in doc], dtype=np.int64)
    token_ends = token_starts + np.asarray([len(token) for token in doc], dtype=np.int64)
    # A space before a token is the token's, also where it is a piece of its own.
    token_starts, token_ends = _before_space(text, token_starts), _before_space(text, token_ends)
    inside = (spans[:, 0] >= 0) & (spans[:, 0] < spans[:, 1]) & (spans[:, 1] <= len(doc))
    spans = spans[inside]
    cuts = [token_starts[spans[:, 0]], token_ends[spans[:, 1] - 1], [0, len(text)]]
    bounds = np.unique(np.concatenate(cuts))
    parts = [text[a:b] for a, b in zip(bounds.tolist(), bounds[1:].tolist())]
    if spaces == "words" and tokenizer.spaces_matter:
        added = [bool(part) and not part[0].isspace() for part in parts]
        parts = [f" {part}" if space else part for part, space in zip(parts, added)]
        # From here on characters are counted with those spaces: a part's own is part of it.
        before = np.concatenate([[0], np.cumsum(added, dtype=np.int64)])
        token_starts += before[np.searchsorted(bounds, token_starts)]
        token_ends += before[np.searchsorted(bounds, token_ends)]
    encoded = tokenizer.encode_parts(parts)
    ids = _concat([part for part, _ in encoded])
    chars = [
        offsets + start for (_, offsets), start in zip(encoded, _offsets([len(x) for x in parts]))
    ]
    offsets = np.concatenate(chars) if chars else np.zeros((0, 2), dtype=np.int64)
    first = np.searchsorted(offsets[:, 1], token_starts, side="right")
    last = np.maximum(np.searchsorted(offsets[:, 0], token_ends, side="left"), first)
    return ids, first, last, 0


def _before_space(text: str, positions: Array) -> Array:
    """(n,) character positions, moved to before the space where one precedes them."""
    moved = [at > 0 and text[at - 1] == " " for at in positions.tolist()]
    return positions - np.asarray(moved, dtype=np.int64)


def _offsets(lengths: Sequence[int]) -> Array:
    return np.concatenate([[0], np.cumsum(np.asarray(lengths, dtype=np.int64))]).astype(np.int64)


def _concat(arrays: Sequence[Array]) -> Array:
    return np.concatenate(arrays) if len(arrays) else np.zeros(0, dtype=np.int64)
