"""Pieces that are replaced, dropped and marked, with the places of tokens and spans."""

import numpy as np
import pytest

from spacy_luke.inputs.alignment import Pieces
from spacy_luke.inputs.shapes import SPECIAL
from spacy_luke.inputs.spliced import insert_markers, keep_around, replace_ranges

MARKER = 99


def pieces(*docs, shapes=False) -> Pieces:
    """Each document is the numbers of pieces of its tokens; ids count from 10."""
    lengths = [n for doc in docs for n in doc]
    ends = np.cumsum(lengths, dtype=np.int64)
    sizes = [sum(doc) for doc in docs]
    return Pieces(
        ids=10 + np.arange(sum(sizes)),
        shapes=1 + np.arange(sum(sizes)) if shapes else None,
        token_starts=ends - lengths,
        token_ends=ends,
        token_offsets=np.cumsum([0, *map(len, docs)]),
        piece_offsets=np.cumsum([0, *sizes]),
        n_cut=np.zeros(len(docs), dtype=np.int64),
    )


def texts(found: Pieces, starts, ends) -> list[list[int]]:
    return [found.ids[a:b].tolist() for a, b in zip(starts, ends)]


def array(*values):
    return np.asarray(values, dtype=np.int64)


def test_a_range_becomes_one_piece():
    given = pieces([1, 2, 1], [2], shapes=True)
    found, starts, ends = replace_ranges(
        given, (array(1), array(3)), 7, array(1, 3, 4), array(3, 4, 6)
    )
    assert found.ids.tolist() == [10, 7, 13, 14, 15]
    assert texts(found, starts, ends) == [[7], [13], [14, 15]]
    assert texts(found, found.token_starts, found.token_ends) == [[10], [7], [13], [14, 15]]
    assert found.piece_offsets.tolist() == [0, 3, 5] and found.token_offsets.tolist() == [0, 3, 4]
    assert found.shapes.tolist() == [1, SPECIAL, 4, 5, 6]
    assert given.ids.tolist() == [10, 11, 12, 13, 14, 15]


@pytest.mark.parametrize(
    "spans,ids,marked",
    [
        ([(1, 2)], [10, 99, 11, 99, 12, 13], [[99, 11, 99]]),
        ([(0, 4)], [99, 10, 11, 12, 13, 99], [[99, 10, 11, 12, 13, 99]]),
        ([(0, 1), (1, 2)], [99, 10, 99, 99, 11, 99, 12, 13], [[99, 10, 99], [99, 11, 99]]),
        (
            [(0, 3), (1, 2)],
            [99, 10, 99, 11, 99, 12, 99, 13],
            [[99, 10, 99, 11, 99, 12, 99], [99, 11, 99]],
        ),
        ([(2, 2)], [10, 11, 12, 13], [[]]),
        ([], [10, 11, 12, 13], []),
    ],
)
def test_markers_are_parts_of_their_spans(spans, ids, marked):
    starts, ends = np.asarray(spans, dtype=np.int64).reshape(-1, 2).T
    found, starts, ends = insert_markers(pieces([1, 1, 1, 1]), starts, ends, MARKER)
    assert found.ids.tolist() == ids
    assert texts(found, starts, ends) == marked
    tokens = texts(found, found.token_starts, found.token_ends)
    assert tokens == [[10], [11], [12], [13]]


def test_markers_at_the_border_of_two_texts_stay_in_their_own():
    found, starts, ends = insert_markers(
        pieces([1, 0], [1], [], shapes=True), array(0, 1), array(1, 2), MARKER
    )
    assert found.piece_offsets.tolist() == [0, 3, 6, 6]
    assert texts(found, starts, ends) == [[99, 10, 99], [99, 11, 99]]
    assert (found.token_ends >= found.token_starts).all()
    assert found.shapes.tolist() == [SPECIAL, 1, SPECIAL, SPECIAL, 2, SPECIAL]


@pytest.mark.parametrize(
    "span,most,kept",
    [
        ((1, 2), 4, list(range(10, 20))),  # among the first: as it is
        ((3, 4), 4, list(range(10, 20))),
        ((4, 5), 4, list(range(12, 20))),
        ((9, 10), 4, list(range(16, 20))),
        ((4, 7), 4, list(range(13, 20))),
        ((4, 5), 20, list(range(10, 20))),
    ],
)
def test_the_first_pieces_contain_the_span(span, most, kept):
    given = pieces([1] * 10, [1] * 3)
    starts, ends = array(span[0], 10), array(span[1], 11)
    found, starts, ends = keep_around(given, starts, ends, most)
    low, high = found.piece_offsets[:2]
    assert found.ids[low:high].tolist() == kept
    assert ends[0] - low <= most
    assert texts(found, starts, ends) == [list(range(10 + span[0], 10 + span[1])), [20]]
    assert found.ids[high:].tolist() == [20, 21, 22]
