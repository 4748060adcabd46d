"""Arcs over words, in cells that a browser wraps to the width of the page.

Every word is a cell. An arc is drawn in parts, one per cell between its words, each on the same
line above the words. A row of cells may be broken anywhere: the line of an arc then ends at the
right and continues at the left of the next row. So no width is computed here, and the same picture
fits any screen, font and script.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

START, OVER, END = "start", "over", "end"


@dataclass
class Word:
    """A word of a picture: a token, a mention, or "..." for omitted words.

    [start, end): its tokens. linked: whether an arc starts or ends here. space: whether white space
    follows.
    """

    text: str
    start: int
    end: int
    tag: str = ""
    linked: bool = False
    space: bool = True


class Arc(NamedTuple):
    """An arc between two words. kind: its CSS class. forward: whether it points to the right."""

    left: Word
    right: Word
    label: str
    kind: str
    forward: bool


class Part(NamedTuple):
    """What an arc draws above one word.

    shape: "start" (it rises from the word), "over" (it passes) or "end" (it comes down). level: its
    line, counted from 1 at the words. slot: position of its end at the word, counted from 0 at the
    left. label: at the start. arrow: whether this end points to the word.
    """

    shape: str
    kind: str
    level: int
    slot: int = 0
    label: str = ""
    arrow: bool = False


@dataclass
class Cell:
    """A word with the parts of arcs above it."""

    word: Word
    parts: list[Part] = field(default_factory=list)

    @property
    def n_levels(self) -> int:
        return max((part.level for part in self.parts), default=0)


def draw(words: Sequence[Word], arcs: Sequence[Arc]) -> list[Cell]:
    """The cells of a picture.

    Example: "Ada met Byron" with an arc from Ada to Byron gives three cells, with one part each:
    "start", "over" and "end", all of level 1.
    """
    index = {id(word): i for i, word in enumerate(words)}
    places = [(index[id(arc.left)], index[id(arc.right)]) for arc in arcs]
    levels = _levels(places)
    slots = _slots(places, levels)
    cells = [Cell(word) for word in words]
    for arc, (left, right), level, (first, last) in zip(arcs, places, levels, slots):
        start = Part(START, arc.kind, level, first, arc.label, arrow=not arc.forward)
        cells[left].parts.append(start)
        for cell in cells[left + 1 : right]:
            cell.parts.append(Part(OVER, arc.kind, level))
        cells[right].parts.append(Part(END, arc.kind, level, last, arrow=arc.forward))
    return cells


def _levels(places: Sequence[tuple[int, int]]) -> list[int]:
    """The line of each arc: short arcs lie below the long ones that span them. Arcs that meet at a
    word may share a line."""
    tops = [0] * max((right for _, right in places), default=0)
    levels = [0] * len(places)
    for i in sorted(range(len(places)), key=lambda i: (places[i][1] - places[i][0], places[i], i)):
        left, right = places[i]
        levels[i] = max(tops[left:right]) + 1
        tops[left:right] = [levels[i]] * (right - left)
    return levels


def _slots(places: Sequence[tuple[int, int]], levels: Sequence[int]) -> list[tuple[int, int]]:
    """The slots of both ends of each arc.

    Order at a word, from left to right: arcs from the left, low ones first, then arcs to the right,
    high ones first. So no arc crosses another one at its end.
    """
    at: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for i, ((left, right), level) in enumerate(zip(places, levels)):
        at[right].append((1, level, i))
        at[left].append((2, -level, i))
    slots = [[0, 0] for _ in places]
    for ends in at.values():
        for slot, (side, _, i) in enumerate(sorted(ends)):
            slots[i][0 if side == 2 else 1] = slot
    return [(first, last) for first, last in slots]
