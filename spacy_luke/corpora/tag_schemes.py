"""Tagging schemes: detect the scheme of a file, and read entities from tags.

Tags are read as by the CoNLL evaluation script, so even a sequence that is invalid in its scheme
has one reading. Each departure from the scheme is returned as a ``Repair``.
"""

from collections.abc import Sequence
from typing import NamedTuple

PREFIXES: dict[str, str] = {"IOB1": "IOB", "IOB2": "IOB", "BILOU": "BILOU", "IOBES": "IOBES"}
# BILOU and IOBES differ only in the letters for the last token and for a single token.
_ROLES = {"O": "O", "B": "B", "I": "I", "L": "E", "E": "E", "U": "S", "S": "S"}

NO_BEGIN = "entities not begun by a B- tag, begun at their first tag"
NO_LAST = "entities without a tag for their last token, ended before the next tag"
NO_NEIGHBOUR = "B- tags not preceded by an entity of the same label, for which IOB1 writes I-"


class Tag(NamedTuple):
    """A tag's prefix letter and its label; the label of ``O`` is empty."""

    prefix: str
    label: str


class TaggedEntity(NamedTuple):
    """Token positions ``start`` to ``end`` (exclusive) of one sentence, and a label."""

    start: int
    end: int
    label: str


class Repair(NamedTuple):
    """A departure from the scheme at a token position, and how it was read."""

    position: int
    what: str


class Detected(NamedTuple):
    """A scheme's name, and a note if the tags fit several schemes or none."""

    scheme: str
    note: str


def parse_tag(cell: str) -> Tag | None:
    """Parse ``O`` or a prefix, ``-`` and a label, as in ``B-person``; None if invalid."""
    if cell == "O":
        return Tag("O", "")
    prefix, dash, label = cell.partition("-")
    if dash and label and prefix in _ROLES and prefix != "O":
        return Tag(prefix, label)
    return None


def read_entities(tags: Sequence[Tag], scheme: str) -> tuple[list[TaggedEntity], list[Repair]]:
    """The non-overlapping entities of one sentence in order, and the repairs.

    ``scheme`` decides only what counts as a repair: entities do not depend on it.
    """
    entities: list[TaggedEntity] = []
    repairs: list[Repair] = []
    ends_marked = scheme in ("BILOU", "IOBES")
    start: int | None = None
    for i, tag in enumerate(tags):
        role = _ROLES[tag.prefix]
        if start is not None and not (role in "IE" and tag.label == tags[start].label):
            entities.append(TaggedEntity(start, i, tags[start].label))
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
            entities.append(TaggedEntity(start, i + 1, tag.label))
            start = None
    if start is not None:
        entities.append(TaggedEntity(start, len(tags), tags[start].label))
        if ends_marked:
            repairs.append(Repair(len(tags) - 1, NO_LAST))
    return entities, repairs


def _touches(entities: list[TaggedEntity], position: int, label: str) -> bool:
    """Whether the last entity ends at ``position`` and has the label."""
    return bool(entities) and entities[-1].end == position and entities[-1].label == label


class SchemeDetector:
    """Collects the tags of a file, sentence by sentence, and detects their scheme."""

    def __init__(self) -> None:
        self.first_line: dict[str, int] = {}
        self._repairs = {"IOB1": 0, "IOB2": 0}

    def add(self, tags: Sequence[Tag], lines: Sequence[int]) -> None:
        """Add one sentence's tags and their line numbers."""
        for tag, line in zip(tags, lines):
            self.first_line.setdefault(tag.prefix, line)
        for scheme in self._repairs:
            self._repairs[scheme] += len(read_entities(tags, scheme)[1])

    def clash(self) -> tuple[str, str] | None:
        """Two prefixes of the file that no scheme combines, or None."""
        for bilou in "LU":
            for iobes in "ES":
                if bilou in self.first_line and iobes in self.first_line:
                    return bilou, iobes
        return None

    def result(self) -> Detected:
        """The detected scheme, or IOB2 with a note if the tags fit several schemes or none."""
        seen = set(self.first_line)
        if seen & set("LU"):
            return Detected("BILOU", "")
        if seen & set("ES"):
            return Detected("IOBES", "")
        iob1, iob2 = self._repairs["IOB1"], self._repairs["IOB2"]
        if not iob1 and not iob2:
            return Detected("IOB2", "the file has no entities, so every scheme fits; read as IOB2")
        if not iob2:
            return Detected("IOB2", "")
        if not iob1:
            return Detected("IOB1", "")
        return Detected(
            "IOB2",
            f"the tags are neither clean IOB2 ({iob2} departures) nor clean IOB1 ({iob1}); "
            "read as IOB2, which gives the same entities",
        )
