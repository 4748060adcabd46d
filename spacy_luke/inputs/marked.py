"""Sequences in which scored spans stand between marker pieces.

One sequence per row, as published for relations (``<ent> head <ent>``, ``<ent2> tail <ent2>``)
and entity types (``<ent> mention <ent>``): the row's spans become its entities, and their
positions include the markers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from spacy.tokens import Doc

from ..model.packing import Words
from ..vocab.pieces import PieceTokenizer
from .alignment import Pieces, ranges
from .shapes import SPECIAL
from .windows import extend_with_context, sentence_bounds

Array = np.ndarray
View = Literal["document", "sentence"]


@dataclass
class Markers:
    """The pieces around a span. closing: (m,) piece that ends the i-th span of a row, and
    begins it. openings: for each kind of span, what stands before it, without the marker."""

    closing: Array
    openings: list[Array]

    def opening_lengths(self, kinds: Array) -> Array:
        """(n, m) pieces before each span, its marker included."""
        return 1 + np.asarray([len(pieces) for pieces in self.openings], dtype=np.int64)[kinds]


@dataclass
class Marked:
    """Packed sequences. starts, ends: (n, m) piece ranges of the rows' spans inside their
    sequences, markers included, the first special piece being 0."""

    words: Words
    starts: Array
    ends: Array


def marker_ids(tokenizer: PieceTokenizer) -> Array:
    """(2,) the pieces around a head (or an only span) and a tail.

    ``<ent>`` and ``<ent2>`` where the vocabulary has them; else ``@`` and ``#``, which they were
    initialised from (Yamada et al. 2020, section 4.2).
    """
    ids = []
    for published, plain in (("<ent>", "@"), ("<ent2>", "#")):
        found = tokenizer.id_of(published)
        found = tokenizer.id_of(plain) if found is None else found
        ids.append(tokenizer.unk_id if found is None else found)
    return np.asarray(ids, dtype=np.int64)


def context_windows(
    docs: Sequence[Doc],
    pieces: Pieces,
    of_doc: Array,
    lows: Array,
    highs: Array,
    sizes: Array,
    view: View,
) -> tuple[Array, Array]:
    """What each row's sequence shows: piece ranges of at most ``sizes`` pieces.

    of_doc, lows, highs: (n,) document and piece range that must be shown. ``document``: as much of
    the document as fits, evenly on both sides. ``sentence``: as much as fits of the sentences that
    hold the range.
    """  # fmt: skip
    left, right = pieces.piece_offsets[of_doc], pieces.piece_offsets[of_doc + 1]
    if view == "sentence":
        bounds = sentence_bounds(docs, pieces)
        left = bounds[np.searchsorted(bounds, lows, side="right") - 1]
        right = bounds[np.searchsorted(bounds, highs, side="left")]
    return extend_with_context(lows, highs, left, right, sizes)


def pack_marked(
    pieces: Pieces,
    tokenizer: PieceTokenizer,
    starts: Array,
    ends: Array,
    view_starts: Array,
    view_ends: Array,
    markers: Markers,
    kinds: Array,
) -> Marked:
    """Lay out one sequence per row.

    starts, ends: (n, m) piece ranges of the row's spans, inside its view. view_starts,
    view_ends: (n,). kinds: (n, m) which of ``markers.openings`` a span gets. Spans may touch, nest
    and overlap: markers close before others open, and the inner of two closes first.
    """
    n, m = starts.shape
    base_offsets = np.concatenate([[0], np.cumsum(view_ends - view_starts + 2)]).astype(np.int64)
    base = ranges(view_starts, view_ends)
    inner = np.ones(int(base_offsets[-1]), dtype=bool)
    inner[base_offsets[:-1]] = inner[base_offsets[1:] - 1] = False

    shift = (base_offsets[:-1] + 1 - view_starts)[:, None]
    places = np.concatenate([starts + shift, ends + shift], axis=1).ravel()
    opens = np.tile(np.repeat([True, False], m), n)
    number = np.tile(np.arange(m), 2 * n)
    other = np.concatenate([ends + shift, starts + shift], axis=1).ravel()
    order = np.lexsort((np.where(opens, number, -number), -other, opens, places))
    lengths = np.ones((n, 2 * m), dtype=np.int64)
    lengths[:, :m] = markers.opening_lengths(kinds)
    inserted = lengths.ravel()[order]
    at = places[order] + np.cumsum(inserted) - inserted
    before = np.zeros(len(inner) + 1, dtype=np.int64)
    np.add.at(before, places, lengths.ravel())
    moved = np.arange(len(inner)) + np.cumsum(before)[: len(inner)]
    offsets = np.append(moved[base_offsets[:-1]], len(inner) + inserted.sum()).astype(np.int64)

    ids = np.empty(int(offsets[-1]), dtype=np.int64)
    ids[moved[base_offsets[:-1]]] = tokenizer.cls_id
    ids[moved[base_offsets[1:] - 1]] = tokenizer.sep_id
    ids[moved[inner]] = pieces.ids[base]
    event_at = np.empty(2 * m * n, dtype=np.int64)
    event_at[order] = at
    event_at = event_at.reshape(n, 2, m)
    ids[event_at] = markers.closing[:m]
    _write_openings(ids, event_at[:, 0], markers, kinds)
    shapes = None
    if pieces.shapes is not None:
        shapes = np.full(len(ids), SPECIAL, dtype=np.int64)
        shapes[moved[inner]] = pieces.shapes[base]
    local = event_at - offsets[:-1, None, None]
    return Marked(Words(ids, offsets, shapes), local[:, 0], local[:, 1] + 1)


def _write_openings(ids: Array, at: Array, markers: Markers, kinds: Array) -> None:
    for kind, pieces in enumerate(markers.openings):
        if len(pieces):
            mine = at[kinds == kind]
            ids[mine[:, None] + 1 + np.arange(len(pieces))] = pieces
