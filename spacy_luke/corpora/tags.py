"""Tagging schemes: telling them apart and reading entities from tags.

Tags are read as the CoNLL evaluation script does, so a sequence that its scheme forbids still
has one reading; each departure from the scheme is handed back for counting.
"""

from collections.abc import Sequence
from typing import NamedTuple

PREFIXES: dict[str, str] = {"IOB1": "IOB", "IOB2": "IOB", "BILOU": "BILOU", "IOBES": "IOBES"}
# BILOU and IOBES differ in the letters for "last" and "only" alone.
_ROLES = {"O": "O", "B": "B", "I": "I", "L": "E", "E": "E", "U": "S", "S": "S"}

NO_BEGIN = "entities not begun by a B- tag, begun at their first tag"
NO_LAST = "entities without a tag for their last token, ended before the next tag"
NO_NEIGHBOUR = "B- tags with no entity of the label before them, where IOB1 writes I-"


class Tag(NamedTuple):
    """A tag's prefix letter and its label; the label of ``O`` is empty."""

    prefix: str
    label: str


class Entity(NamedTuple):
    """Token positions ``start`` to ``end`` (exclusive) of one sentence, and a label."""

    start: int
    end: int
    label: str


class Repair(NamedTuple):
    """A departure from the scheme at a token position, and how it was read."""

    position: int
    what: str


class Detected(NamedTuple):
    """A scheme's name, and a note where the tags do not settle it."""

    scheme: str
    note: str


def parse_tag(cell: str) -> Tag | None:
    """The tag in a cell, or None where it is neither ``O`` nor a prefix, ``-`` and a label."""
    if cell == "O":
        return Tag("O", "")
    prefix, dash, label = cell.partition("-")
    if dash and label and prefix in _ROLES and prefix != "O":
        return Tag(prefix, label)
    return None


def read_entities(tags: Sequence[Tag], scheme: str) -> tuple[list[Entity], list[Repair]]:
    """Entities of one sentence, in order and without overlap, with the repairs made.

    ``scheme`` decides what counts as a repair, never where an entity lies.
    """
    entities: list[Entity] = []
    repairs: list[Repair] = []
    ends_marked = scheme in ("BILOU", "IOBES")
    start: int | None = None
    for i, tag in enumerate(tags):
        role = _ROLES[tag.prefix]
        if start is not None and not (role in "IE" and tag.label == tags[start].label):
            entities.append(Entity(start, i, tags[start].label))
            start = None
            if ends_marked:
                repairs.append(Repair(i - 1, NO_LAST))
        if start is None and role != "O":
            start = i
            if role in "IE" and scheme != "IOB1":
                repairs.append(Repair(i, NO_BEGIN))
            if role == "B" and scheme == "IOB1" and not _touches(entities, i, tag.label):
                repairs.append(Repair(i, NO_NEIGHBOUR))
        if start is not None and role in "ES":
            entities.append(Entity(start, i + 1, tag.label))
            start = None
    if start is not None:
        entities.append(Entity(start, len(tags), tags[start].label))
        if ends_marked:
            repairs.append(Repair(len(tags) - 1, NO_LAST))
    return entities, repairs


def _touches(entities: list[Entity], position: int, label: str) -> bool:
    """Whether the last entity ends at ``position`` and has the label."""
    return bool(entities) and entities[-1].end == position and entities[-1].label == label


class SchemeDetector:
    """Sees the tags of a file sentence by sentence, then names their scheme."""

    def __init__(self) -> None:
        self.first_line: dict[str, int] = {}
        self._repairs = {"IOB1": 0, "IOB2": 0}

    def add(self, tags: Sequence[Tag], lines: Sequence[int]) -> None:
        """Take one sentence's tags and the lines that they stand on."""
        for tag, line in zip(tags, lines):
            self.first_line.setdefault(tag.prefix, line)
        for scheme in self._repairs:
            self._repairs[scheme] += len(read_entities(tags, scheme)[1])

    def clash(self) -> tuple[str, str] | None:
        """Two prefixes seen that no scheme has together, or None."""
        for bilou in "LU":
            for iobes in "ES":
                if bilou in self.first_line and iobes in self.first_line:
                    return bilou, iobes
        return None

    def result(self) -> Detected:
        """The scheme; IOB2 with a note where the tags do not settle it."""
        seen = set(self.first_line)
        if seen & set("LU"):
            return Detected("BILOU", "")
        if seen & set("ES"):
            return Detected("IOBES", "")
        iob1, iob2 = self._repairs["IOB1"], self._repairs["IOB2"]
        if not iob1 and not iob2:
            return Detected("IOB2", "no entity in the file, so every scheme fits; read as IOB2")
        if not iob2:
            return Detected("IOB2", "")
        if not iob1:
            return Detected("IOB1", "")
        return Detected(
            "IOB2",
            f"the tags are neither clean IOB2 ({iob2} departures) nor clean IOB1 ({iob1}); "
            "read as IOB2, which gives the same entities",
        )
