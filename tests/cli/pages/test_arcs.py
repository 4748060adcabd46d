"""Arcs over words: which line and which end each has, in cells that a browser wraps."""

from itertools import product

from spacy_luke.cli.pages.arcs import Arc, Word, draw


def words_of(n):
    return [Word(str(i), i, i + 1) for i in range(n)]


def arcs_of(words, *places, forward=True):
    return [Arc(words[a], words[b], f"{a}-{b}", "plain", forward) for a, b in places]


def parts(cells):
    return [[(x.shape, x.level, x.slot) for x in cell.parts] for cell in cells]


def test_an_arc_has_a_part_in_every_cell_from_its_first_word_to_its_last():
    words = words_of(5)
    cells = draw(words, arcs_of(words, (1, 3)))
    assert [cell.word for cell in cells] == words
    assert parts(cells) == [[], [("start", 1, 0)], [("over", 1, 0)], [("end", 1, 0)], []]
    assert [cell.n_levels for cell in cells] == [0, 1, 1, 1, 0]
    assert [[x.label for x in cell.parts] for cell in cells] == [[], ["1-3"], [""], [""], []]


def test_an_arc_points_to_the_tail():
    words = words_of(2)
    for forward, tips in ((True, [False, True]), (False, [True, False])):
        cells = draw(words, arcs_of(words, (0, 1), forward=forward))
        assert [cell.parts[0].arrow for cell in cells] == tips


def test_short_arcs_lie_below_long_ones_and_those_that_meet_share_a_line():
    words = words_of(7)
    cells = draw(words, arcs_of(words, (0, 6), (0, 2), (2, 4), (3, 5)))
    levels = {x.label: x.level for cell in cells for x in cell.parts if x.label}
    assert levels == {"0-2": 1, "2-4": 1, "3-5": 2, "0-6": 3}


def test_arcs_between_the_same_words_are_nested():
    words = words_of(2)
    cells = draw(words, arcs_of(words, (0, 1), (0, 1), (0, 1)))
    assert parts(cells)[0] == [("start", 1, 2), ("start", 2, 1), ("start", 3, 0)]
    assert parts(cells)[1] == [("end", 1, 0), ("end", 2, 1), ("end", 3, 2)]


def test_at_a_word_arcs_from_the_left_end_before_others_start():
    words = words_of(5)
    cells = draw(words, arcs_of(words, (0, 2), (1, 2), (2, 3), (2, 4)))
    order = [x.shape for x in sorted(cells[2].parts, key=lambda x: x.slot)]
    assert order == ["end", "end", "start", "start"]


def test_no_line_is_used_twice_in_a_cell_and_no_arc_crosses_another_at_its_end():
    words = words_of(5)
    places = [(a, b) for a, b in product(range(5), repeat=2) if a < b]
    for cell in draw(words, arcs_of(words, *places)):
        lines = [(x.level, x.shape) for x in cell.parts]
        assert len(set(lines)) == len(lines)
        over = {x.level for x in cell.parts if x.shape == "over"}
        assert not over & {x.level for x in cell.parts if x.shape != "over"}
        ends = sorted(x for x in cell.parts if x.shape == "end")
        starts = sorted((x for x in cell.parts if x.shape == "start"), key=lambda x: -x.level)
        slots = [x.slot for x in (*sorted(ends, key=lambda x: x.level), *starts)]
        assert slots == list(range(len(slots)))


def test_a_picture_without_arcs_is_its_words():
    assert parts(draw(words_of(2), [])) == [[], []]
