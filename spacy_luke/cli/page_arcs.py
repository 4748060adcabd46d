"""displaCy's arcs over words of different widths."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from markupsafe import Markup, escape
from spacy.displacy import DependencyRenderer

SLOT = 10
"""Pixels per grid position of words and ends of arcs."""
RISE = 28
"""Pixels between the control points of an arc and of the arc below it."""
FONT, SMALL = 14, 11.2
"""Font sizes in pixels: of words, and of labels and tags (displaCy's 0.8em)."""


@dataclass
class Word:
    """A word of a picture: a token, a mention, or "..." for omitted words.

    [start, end): its tokens. linked: whether an arc starts or ends here. slot: grid position of its
    middle.
    """

    text: str
    start: int
    end: int
    tag: str = ""
    linked: bool = False
    slot: int = 0


class Arc(NamedTuple):
    """An arc between two words. kind: its CSS class. forward: whether it points to the right."""

    left: Word
    right: Word
    label: str
    kind: str
    forward: bool


class ArcRenderer(DependencyRenderer):
    """displaCy's renderer with words of different widths, and kinds of arcs.

    displaCy draws all words at equal distances. Here the distance is small and most "words" are
    empty, so that a word or the end of an arc can be at almost any position.
    """

    def __init__(self, kinds: Sequence[str]) -> None:
        grid = {"distance": SLOT, "offset_x": SLOT, "word_spacing": 24}
        arrows = {"arrow_spacing": 0, "arrow_width": 7, "arrow_stroke": 1.5}
        super().__init__({**grid, **arrows, "color": "inherit", "bg": "none", "font": "inherit"})
        self.kinds = kinds

    def render_svg(self, render_id: int | str, words: list[Any], arcs: list[Any]) -> str:
        """Crop the picture above the highest arc and below the tags. (A curve reaches three
        quarters of the height of its control points.)"""
        svg = super().render_svg(render_id, words, arcs)
        top = int(self.offset_y / 4) - 2
        height = int(self.offset_y) + 56 - top
        box = f'height="{height}" viewBox="0 {top} {self.width} {height}"'
        svg = svg.replace(f'height="{self.height}"', box, 1)
        return svg.replace(f"height: {self.height}px", f"height: {height}px", 1)

    def render_word(self, text: str, tag: str, lemma: str | None, i: int) -> str:
        if not text:
            return ""
        word = super().render_word(text, str(escape(tag)), lemma, i)
        return word.replace("displacy-token", "displacy-token mention", 1) if tag else word

    def render_arrow(self, label: str, start: int, end: int, direction: str, i: int) -> str:
        arrow = super().render_arrow(label, start, end, direction, i)
        return arrow.replace("displacy-arrow", f"displacy-arrow {self.kinds[i]}", 1)

    def get_levels(self, arcs: list[dict[str, Any]]) -> dict[tuple[int, int, str], Any]:
        """(start, end, label) -> level. As in displaCy, but arcs of equal length are ordered."""
        tops = [0.0] * max((arc["end"] for arc in arcs), default=0)
        levels = {}
        for key in sorted(
            {(arc["start"], arc["end"], arc["label"]) for arc in arcs},
            key=lambda key: (key[1] - key[0], key),
        ):
            start, end, _ = key
            levels[key] = max(tops[start:end]) + RISE * 2 / SLOT
            tops[start:end] = [levels[key]] * (end - start)
        return levels


def draw(words: Sequence[Word], arcs: Sequence[Arc], name: str, direction: str = "ltr") -> Markup:
    """The SVG of words and arcs, with all text escaped.

    name: its id. direction: "ltr" or "rtl". Sets the slots of the words.
    """
    width = _place(words, arcs)
    ends = _ends([(arc.left.slot, arc.right.slot) for arc in arcs])
    # Long arcs first, because they would cross out the labels of short ones.
    placed = sorted(zip(ends, arcs), key=lambda row: row[0][0] - row[0][1])
    drawn: list[dict[str, Any]] = [
        {
            "start": start,
            "end": end,
            "label": str(escape(arc.label)),
            "dir": "right" if arc.forward else "left",
        }
        for (start, end), arc in placed
    ]
    if direction == "rtl":  # not by displaCy, whose labels are then upside down
        for word in words:
            word.slot = width - 1 - word.slot
        for row, (_, arc) in zip(drawn, placed):
            row["start"], row["end"] = width - 1 - row["end"], width - 1 - row["start"]
            row["dir"] = "left" if arc.forward else "right"
    grid = [{"text": "", "tag": ""} for _ in range(width)]
    for word in words:
        grid[word.slot] = {"text": word.text, "tag": word.tag}
    renderer = ArcRenderer([arc.kind for _, arc in placed])
    svg = renderer.render_svg(name, grid, drawn)
    return Markup(re.sub(r' (xmlns(:\w+)?|xml:lang)="[^"]*"', "", svg))  # not needed in HTML


def _place(words: Sequence[Word], arcs: Sequence[Arc]) -> int:
    """Set the slots of words so that neither words nor labels of arcs overlap. Returns the number
    of slots."""
    n_ends: dict[int, int] = defaultdict(int)
    for arc in arcs:
        n_ends[arc.left.start] += 1
        n_ends[arc.right.start] += 1
    edge = 0.0
    for word in words:
        bold = 1.08 if word.tag else 1.0
        size = max(
            _width(word.text, FONT) * bold, _width(word.tag, SMALL), n_ends[word.start] * SLOT
        )
        word.slot = _slots(edge + size / 2)
        for arc in arcs:
            if arc.right is word:
                # The label follows the curve, whose flat part is shorter than the chord.
                room = _slots(1.25 * _width(arc.label, SMALL) + len(arc.label) + 2 * SLOT)
                room += (n_ends[arc.left.start] + n_ends[word.start]) // 2
                word.slot = max(word.slot, arc.left.slot + room)
        edge = word.slot * SLOT + size / 2 + SLOT
    return _slots(edge) + 1


def _ends(arcs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spread the ends of arcs at the same word so that the arcs do not cross there.

    Order from left to right: arcs from the left, shorter ones first, then arcs to the right, longer
    ones first. Of two arcs between the same words, the first is the outer one.

    Example: arcs (0, 9) and (9, 12) meet at 9; the first ends at 9, the second starts at 10.
    """
    by_slot: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for i, (left, right) in enumerate(arcs):
        by_slot[right].append((0, right - left, -i))
        by_slot[left].append((1, left - right, i))
    spread = [list(arc) for arc in arcs]
    for slot, ends in by_slot.items():
        for position, (side, _, i) in enumerate(sorted(ends)):
            spread[abs(i)][1 - side] = slot + position - (len(ends) - 1) // 2
    return [(left, right) for left, right in spread]


def _slots(pixels: float) -> int:
    return -int(-pixels // SLOT)


def _width(text: str, size: float) -> float:
    """An upper estimate of the width of a text in pixels."""
    units = 0.0
    for character in text:
        if unicodedata.east_asian_width(character) in "WF":
            units += 1.0
        elif not unicodedata.combining(character):
            units += 0.72 if character.isupper() else 0.58
    return units * size
