"""The second pass over wikitext: match brackets, and remove blocks.

Templates without text, tables, and links to files, categories and languages become HOLEs. Unmatched
brackets are removed. The result can be parsed line by line without backtracking, because all
brackets match and links do not nest. The time is linear in the text, also for broken markup.
"""

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from .html_tags import BREAK, HOLE
from .links import OUTSIDE, resolve
from .sites import Site
from .templates import Rules
from .titles import decoded, normalize_title

_OWN = "own template"
_DEEPEST = 20  # the tokenizer fails at a depth of 40, links included
_PARAMETER = re.compile(r"\{\{\{[^{}]*\}\}\}")
_BRACES = re.compile(
    r"\{\{|\}\}|^[ \t:*#]*\{\|(?!\}\})|^[ \t]*\|\}(?!\})|^==[^\n]*==[ \t]*$", re.MULTILINE
)
_NAME = re.compile(r"\s*([^|{}\[\]\n<>]*)")
_LINKS = re.compile(r"\[\[(?!\[)|\]\]|\n(?=[ \t]*\n|==|[*#;:])")
_TARGET = re.compile(r"[^|\[\]\n]*")
_PREFIXED = re.compile("[:%&]")
"""A colon, or what may stand for one."""
_ADDRESSES = re.compile(r"\[\[|\]\]|\[(?=[a-z]*:?//)|\]")
_URL = re.compile(r"\s*(?:[a-z]+:)?//", re.IGNORECASE)


class Hole(NamedTuple):
    """The characters [start, end) are removed. kind: the reason."""

    start: int
    end: int
    kind: str


class LeftOut(NamedTuple):
    """A template whose text was left out. links, characters: in its markup."""

    template: str
    links: int
    characters: int


@dataclass
class Blocks:
    """What ``without_blocks`` finds.

    dropped: counts by kind. templates: the markup of those that start a line, for example of
    infoboxes, and have no text or are named by the user; not of templates in other templates or in
    tables. left_out: the outermost templates.
    own: those that the user has named whose text is kept.
    """

    dropped: Counter[str] = field(default_factory=Counter)
    templates: list[str] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    own: set[str] = field(default_factory=set)


def without_blocks(text: str, found: Blocks, rules: Rules, keep_tables: bool = False) -> str:
    """Replace tables, and templates without text, by HOLEs. keep_tables: see ``table_text``.

    A heading closes all open brackets, so an unclosed bracket affects at most its section. Of an
    unclosed template or table, the first line is removed; rows are recognised later by their first
    character. Line ends in kept templates become BREAKs.

    Example: ``a {{cite|b}} {{lang|fr|c}}`` becomes ``a HOLE {{lang|fr|c}}``.
    """
    if "{{{" in text:
        text = _PARAMETER.sub(HOLE, text)
    if not any(mark in text for mark in ("{{", "}}", "{|", "|}")):
        return text
    scan = _Blocks(text, rules, keep_tables)
    for match in _BRACES.finditer(text):
        scan.process(match)
    scan.give_up()
    return scan.cut(found)


class _Blocks:
    """Open brackets at the current position, and the edits so far.

    holes, kept: ordered by their ends. Those within a later hole are removed.
    """

    def __init__(self, text: str, rules: Rules, keep_tables: bool) -> None:
        self.text, self.rules, self.keep_tables = text, rules, keep_tables
        self.opened: list[tuple[str, int]] = []
        self.depth = Counter({"{{": 0, "{|": 0})
        self.holes: list[Hole] = []
        self.kept: list[tuple[int, int]] = []

    def process(self, match: re.Match[str]) -> None:
        bracket = match[0]
        if bracket == "{{":
            self._open("{{", match.start())
        elif bracket == "}}":
            if not self.depth["{{"]:
                self.holes.append(Hole(*match.span(), "stray bracket"))
                return
            self.give_up("{{")  # the end of a template closes tables in it
            self._close_template(self._pop(), match.end())
        elif bracket[0] == "=":
            self.give_up()
        elif bracket.endswith("{|"):
            self._open("{|", match.end() - 2)
        elif self.depth["{|"]:
            self.give_up("{|")
            start = self._pop()
            if not self.keep_tables:
                self._leave_out(Hole(start, match.end(), "table"))

    def give_up(self, until: str = "") -> None:
        """Close all open brackets, up to the innermost bracket ``until``, as unclosed."""
        below, end = len(self.text), len(self.text)
        while self.opened and self.opened[-1][0] != until:
            kind = "unclosed template" if self.opened[-1][0] == "{{" else "unclosed table"
            start = self._pop()
            line_end = self.text.find("\n", start, below)  # no part is searched twice
            below, end = start, end if line_end < 0 else line_end
            self.holes.append(Hole(start, end, kind))

    def cut(self, found: Blocks) -> str:
        """The text with holes removed. Counts holes and the links in them. Adds removed templates
        and, of those that start a line, the markup."""
        out: list[str] = []
        position = 0
        for start, end in self.kept:  # same length, so offsets of holes stay valid
            out += (self.text[position:start], self.text[start:end].replace("\n", BREAK))
            position = end
        text = "".join((*out, self.text[position:]))
        out, position = [], 0
        starts_line = True
        for start, end, kind in sorted((*self._outermost(), *self._own_templates())):
            if start < position:  # a template of the user's in a hole
                continue
            before = text[position:start]
            _, line_end, last_line = before.rpartition("\n")
            at_start = not last_line.strip(f" \t{HOLE}") and (starts_line or bool(line_end))
            if at_start and kind in ("template", _OWN):
                markup = self.text if kind == _OWN else text
                found.templates.append(markup[start:end])
            if kind == _OWN:  # its text stays
                continue
            starts_line = at_start
            out += (before, HOLE)
            position = end
            n_links = text.count("[[", start, end)
            if kind == "template":
                found.left_out.append(LeftOut(_template_name(text, start), n_links, end - start))
            found.dropped[kind] += 1
            found.dropped[f"link in {kind}"] += n_links
        out.append(text[position:])
        return "".join(out)

    def _own_templates(self) -> list[Hole]:
        """The templates that the user has named, whose text is kept, and which may have facts."""
        return [
            Hole(start, end, _OWN)
            for start, end in self.kept
            if self.rules.own_key(_template_name(self.text, start)) is not None
        ]

    def _open(self, kind: str, start: int) -> None:
        self.opened.append((kind, start))
        self.depth[kind] += 1

    def _pop(self) -> int:
        kind, start = self.opened.pop()
        self.depth[kind] -= 1
        return start

    def _close_template(self, start: int, end: int) -> None:
        name = _template_name(self.text, start)
        rule_of = self.rules.rule_of
        has_text = rule_of(name) or (":" in name and rule_of(name.partition(":")[0]))
        if has_text and len(self.opened) >= _DEEPEST:
            self._leave_out(Hole(start, end, "deep template"))
        elif has_text:
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
        """Disjoint holes in text order.

        If the first line of an unclosed bracket ends within a kept template, both are removed."""
        outermost: list[Hole] = []
        spans = [*self.holes, *(Hole(start, end, "") for start, end in self.kept)]
        for hole in sorted(spans):
            if outermost and hole.start < outermost[-1].end:
                end = max(outermost[-1].end, hole.end)
                outermost[-1] = outermost[-1]._replace(end=end)
            elif hole.kind:
                outermost.append(hole)
        return outermost


def _template_name(text: str, start: int) -> str:
    match = _NAME.match(text, start + 2)
    return match[1].strip() if match is not None else ""


class _Edit(NamedTuple):
    """Replace the characters [start, end). n_links: links in them that are counted as dropped."""

    start: int
    end: int
    new: str
    n_links: int = 0


def without_open_addresses(line: str) -> str:
    """Remove each ``[`` before an address that has no ``]`` before the next such ``[``."""
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


def without_side_links(text: str, site: Site, dropped: Counter[str], categories: list[str]) -> str:
    """Replace links to files, categories and other languages by HOLEs.

    categories: the names of linked categories are added.

    Of nested links the inner one is kept, as in MediaWiki. Brackets without a match in their
    paragraph are removed. Line ends within a link become spaces.
    """
    if "[[" not in text and "]]" not in text:
        return text
    scan = _Links(text, site, dropped, categories)
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
    """Open links at the current position, and the edits so far.

    opened: (start, whether a link within it is kept). edits: ordered by the ends of the links.
    Those within a removed link are discarded.
    """

    def __init__(self, text: str, site: Site, dropped: Counter[str], categories: list[str]) -> None:
        self.text, self.site, self.dropped, self.categories = text, site, dropped, categories
        self.opened: list[tuple[int, bool]] = []
        self.edits: list[_Edit] = []

    def close(self, end: int) -> None:
        if not self.opened:
            self.dropped["stray bracket"] += 1
            self.edits.append(_Edit(end - 2, end, ""))
            return
        start, contains_link = self.opened.pop()
        if self._close(start, end, contains_link) and self.opened:
            self.opened[-1] = (self.opened[-1][0], True)

    def _close(self, start: int, end: int, contains_link: bool) -> bool:
        """Close a link. Returns whether it, or a link within it, is kept."""
        kind = self._side_kind(start)
        if kind is not None:
            if kind == "category":
                self._add_category(start)
            self._leave_out(start, end, kind)
            self.dropped[f"link to {kind}"] += 1
            return False
        if contains_link:
            self.dropped["link around a link"] += 1
            self.edits += [_Edit(start, self._label(start), "", 1), _Edit(end - 2, end, "")]
            return True
        if _URL.match(self.text, start + 2) is not None:
            self.dropped["link to url"] += 1
            self.edits += [_Edit(start, start + 1, "", 1), _Edit(end - 1, end, "")]
            return False
        for line_end in ("\n", BREAK):
            position = self.text.find(line_end, start, end)
            while position >= 0:
                self.edits.append(_Edit(position, position + 1, " "))
                position = self.text.find(line_end, position + 1, end)
        return True

    def give_up(self, end: int) -> None:
        """Handle links that their paragraph does not close: remove targets and files, keep text."""
        starts = [start for start, _ in self.opened]
        self.opened = []
        self.dropped["unclosed link"] += len(starts)
        for n_before, start in enumerate(starts):
            if self._side_kind(start) == "file":  # and all that follows
                self._leave_out(start, end, "file", n_counted=len(starts) - 1 - n_before)
                starts = starts[:n_before]
                break
        self.edits += [_Edit(start, self._label(start), "", 1) for start in starts]

    def edited(self) -> str:
        return _edited(self.text, self.edits)

    def _side_kind(self, start: int) -> str | None:
        """``file``, ``category`` or ``language`` if the link at start is one of them, else None."""
        match = _TARGET.match(self.text, start + 2)
        if match is None or not _PREFIXED.search(match[0]):
            return None
        kind = resolve(match[0], self.site).kind
        return kind if kind in OUTSIDE else None

    def _add_category(self, start: int) -> None:
        match = _TARGET.match(self.text, start + 2)
        assert match is not None  # it has a kind
        name = decoded(match[0]).partition(":")[2].partition("#")[0]
        title = normalize_title(name.replace(HOLE, ""), self.site.case, self.site.language)
        if title is not None:
            self.categories.append(title)

    def _label(self, start: int) -> int:
        """Start of the text of the link at start: after its bar, else after its brackets."""
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
    position = 0
    for start, end, new, _ in sorted(edits):
        out += (text[position:start], new)
        position = end
    out.append(text[position:])
    return "".join(out)
