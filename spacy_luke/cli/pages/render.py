"""HTML of a page, from the templates in this folder."""

import zlib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from .document import ShownDoc
from .layers import ENTITIES, NAMES
from .page import HtmlPage

if TYPE_CHECKING:
    from jinja2 import Environment

MAX_TYPES = 5
"""Types that are shown of an entity; the others are behind a button."""
_TEMPLATES = Path(__file__).with_name("templates")
_SALT = "4429"
"""Chosen so that labels of common schemes (CoNLL, OntoNotes, the project's) get hues far apart."""


def hue(label: str) -> int:
    """The hue of a label, 0 to 359: the same on all pages."""
    return zlib.crc32(f"{_SALT}{label}".encode("utf8", "surrogatepass")) % 360


def render(page: HtmlPage) -> str:
    """The page as HTML; all text is escaped."""
    return (
        _environment()
        .get_template("page.html")
        .render(
            page=page,
            hues=sorted({hue(label) for label in _labels(page)}),
            highest=max((bar.n for bar in page.bars), default=0),
            kinds={name: _kinds(page, name) for name in NAMES.values()},
            max_types=MAX_TYPES,
        )
    )


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters.update(percent=_percent, hue=hue, counted=_counted)
    return environment


def _labels(page: HtmlPage) -> Iterator[str]:
    for tally in page.tallies:
        if tally.what == NAMES[ENTITIES]:
            yield from tally.labels
    for shown in page.documents:
        for passage in shown.passages:
            for piece in passage.pieces:
                yield from (x for x in (piece.label, piece.gold_label) if x)
                yield from (tag.label for tag in piece.tags)


def _kinds(page: HtmlPage, name: str) -> set[str]:
    """The kinds that the legend has to explain: those that are shown, and, of a layer that is
    compared, all."""
    kinds = {kind for shown in page.documents for kind in _kinds_of(shown, name)}
    return kinds | ({"agreed", "spurious", "missed"} if name in page.compared else set())


def _kinds_of(shown: ShownDoc, name: str) -> Iterable[str]:
    pieces = [piece for passage in shown.passages for piece in passage.pieces]
    relations = [passage.relations for passage in shown.passages]
    arcs = [
        part.kind
        for drawn in relations
        for picture in drawn.pictures
        for cell in picture.cells
        for part in cell.parts
    ]
    of = {
        "entities": (tag.kind for piece in pieces for tag in piece.tags),
        "types": (chip.kind for piece in pieces for chip in piece.types),
        "relations": [*arcs, *(line.kind for drawn in relations for line in drawn.lines)],
        "links": (link.kind for passage in shown.passages for link in passage.links),
        "answers": (question.kind for question in shown.questions),
    }
    return of[name]


def _counted(errors: dict[str, int]) -> str:
    """Example: "2 entities, 1 link"."""
    singular = {"entities": "entity"}
    return ", ".join(
        f"{n} {singular.get(name, name[:-1]) if n == 1 else name}" for name, n in errors.items()
    )


def _percent(value: float | None) -> str:
    return "\N{EN DASH}" if value is None else f"{100 * value:.1f}"
