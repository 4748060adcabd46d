"""Sequences with marker pieces around the scored spans.

There is one sequence per row, as published for relations (``<ent> head <ent>``, ``<ent2> tail
<ent2>``) and entity types (``<ent> mention <ent>``). The row's spans are the sequence's entities,
and their positions include the markers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from spacy.tokens import Doc

from ..model.packing import Words
from ..vocab.pieces import PieceTokenizer
from .alignment import Pieces, offsets_of, ranges
from .shapes import SPECIAL
from .windows import extend_with_context, sentence_bounds

Array = np.ndarray
View = Literal["document", "sentence"]


@dataclass
class Markers:
    """The pieces around spans.

    closing: (m,) the marker before and after the i-th span of a row.
    openings: for each kind of span, the pieces between the first marker and the span, if any.
    """

    closing: Array
    openings: list[Array]

    def opening_lengths(self, kinds: Array) -> Array:
        """(n, m) the number of pieces before each span, its marker included."""
        return 1 + np.asarray([len(pieces) for pieces in self.openings], dtype=np.int64)[kinds]


@dataclass
class Marked:
    """Packed sequences. starts, ends: (n, m) piece ranges of the rows' spans inside their
    sequences, markers included; [CLS] is at 0."""

    words: Words
    starts: Array
    ends: Array


def marker_ids(tokenizer: PieceTokenizer) -> Array:
    """(2,) the marker pieces for a head (or an only span) and a tail.

    ``<ent>`` and ``<ent2>`` if the vocabulary has them; else ``@`` and ``#``, from which they were
    initialised (Yamada et al. 2020, section 4.2).
    """
    ids = []
    for published, plain in (("<ent>", "@"), ("<ent2>", "#")):
        candidates = (tokenizer.id_of(published), tokenizer.id_of(plain), tokenizer.unk_id)
        ids.append(next(x for x in candidates if x is not None))
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
    """The part of the document in each row's sequence: piece ranges of at most ``sizes`` pieces.

    of_doc, lows, highs: (n,) document and piece range that must be included.
    view: ``document``: as much of the document as fits, evenly on both sides. ``sentence``: as much
        as fits of the sentences that contain the range.
    """
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
    """Pack one sequence per row: [CLS], the pieces of its view with the markers inserted, [SEP].

    starts, ends: (n, m) piece ranges of the row's spans, inside its view. view_starts,
    view_ends: (n,). kinds: (n, m) which of ``markers.openings`` a span gets. Spans may touch, nest
    and overlap. At the same position, closing markers precede opening markers, and of two nested
    spans the inner one closes first.

    With m = 1, a view of the pieces a b c and the span [1, 2) of b: ``places`` (before which piece
    of [CLS] a b c [SEP] a marker is inserted) is [2, 3], and the sequence is
    [CLS] a <ent> b <ent> c [SEP].
    """
    n, m = starts.shape
    # The base: all sequences without markers.
    base_offsets = offsets_of(view_ends - view_starts + 2)
    is_inner = np.ones(int(base_offsets[-1]), dtype=bool)  # False for [CLS] and [SEP]
    is_inner[base_offsets[:-1]] = is_inner[base_offsets[1:] - 1] = False

    # The markers, (n, 2, m): before which position of the base, and in which order.
    shift = (base_offsets[:-1] + 1 - view_starts)[:, None]
    places = np.concatenate([starts + shift, ends + shift], axis=1).ravel()
    other_ends = np.concatenate([ends + shift, starts + shift], axis=1).ravel()
    opens = np.tile(np.repeat([True, False], m), n)
    number = np.tile(np.arange(m), 2 * n)
    order = np.lexsort((np.where(opens, number, -number), -other_ends, opens, places))

    # Where base pieces and markers are in the result. Markers before position 2 and 3, of 1 piece:
    # n_before [0 0 1 1 0 0], base_at [0 1 3 5 6], marker_at [2 4].
    lengths = np.ones((n, 2 * m), dtype=np.int64)
    lengths[:, :m] = markers.opening_lengths(kinds)
    n_before = np.zeros(len(is_inner) + 1, dtype=np.int64)
    np.add.at(n_before, places, lengths.ravel())
    base_at = np.arange(len(is_inner)) + np.cumsum(n_before)[: len(is_inner)]
    ordered_lengths = lengths.ravel()[order]
    marker_at = np.empty(2 * m * n, dtype=np.int64)
    marker_at[order] = places[order] + np.cumsum(ordered_lengths) - ordered_lengths
    marker_at = marker_at.reshape(n, 2, m)
    n_pieces = len(is_inner) + ordered_lengths.sum()
    offsets = np.append(base_at[base_offsets[:-1]], n_pieces).astype(np.int64)

    source = ranges(view_starts, view_ends)
    ids = np.empty(int(offsets[-1]), dtype=np.int64)
    ids[base_at[base_offsets[:-1]]] = tokenizer.cls_id
    ids[base_at[base_offsets[1:] - 1]] = tokenizer.sep_id
    ids[base_at[is_inner]] = pieces.ids[source]
    ids[marker_at] = markers.closing[:m]
    _write_openings(ids, marker_at[:, 0], markers, kinds)
    shapes = None
    if pieces.shapes is not None:
        shapes = np.full(len(ids), SPECIAL, dtype=np.int64)
        shapes[base_at[is_inner]] = pieces.shapes[source]
    in_sequence = marker_at - offsets[:-1, None, None]
    return Marked(Words(ids, offsets, shapes), in_sequence[:, 0], in_sequence[:, 1] + 1)


def _write_openings(ids: Array, marker_at: Array, markers: Markers, kinds: Array) -> None:
    """Write the opening pieces of each span after its first marker. marker_at, kinds: (n, m)."""
    for kind, pieces in enumerate(markers.openings):
        if len(pieces):
            of_kind = marker_at[kinds == kind]
            ids[of_kind[:, None] + 1 + np.arange(len(pieces))] = pieces
