"""The last pass: clean up around holes, and adjust the offsets of links."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from .html_tags import BREAK, HOLE

_PAUSES = " ,;:،、；，؛"
_NEEDED = re.compile(f"[{HOLE}{BREAK}]|  ")
_PLACES = re.compile(
    f"(?P<hole>[{_PAUSES}]{{0,8}}{HOLE}[{_PAUSES}{HOLE}]*)|(?P<line> *{BREAK}[ *#:;{BREAK}]*)|  +"
)
_OPENING, _CLOSING = "([（「『", ")]）」』"
_STOPS = frozenset(".,;:!?…。")
_NO_SPACE_BEFORE = frozenset("”»")


class Link(NamedTuple):
    """A link to the article ``target``. Its anchor is the characters [start, end)."""

    start: int
    end: int
    target: str


class Edit(NamedTuple):
    """Replace the characters [start, end) by ``new``."""

    start: int
    end: int
    new: str


def tidy(text: str, links: list[Link]) -> tuple[str, list[Link], int]:
    """Remove marks, double spaces, and empty brackets and spaces before punctuation beside holes.

    Empty brackets in the original text are kept. Returns the text, the links with adjusted offsets
    and trimmed anchors, and the number of links whose anchor is now empty.
    """
    if _NEEDED.search(text) is not None:
        edits: list[Edit] = []
        for match in _PLACES.finditer(text):
            start, end, new = _edit(match)  # may start before the match, with spaces
            while edits and edits[-1].start >= start:
                edits.pop()
            if edits and start <= edits[-1].end:
                start = edits[-1].end
                if not new and edits[-1].new.endswith(" ") and text[end : end + 1] == " ":
                    end += 1  # do not keep a second space
            edits.append(Edit(start, end, new))
        text, links = apply(text, links, edits)
    stripped = text.lstrip()
    shift = len(text) - len(stripped)
    kept = []
    for link in links:
        start, end, target = link
        if not shift and start < end and not (text[start].isspace() or text[end - 1].isspace()):
            kept.append(link)
            continue
        while end > start and text[end - 1].isspace():
            end -= 1
        while start < end and text[start].isspace():
            start += 1
        if start < end:
            kept.append(Link(start - shift, end - shift, target))
    return stripped.rstrip(), kept, len(links) - len(kept)


def apply(text: str, links: Iterable[Link], edits: Iterable[Edit]) -> tuple[str, list[Link]]:
    """Apply edits that do not overlap. links, edits: in text order.

    An anchor that partly overlaps an edit loses the overlapping part and does not get new text.

    Example: replacing [2, 4) by "-" in "abcdef" changes an anchor [3, 6) into [3, 5) of "ab-ef".
    """
    out: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    spans = [(link.start, link.end) for link in links]
    first = last = 0  # indices of the next start and the next end to adjust
    position = shift = 0
    for edit in edits:
        while first < len(spans) and spans[first][0] < edit.end:
            start = spans[first][0]
            starts.append(
                start + shift if start < edit.start else edit.start + shift + len(edit.new)
            )
            first += 1
        while last < len(spans) and spans[last][1] < edit.end:
            ends.append(min(spans[last][1], edit.start) + shift)
            last += 1
        out += (text[position : edit.start], edit.new)
        position = edit.end
        shift += len(edit.new) - (edit.end - edit.start)
    out.append(text[position:])
    starts += [start + shift for start, _ in spans[first:]]
    ends += [end + shift for _, end in spans[last:]]
    links = [Link(start, end, link.target) for start, end, link in zip(starts, ends, links)]
    return "".join(out), links


def _edit(match: re.Match[str]) -> Edit:
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
    """The spaces and punctuation to keep from both sides of a hole."""
    if not before or after in _STOPS:
        return ""
    if not after or after == BREAK:
        return left.rstrip() if left.rstrip().endswith((":", "：")) else ""
    spaced = left.endswith(" ") or right.endswith(" ")
    if left.strip():
        return left.rstrip() + (" " if spaced else "")
    if right.strip():
        french = not left and right.lstrip()[0] in ";:"  # written with a space before it
        return right if french else right.lstrip()
    return " " if spaced and after not in _NO_SPACE_BEFORE else ""
