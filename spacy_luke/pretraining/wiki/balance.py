"""The second pass over wikitext: brackets that pair, and what is left out between them.

Templates that carry no text, tables, and links that stand beside the text become HOLEs; brackets
that pair with nothing are taken out. What is left can be parsed line by line, without a parser
that must guess and try again: only what pairs is left to it, and links do not nest. Linear in
the text, whatever is broken in it.
"""

import re
from collections import Counter
from typing import NamedTuple

from .links import BESIDE, resolve
from .sites import Site
from .tags import BREAK, HOLE
from .templates import rule_of

_DEEPEST = 20  # the tokenizer gives up on what nests deeper than 40, links and all
_PARAMETER = re.compile(r"\{\{\{[^{}]*\}\}\}")
_BRACES = re.compile(
    r"\{\{|\}\}|^[ \t:*#]*\{\|(?!\}\})|^[ \t]*\|\}(?!\})|^==[^\n]*==[ \t]*$", re.MULTILINE
)
_NAME = re.compile(r"\s*([^|{}\[\]\n<>]*)")
_LINKS = re.compile(r"\[\[(?!\[)|\]\]|\n(?=[ \t]*\n|==|[*#;:])")
_TARGET = re.compile(r"[^|\[\]\n]*")
_ADDRESSES = re.compile(r"\[\[|\]\]|\[(?=[a-z]*:?//)|\]")
_URL = re.compile(r"\s*(?:[a-z]+:)?//", re.IGNORECASE)


class Hole(NamedTuple):
    """Characters start to end of a text are left out; kind says why."""

    start: int
    end: int
    kind: str


def without_blocks(text: str, dropped: Counter[str]) -> str:
    """The text with templates that carry none, and tables, as HOLEs.

    A heading closes what is open, so that a bracket that is never closed costs its own section at
    most. Of a template or table that is never closed its first line goes; its rows are told by
    their first character later on. Line ends in templates that stay become BREAKs.
    """
    if "{{{" in text:
        text = _PARAMETER.sub(HOLE, text)
    if not any(mark in text for mark in ("{{", "}}", "{|", "|}")):
        return text
    scan = _Blocks(text)
    for match in _BRACES.finditer(text):
        scan.see(match)
    scan.give_up()
    return scan.cut(dropped)


class _Blocks:
    """What is open at a place of the text, and what is to be cut from it.

    holes, kept: in the order in which they end; what a later one encloses is taken off again.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.opened: list[tuple[str, int]] = []
        self.depth = Counter({"{{": 0, "{|": 0})
        self.holes: list[Hole] = []
        self.kept: list[tuple[int, int]] = []

    def see(self, match: re.Match[str]) -> None:
        found = match[0]
        if found == "{{":
            self._open("{{", match.start())
        elif found == "}}":
            if not self.depth["{{"]:
                self.holes.append(Hole(*match.span(), "stray bracket"))
                return
            self.give_up("{{")  # a table that the end of its template closes
            self._close_template(self._pop(), match.end())
        elif found[0] == "=":
            self.give_up()
        elif found.endswith("{|"):
            self._open("{|", match.end() - 2)
        elif self.depth["{|"]:
            self.give_up("{|")
            self._leave_out(Hole(self._pop(), match.end(), "table"))

    def give_up(self, until: str = "") -> None:
        """Whatever is open, up to the innermost bracket ``until``, is never closed."""
        below, end = len(self.text), len(self.text)
        while self.opened and self.opened[-1][0] != until:
            kind = "unclosed template" if self.opened[-1][0] == "{{" else "unclosed table"
            start = self._pop()
            line_end = self.text.find("\n", start, below)  # each part is searched once
            below, end = start, end if line_end < 0 else line_end
            self.holes.append(Hole(start, end, kind))

    def cut(self, dropped: Counter[str]) -> str:
        """The text without its holes; counts them and the links in them."""
        out: list[str] = []
        at = 0
        for start, end in self.kept:  # as long as before, so that holes keep their places
            out += (self.text[at:start], self.text[start:end].replace("\n", BREAK))
            at = end
        text = "".join((*out, self.text[at:]))
        out, at = [], 0
        for start, end, kind in self._outermost():
            out += (text[at:start], HOLE)
            at = end
            dropped[kind] += 1
            dropped[f"link in {kind}"] += text.count("[[", start, end)
        out.append(text[at:])
        return "".join(out)

    def _open(self, kind: str, start: int) -> None:
        self.opened.append((kind, start))
        self.depth[kind] += 1

    def _pop(self) -> int:
        kind, start = self.opened.pop()
        self.depth[kind] -= 1
        return start

    def _close_template(self, start: int, end: int) -> None:
        match = _NAME.match(self.text, start + 2)
        name = match[1] if match is not None else ""
        carries = rule_of(name) or (":" in name and rule_of(name.partition(":")[0]))
        if carries and len(self.opened) >= _DEEPEST:
            self._leave_out(Hole(start, end, "deep template"))
        elif carries:
            while self.kept and self.kept[-1][0] >= start:
                self.kept.pop()
            self.kept.append((start, end))
        else:
            self._leave_out(Hole(start, end, "template"))

    def _leave_out(self, hole: Hole) -> None:
        while self.holes and self.holes[-1].start >= hole.start:
            self.holes.pop()
        while self.kept and self.kept[-1][0] >= hole.start:
            self.kept.pop()
        self.holes.append(hole)

    def _outermost(self) -> list[Hole]:
        """Holes in the order of the text, none in another.

        Where the first line of something never closed ends within a template, both go."""
        found: list[Hole] = []
        spans = [*self.holes, *(Hole(start, end, "") for start, end in self.kept)]
        for hole in sorted(spans):
            if found and hole.start < found[-1].end:
                found[-1] = found[-1]._replace(end=max(found[-1].end, hole.end))
            elif hole.kind:
                found.append(hole)
        return found


class _Edit(NamedTuple):
    """Characters start to end become new; n_links of them are counted as dropped."""

    start: int
    end: int
    new: str
    n_links: int = 0


def without_open_addresses(line: str) -> str:
    """A line without ``[`` before an address where another one comes before the next ``]``."""
    edits: list[_Edit] = []
    opened = -1
    for match in _ADDRESSES.finditer(line):
        if match[0] == "]":
            opened = -1
        elif match[0] == "[":
            if opened >= 0:
                edits.append(_Edit(opened, opened + 1, ""))
            opened = match.start()
    if opened >= 0:
        edits.append(_Edit(opened, opened + 1, ""))
    return _edited(line, edits)


def without_side_links(text: str, site: Site, dropped: Counter[str]) -> str:
    """The text with links to files, categories and other languages as HOLEs.

    Links that stay do not nest: of a link in another the inner one does, as in MediaWiki. Brackets
    that pair with nothing within their paragraph are taken out, and line ends within a link become
    spaces.
    """
    if "[[" not in text and "]]" not in text:
        return text
    scan = _Links(text, site, dropped)
    for match in _LINKS.finditer(text):
        if match[0] == "[[":
            scan.opened.append((match.start(), False))
        elif match[0] == "]]":
            scan.close(match.end())
        else:
            scan.give_up(match.start())
    scan.give_up(len(text))
    return scan.edited()


class _Links:
    """Links that are open at a place of the text, and what is to be changed in it.

    opened: start of each, and whether a link in it stays. edits: in the order in which the links
    end; those in a link that is left out are taken off again.
    """

    def __init__(self, text: str, site: Site, dropped: Counter[str]) -> None:
        self.text, self.site, self.dropped = text, site, dropped
        self.opened: list[tuple[int, bool]] = []
        self.edits: list[_Edit] = []

    def close(self, end: int) -> None:
        if not self.opened:
            self.dropped["stray bracket"] += 1
            self.edits.append(_Edit(end - 2, end, ""))
            return
        start, holds_link = self.opened.pop()
        if self._close(start, end, holds_link) and self.opened:
            self.opened[-1] = (self.opened[-1][0], True)

    def _close(self, start: int, end: int, holds_link: bool) -> bool:
        """Whether the link, or one in it, stays."""
        kind = self._side_kind(start)
        if kind is not None:
            self._leave_out(start, end, kind)
            self.dropped[f"link to {kind}"] += 1
            return False
        if holds_link:
            self.dropped["link around a link"] += 1
            self.edits += [_Edit(start, self._label(start), "", 1), _Edit(end - 2, end, "")]
            return True
        if _URL.match(self.text, start + 2) is not None:
            self.dropped["link to url"] += 1
            self.edits += [_Edit(start, start + 1, "", 1), _Edit(end - 1, end, "")]
            return False
        for line_end in ("\n", BREAK):
            at = self.text.find(line_end, start, end)
            while at >= 0:
                self.edits.append(_Edit(at, at + 1, " "))
                at = self.text.find(line_end, at + 1, end)
        return True

    def give_up(self, end: int) -> None:
        """What its paragraph does not close: the text stays, but a target or file does not."""
        starts = [start for start, _ in self.opened]
        self.opened = []
        self.dropped["unclosed link"] += len(starts)
        for n_before, start in enumerate(starts):
            if self._side_kind(start) == "file":  # with all that follows
                self._leave_out(start, end, "file", n_counted=len(starts) - 1 - n_before)
                starts = starts[:n_before]
                break
        self.edits += [_Edit(start, self._label(start), "", 1) for start in starts]

    def edited(self) -> str:
        return _edited(self.text, self.edits)

    def _side_kind(self, start: int) -> str | None:
        """``file``, ``category`` or ``language`` where the link at start is one of these."""
        match = _TARGET.match(self.text, start + 2)
        if match is None or ":" not in match[0]:
            return None
        kind = resolve(match[0], self.site).kind
        return kind if kind in BESIDE else None

    def _label(self, start: int) -> int:
        """Where what the link at start shows begins: behind its bar, else behind its brackets."""
        match = _TARGET.match(self.text, start + 2)
        bar = start + 2 if match is None else match.end()
        return bar + 1 if self.text.startswith("|", bar) else start + 2

    def _leave_out(self, start: int, end: int, kind: str, n_counted: int = 0) -> None:
        while self.edits and self.edits[-1].start >= start:
            n_counted += self.edits.pop().n_links
        n_links = self.text.count("[[", start, end)
        self.dropped[f"link in {kind}"] += n_links - 1 - n_counted
        self.edits.append(_Edit(start, end, HOLE, n_links))


def _edited(text: str, edits: list[_Edit]) -> str:
    out: list[str] = []
    at = 0
    for start, end, new, _ in sorted(edits):
        out += (text[at:start], new)
        at = end
    out.append(text[at:])
    return "".join(out)
