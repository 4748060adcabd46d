"""Tokens to word pieces, by one of two rules.

``tokens`` cuts the text at every spaCy token. Pieces do not depend on the spans, so components can
share a word pass. ``mentions`` cuts the text only at mention boundaries, as published models were
trained. With both, a space before a cut belongs to the next piece, and one after the last token is
dropped.

If a space changes the pieces of a tokenizer, ``spaces`` determines which tokens (or, with
``mentions``, which parts between cuts) have a space before them:

text: those that have one in the text.
words: all (the meaning of ``add_prefix_space``).
conll: all except those that begin with an apostrophe or are one punctuation character, as LUKE read
    CoNLL-2003; only with ``tokens``.

White-space tokens are always as in the text.
"""

import string
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from spacy.tokens import Doc, Span

from ..vocab.pieces import PieceTokenizer
from .shapes import word_shape

Array = np.ndarray
TokenisationRule = Literal["tokens", "mentions"]
Spaces = Literal["text", "words", "conll"]

MAX_TOKEN_PIECES = 64
"""A longer token keeps its first pieces only; such tokens are counted."""


@dataclass
class Pieces:
    """The pieces of a batch of documents, end to end, without special pieces.

    ids: (n_pieces,). shapes: (n_pieces,) word shapes, or None.
    token_starts, token_ends: (n_tokens,) the piece range of every token of the batch. A token
        without pieces (white space, for WordPiece) has an empty range.
    token_offsets, piece_offsets: (n_docs + 1,) the first token, and piece, of each document.
    n_cut: (n_docs,) the number of tokens that had more than MAX_TOKEN_PIECES pieces.
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
    shapes: whether to compute word shapes.
    spaces: see above; ``words`` if the tokenizer's files set ``add_prefix_space``, else ``text``.
    """
    if spaces is None:
        spaces = "words" if tokenizer.prefix_space else "text"
    if rule == "tokens":
        per_doc = _pieces_of_tokens(docs, tokenizer, spaces)
    else:
        cuts = spans if spans is not None else [np.zeros((0, 2), dtype=np.int64)] * len(docs)
        per_doc = [_pieces_of_parts(doc, tokenizer, spaces, cut) for doc, cut in zip(docs, cuts)]
    piece_offsets = offsets_of([len(ids) for ids, *_ in per_doc])
    starts = [s + base for (_, s, _, _), base in zip(per_doc, piece_offsets)]
    ends = [e + base for (_, _, e, _), base in zip(per_doc, piece_offsets)]
    pieces = Pieces(
        ids=concat([ids for ids, *_ in per_doc]),
        shapes=None,
        token_starts=concat(starts),
        token_ends=concat(ends),
        token_offsets=offsets_of([len(doc) for doc in docs]),
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


def concat(arrays: Sequence[Array]) -> Array:
    """One after the other; there may be none."""
    return np.concatenate(arrays) if len(arrays) else np.zeros(0, dtype=np.int64)


def span_table(spans: Sequence[Span]) -> Array:
    """(n, 2) the token ranges of spans."""
    return np.asarray([(x.start, x.end) for x in spans], dtype=np.int64).reshape(-1, 2)


def ranges(starts: Array, ends: Array) -> Array:
    """All indices of the ranges [start, end), one range after the other.

    starts [2, 7], ends [4, 10] -> [2, 3, 7, 8, 9].
    """
    lengths = ends - starts
    stops = np.cumsum(lengths)
    total = int(stops[-1]) if len(stops) else 0
    return np.arange(total) + np.repeat(starts - (stops - lengths), lengths)


def offsets_of(lengths: Sequence[int] | Array) -> Array:
    """(n + 1,) where each of the concatenated parts starts: lengths [2, 0, 3] -> [0, 2, 2, 5]."""
    return np.concatenate([[0], np.cumsum(np.asarray(lengths, dtype=np.int64))]).astype(np.int64)


_DocPieces = tuple[Array, Array, Array, int]  # ids, token starts, token ends, tokens cut


def _pieces_of_tokens(
    docs: Sequence[Doc], tokenizer: PieceTokenizer, spaces: Spaces
) -> list[_DocPieces]:
    if tokenizer.spaces_matter:
        texts = [text for doc in docs for text in _texts_with_spaces(doc, spaces)]
    else:
        texts = [token.text for doc in docs for token in doc]
    encoded = tokenizer.encode_words(texts)
    result, n_tokens = [], 0
    for doc in docs:
        token_ids = encoded[n_tokens : n_tokens + len(doc)]
        n_tokens += len(doc)
        n_cut = sum(len(ids) > MAX_TOKEN_PIECES for ids in token_ids)
        if n_cut:
            token_ids = [ids[:MAX_TOKEN_PIECES] for ids in token_ids]
        offsets = offsets_of([len(ids) for ids in token_ids])
        result.append((concat(token_ids), offsets[:-1], offsets[1:], n_cut))
    return result


def _texts_with_spaces(doc: Doc, spaces: Spaces) -> list[str]:
    """The text of each token, with the space before it, if it has one."""
    texts, space_before = [], False
    last = len(doc) - 1
    for i, token in enumerate(doc):
        text = token.text
        space_after = bool(token.whitespace_)
        # The last space of a white-space token belongs to the next token: "a", "  ", "b" -> " b".
        if not space_after and i < last and text.endswith(" "):
            text, space_after = text[:-1], True
        if spaces != "text" and text and not text[0].isspace():
            space_before = spaces == "words" or not _attaches_left(text)
        texts.append(f" {text}" if space_before else text)
        space_before = space_after
    return texts


def _attaches_left(word: str) -> bool:
    """Whether a word has no space before it under ``conll``."""
    if word[0] == "'":
        return True
    return len(word) == 1 and (word in string.punctuation or unicodedata.category(word)[0] == "P")


def _pieces_of_parts(
    doc: Doc, tokenizer: PieceTokenizer, spaces: Spaces, spans: Array
) -> _DocPieces:
    text = doc[:].text  # without a space after the last token
    token_starts = np.asarray([token.idx for token in doc], dtype=np.int64)
    token_ends = token_starts + np.asarray([len(token) for token in doc], dtype=np.int64)
    # A space before a token belongs to that token, also if it is a separate piece.
    token_starts, token_ends = _before_space(text, token_starts), _before_space(text, token_ends)
    inside = (spans[:, 0] >= 0) & (spans[:, 0] < spans[:, 1]) & (spans[:, 1] <= len(doc))
    spans = spans[inside]
    cuts = [token_starts[spans[:, 0]], token_ends[spans[:, 1] - 1], [0, len(text)]]
    bounds = np.unique(np.concatenate(cuts))
    parts = [text[a:b] for a, b in zip(bounds.tolist(), bounds[1:].tolist())]
    if spaces == "words" and tokenizer.spaces_matter:
        added = [bool(part) and not part[0].isspace() for part in parts]
        parts = [f" {part}" if space else part for part, space in zip(parts, added)]
        # The added spaces move the characters: "Ada|met" becomes " Ada| met", and 3 becomes 4.
        n_added = np.concatenate([[0], np.cumsum(added, dtype=np.int64)])
        token_starts += n_added[np.searchsorted(bounds, token_starts)]
        token_ends += n_added[np.searchsorted(bounds, token_ends)]
    encoded = tokenizer.encode_parts(parts)
    ids = concat([part_ids for part_ids, _ in encoded])
    part_starts = offsets_of([len(part) for part in parts])
    chars = [in_part + start for (_, in_part), start in zip(encoded, part_starts)]
    piece_chars = np.concatenate(chars) if chars else np.zeros((0, 2), dtype=np.int64)
    first = np.searchsorted(piece_chars[:, 1], token_starts, side="right")
    end = np.maximum(np.searchsorted(piece_chars[:, 0], token_ends, side="left"), first)
    return ids, first, end, 0


def _before_space(text: str, positions: Array) -> Array:
    """(n,) character positions, each moved before the space that precedes it, if there is one."""
    has_space = [i > 0 and text[i - 1] == " " for i in positions.tolist()]
    return positions - np.asarray(has_space, dtype=np.int64)
