"""Pieces of texts with some of them replaced or dropped, and with marker pieces around spans.

A position is a place between pieces, counted over the batch: 0 is before the first piece.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from .alignment import Pieces, ranges
from .shapes import SPECIAL

Array = np.ndarray


class Spliced(NamedTuple):
    """Pieces, and the new piece ranges of spans: (n,) starts and ends."""

    pieces: Pieces
    starts: Array
    ends: Array


def replace_ranges(
    pieces: Pieces, replaced: tuple[Array, Array], piece: int, starts: Array, ends: Array
) -> Spliced:
    """Put one piece in place of each of some ranges.

    replaced: starts and ends of piece ranges that are not empty and do not overlap. starts, ends:
    of spans.

    Pieces a b c d, replaced [1, 3): a X d; the span [3, 4) becomes [2, 3).
    """
    keep = np.ones(len(pieces.ids), dtype=bool)
    keep[ranges(replaced[0] + 1, replaced[1])] = False
    ids = pieces.ids.copy()
    ids[replaced[0]] = piece
    shapes = None if pieces.shapes is None else pieces.shapes.copy()
    if shapes is not None:
        shapes[replaced[0]] = SPECIAL
    return keep_pieces(replace(pieces, ids=ids, shapes=shapes), keep, starts, ends)


def keep_pieces(pieces: Pieces, keep: Array, starts: Array, ends: Array) -> Spliced:
    """Drop pieces. keep: (n_pieces,) those that remain. starts, ends: of spans."""
    at = np.concatenate([[0], np.cumsum(keep)])
    kept = replace(
        pieces,
        ids=pieces.ids[keep],
        shapes=None if pieces.shapes is None else pieces.shapes[keep],
        token_starts=at[pieces.token_starts],
        token_ends=at[pieces.token_ends],
        piece_offsets=at[pieces.piece_offsets],
    )
    return Spliced(kept, at[starts], at[ends])


def keep_around(pieces: Pieces, starts: Array, ends: Array, most: int) -> Spliced:
    """Keep so much of each text that its first ``most`` pieces contain its span.

    starts, ends: (n_docs,) one span per text. A text is kept as it is if its first ``most`` pieces
    contain the span; else pieces are dropped before it, so that it is in their middle.
    """
    lows, highs = pieces.piece_offsets[:-1], pieces.piece_offsets[1:]
    middle = np.minimum((starts + ends) // 2 - most // 2, highs - most)
    low = np.where(ends - lows <= most, lows, np.maximum(middle, lows))
    keep = np.zeros(len(pieces.ids), dtype=bool)
    keep[ranges(low, highs)] = True
    return keep_pieces(pieces, keep, starts, ends)


def insert_markers(pieces: Pieces, starts: Array, ends: Array, marker: int) -> Spliced:
    """Insert a marker piece before and after each span, which are then parts of it.

    starts, ends: (n,) piece ranges; those of empty spans stay empty, and get no markers. Where one
    span ends and another starts, the closing marker is first. Nested spans with the same start have
    all opening markers there.

    Pieces a b c with the span [1, 2): a M b M c, and the span [1, 4).
    """
    filled, n = ends > starts, len(pieces.ids)
    n_open = np.bincount(starts[filled], minlength=n + 1)
    n_close = np.bincount(ends[filled], minlength=n + 1)
    # At a position first come the closing markers of spans that end there, then the opening ones.
    closed, opened = np.cumsum(n_close), np.cumsum(n_open)
    position = np.arange(n + 1)
    before_closing = position + closed - n_close + opened - n_open
    between = position + closed + opened - n_open
    after_opening = position + closed + opened
    ids = np.full(n + 2 * int(filled.sum()), marker, dtype=np.int64)
    ids[after_opening[:n]] = pieces.ids
    shapes = None
    if pieces.shapes is not None:
        shapes = np.full(len(ids), SPECIAL, dtype=np.int64)
        shapes[after_opening[:n]] = pieces.shapes
    token_starts = after_opening[pieces.token_starts]
    marked = replace(
        pieces,
        ids=ids,
        shapes=shapes,
        token_starts=token_starts,
        token_ends=np.maximum(before_closing[pieces.token_ends], token_starts),
        piece_offsets=between[pieces.piece_offsets],
    )
    return Spliced(marked, between[starts], np.where(filled, between[ends], between[starts]))
