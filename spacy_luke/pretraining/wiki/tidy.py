"""The last pass: what holes leave behind is mended, and the offsets of links move with the text."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from .tags import BREAK, HOLE

_PAUSES = " ,;:،、；，؛"
_NEEDED = re.compile(f"[{HOLE}{BREAK}]|  ")
_PLACES = re.compile(
    f"(?P<hole>[{_PAUSES}]{{0,8}}{HOLE}[{_PAUSES}{HOLE}]*)|(?P<line> *{BREAK}[ *#:;{BREAK}]*)|  +"
)
_OPENING, _CLOSING = "([（「『", ")]）」』"
_STOPS = frozenset(".,;:!?…。")
_NO_SPACE_BEFORE = frozenset("”»")


class Link(NamedTuple):
    """Characters start to end of a text are the anchor of a link to the article ``target``."""

    start: int
    end: int
    target: str


class Edit(NamedTuple):
    """Characters start to end become ``new``."""

    start: int
    end: int
    new: str


def tidy(text: str, links: list[Link]) -> tuple[str, list[Link], int]:
    """Text without marks, doubled spaces, empty brackets and spaces before punctuation.

    Only what stands beside a hole is judged: brackets that the author left empty stay.
    Returns: the text, the links at their new places without white space at their ends, and the
        number of links of whose anchor nothing is left.
    """
    if _NEEDED.search(text) is not None:
        edits: list[Edit] = []
        for match in _PLACES.finditer(text):
            start, end, new = _mended(match)  # it may begin before the match, at its spaces
            while edits and edits[-1].start >= start:
                edits.pop()
            if edits and start <= edits[-1].end:
                start = edits[-1].end
                if not new and edits[-1].new.endswith(" ") and text[end : end + 1] == " ":
                    end += 1  # one space is enough, and it is there already
            edits.append(Edit(start, end, new))
        text, links = apply(text, links, edits)
    stripped = text.lstrip()
    left = len(text) - len(stripped)
    found = []
    for link in links:
        start, end, target = link
        if not left and start < end and not (text[start].isspace() or text[end - 1].isspace()):
            found.append(link)
            continue
        while end > start and text[end - 1].isspace():
            end -= 1
        while start < end and text[start].isspace():
            start += 1
        if start < end:
            found.append(Link(start - left, end - left, target))
    return stripped.rstrip(), found, len(links) - len(found)


def apply(text: str, links: Iterable[Link], edits: Iterable[Edit]) -> tuple[str, list[Link]]:
    """Text and links after edits that do not overlap; both in the order of the text.

    An anchor keeps what of it is left: a new string belongs to no anchor that ends or begins
    within what it replaces.
    """
    out: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    spans = [(link.start, link.end) for link in links]
    first = last = 0  # the next start and the next end to be moved
    at = moved = 0
    for edit in edits:
        while first < len(spans) and spans[first][0] < edit.end:
            start = spans[first][0]
            starts.append(
                start + moved if start < edit.start else edit.start + moved + len(edit.new)
            )
            first += 1
        while last < len(spans) and spans[last][1] < edit.end:
            ends.append(min(spans[last][1], edit.start) + moved)
            last += 1
        out += (text[at : edit.start], edit.new)
        at = edit.end
        moved += len(edit.new) - (edit.end - edit.start)
    out.append(text[at:])
    starts += [start + moved for start, _ in spans[first:]]
    ends += [end + moved for _, end in spans[last:]]
    links = [Link(start, end, link.target) for start, end, link in zip(starts, ends, links)]
    return "".join(out), links


def _mended(match: re.Match[str]) -> Edit:
    start, end = match.span()
    if match["line"] is not None:
        return Edit(start, end, "\n")
    if match["hole"] is None:
        return Edit(start, end, " ")
    text = match.string
    before = text[start - 1] if start else ""
    after = text[end] if end < len(text) else ""
    opens, closes = before != "" and before in _OPENING, after != "" and after in _CLOSING
    if opens and closes:
        start, end = start - 1, end + 1
        while start and text[start - 1] == " ":
            start -= 1
        return Edit(start, end, "")
    if opens or closes:
        return Edit(start, end, "")
    left, _, right = match[0].partition(HOLE)
    right = right.rpartition(HOLE)[2]
    return Edit(start, end, _pause(left, right, before, after))


def _pause(left: str, right: str, before: str, after: str) -> str:
    """What stays of the spaces and commas on both sides of a hole."""
    if not before or after in _STOPS:
        return ""
    if not after or after == BREAK:
        return left.rstrip() if left.rstrip().endswith((":", "：")) else ""
    spaced = left.endswith(" ") or right.endswith(" ")
    if left.strip():
        return left.rstrip() + (" " if spaced else "")
    if right.strip():
        french = not left and right.lstrip()[0] in ";:"  # these have a space before them
        return right if french else right.lstrip()
    return " " if spaced and after not in _NO_SPACE_BEFORE else ""
