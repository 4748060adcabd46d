"""A long document in passages, each with its text, and its relations and links below it."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from spacy.attrs import ENT_IOB
from spacy.tokens import Doc

from .links import ShownLink
from .pictures import Drawn
from .text import Piece

SHORT = 500
"""Tokens of a document that is shown as one passage."""
LEAST, MOST = 150, 300
"""Tokens of a passage of a longer one: it ends with the first sentence, or else line, after the
least, and with any word that is not in an entity after the most."""
WRONG = ("spurious", "missed")
"""Kinds of errors."""


@dataclass
class Passage:
    """A part of a document. end: its last character, exclusive."""

    end: int
    pieces: list[Piece] = field(default_factory=list)
    relations: Drawn = field(default_factory=lambda: Drawn([], []))
    links: list[ShownLink] = field(default_factory=list)

    @property
    def errors(self) -> dict[str, int]:
        """What differs from the annotation -> how often."""
        return {
            "entities": sum(tag.kind in WRONG for piece in self.pieces for tag in piece.tags),
            "types": sum(chip.kind in WRONG for piece in self.pieces for chip in piece.types),
            "relations": self.relations.n_errors,
            "links": sum(link.kind in WRONG for link in self.links),
        }


def passage_ends(doc: Doc) -> list[int]:
    """The characters at which passages end; the last is the end of the text."""
    ends = []
    if len(doc) > SHORT:
        sentences = doc.has_annotation("SENT_START")
        free = (doc.to_array([ENT_IOB]) != 1).tolist()  # a passage may start here
        start = 0
        for token in doc:
            n = token.i - start
            if n < LEAST or not free[token.i]:
                continue
            ends_line = "\n" in doc[token.i - 1].text
            if n >= MOST or (token.is_sent_start if sentences else ends_line):
                ends.append(token.idx)
                start = token.i
    return [*ends, len(doc.text)]


def make_passages(
    ends: Sequence[int], pieces: Iterable[Piece], relations: Drawn, links: Iterable[ShownLink]
) -> list[Passage]:
    """Divide what is shown. A picture belongs to the passage in which its sentences end.

    pieces: of the whole text, cut at the ends of passages.
    """
    passages = [Passage(end) for end in ends]

    def containing(end: int) -> Passage:
        return passages[min(bisect_left(ends, end), len(passages) - 1)]

    position = 0
    for piece in pieces:
        position += len(piece.text)
        containing(position).pieces.append(piece)
    for picture in relations.pictures:
        containing(picture.end).relations.pictures.append(picture)
    for line in relations.lines:
        containing(line.end).relations.lines.append(line)
    for link in links:
        containing(link.end).links.append(link)
    return passages
