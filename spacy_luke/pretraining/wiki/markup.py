"""Convert wikitext to plain text with links at character offsets.

Three linear passes (``html_tags``, ``balance``, ``quotes``) leave only markup that is balanced
within a line. The tokenizer of ``mwparserfromhell`` reads the line, and one loop over its tokens,
with an explicit stack, writes the text. So broken or deeply nested markup takes no longer than
valid markup, and there is no recursion.

Paragraphs are separated by an empty line. Items of a list are lines of one paragraph. Headings are
left out, because they are not sentences and would be joined with the next one. Tables, references,
formulas, galleries, code, and templates not listed in ``templates`` are left out, too.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import unescape
from typing import Any, NamedTuple

from mwparserfromhell.parser import CTokenizer, ParserError, tokens, use_c
from mwparserfromhell.parser.tokenizer import Tokenizer as PythonTokenizer

from .balance import Blocks, LeftOut, without_blocks, without_open_addresses, without_side_links
from .facts import Call, Fact, read_calls
from .html_tags import BREAK, HOLE, without_tags
from .languages import LINK_TRAIL
from .links import ARTICLE, pipe_trick, resolve, shown_target, split_property
from .quotes import without_quotes
from .sites import Site
from .table_text import table_text
from .templates import ARGUMENT, Rules
from .tidy import Link, tidy

# Not ``mwparserfromhell.parse``, which builds a tree of the tokens: on a sample of the English dump
# that made this module a third slower, and a tree needs recursion. The Python tokenizer gives the
# same tokens as the C tokenizer, but slowly.
Tokenizer = CTokenizer if use_c else PythonTokenizer

__all__ = ["Fact", "Link", "Parsed", "parse"]

_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufeff\u200e\u200f\u00ad]")
_ENTITY = re.compile(r"&(?:[a-zA-Z][a-zA-Z0-9]*|#[0-9]{1,9}|#[xX][0-9a-fA-F]{1,8});")
_MARKUP = frozenset("[]{}'|<>&=:*#;_-/!\n")
_BAR = "{{!}}"
_NESTING = re.compile(r"\{\{!\}\}|\{\{|\}\}|\[\[|\]\]")
_OPENING = {"}}": "{{", "]]": "[["}
_SWITCH = re.compile(r"__[^\W_]+(?:_[^\W_]+)*__")
_HEADING = re.compile(r"(={1,6})[^=].*\1[ \t\x02]*$")
_ITEM = re.compile(r"[*#:;]+[ \t\x02]*")
_MARKED = re.compile(r"[\[\]{}&]|//|''")
_WORD = re.compile(r"\w")
_CRUDE = re.compile(r"\[\[(?:[^\[\]|]*\|)?|\]\]|\{\{[^{}]*\}\}|\{\{|\}\}|&[#\w]+;")
_ADDRESS = re.compile(r"(?<!\[)\[[a-z]*:?//")
# Brackets beside those of a link are text: [[[Rome]]]. As in MediaWiki, the first of three that
# close is in the link's text if a bracket is open there, which is not that of an address.
_MORE_OPEN, _MORE_CLOSED = re.compile(r"\[{3,}"), re.compile(r"\]{3,}")
_BRACKET_AT_END = re.compile(
    r"(\[\[[^\[\]|]*\|(?:[^\[\]]|\[[^\[\]]*\](?!\]))*\[(?!\w*:?//|mailto:)[^\[\]]*)\]\]\]"
)
_RESIDUE = re.compile(r"\[\[|\]\]|\{\{|\}\}")


@dataclass
class Parsed:
    """The text of a page.

    text: plain text.
    links: to articles, in text order, without overlap. The anchor of a link is ``text[start:end]``.
    facts: the fields of templates, in text order; see ``facts``.
    categories: names, in text order, each once. Those that templates add are unknown.
    left_out: the outermost templates whose text was left out.
    own: the templates that the user has named whose text is in the page's.
    dropped: counts by kind. ``link to KIND``: not an entity; its text is kept, except for files,
        categories and languages. ``link in KIND``: within something that was left out.
    """

    text: str
    links: list[Link] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    categories: list[str] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    own: set[str] = field(default_factory=set)
    dropped: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class MarkupSettings:
    """What is kept beside sentences.

    tables: whether the text of tables is kept. templates: casefolded name of a template -> its
    argument that is text.
    """

    tables: bool = False
    templates: Mapping[str, str] = field(default_factory=dict)


def parse(
    text: str,
    site: Site | None = None,
    page: str = "",
    settings: MarkupSettings = MarkupSettings(),
) -> Parsed:
    """The plain text, the links, and the facts of a page.

    text: wikitext of any length, valid or not. site: names of the wiki; defaults to those that all
        wikis have. page: the title, which subpages are relative to.
    """
    site = Site() if site is None else site
    dropped: Counter[str] = Counter()
    text = _CONTROLS.sub("", text.replace("\r\n", "\n").replace("\u00a0", " "))
    text = without_tags(text, dropped, settings.tables)
    if "&" in text:
        text = _ENTITY.sub(_plain_character, text)
    rules = Rules(site.language, settings.templates, site.template_prefixes)
    context = _Context(site, page, rules, settings.tables)
    found = Blocks(dropped)
    categories: list[str] = []
    plain_text, links = _plain(text, context, found, categories)
    facts = [
        _fact(call, name, value, context)
        for call in read_calls(found.templates, site)
        for name, value in call.fields.items()
    ]
    categories = list(dict.fromkeys(categories))
    return Parsed(plain_text, links, facts, categories, found.left_out, found.own, +dropped)


class _Context(NamedTuple):
    """What the text of a page depends on. page: its title."""

    site: Site
    page: str
    rules: Rules
    keep_tables: bool


def _fact(call: Call, name: str, value: str, context: _Context) -> Fact:
    text, links = _plain(value, context, Blocks(), [])
    targets = list(dict.fromkeys(link.target for link in links))
    markup = value.replace(HOLE, "").replace(BREAK, "\n").strip()
    return Fact(call.template, call.number, name, text, markup, targets)


def _plain(
    text: str, context: _Context, found: Blocks, categories: list[str]
) -> tuple[str, list[Link]]:
    """The text and the links of markup without tags. categories: see ``balance``."""
    text = _with_bars(without_blocks(text, found, context.rules, context.keep_tables))
    text = without_side_links(text, context.site, found.dropped, categories)
    if context.keep_tables and "{|" in text:
        text = table_text(text)
    if "__" in text:
        text = _SWITCH.sub(_without_switch, text)
    writer = _Writer(context, found)
    paragraphs = _Paragraphs()
    for line in text.split("\n"):
        _read_line(line, writer, paragraphs, found.dropped)
    return paragraphs.finish()


def _with_bars(text: str) -> str:
    """Write ``{{!}}`` as a bar. In an argument of a template, where a bar would begin another, it
    becomes an HTML entity. text: brackets of templates match."""
    if _BAR not in text:
        return text
    out, position = [], 0
    opened: list[str] = []
    for match in _NESTING.finditer(text):
        mark = match[0]
        if mark == _BAR:
            in_argument = bool(opened) and opened[-1] == "{{"
            out += [text[position : match.start()], "&#124;" if in_argument else "|"]
            position = match.end()
        elif mark in ("{{", "[["):
            opened.append(mark)
        elif opened and opened[-1] == _OPENING[mark]:
            opened.pop()
        elif mark == "}}" and "{{" in opened:  # behind a link that is not closed
            del opened[len(opened) - 1 - opened[::-1].index("{{") :]
    return "".join((*out, text[position:]))


_LONGEST_ENTITY = 40
"""A longer one is text: Python reads no number of thousands of digits."""


def _plain_character(match: re.Match[str]) -> str:
    """The character of an HTML entity. Characters that are markup stay entities."""
    character = _character(match[0])
    return match[0] if character in _MARKUP or character.startswith("&") else character


def _character(entity: str) -> str:
    character = unescape(entity) if len(entity) < _LONGEST_ENTITY else entity
    if character.isspace():
        return " "
    return "" if _CONTROLS.search(character) is not None or character == "\u200b" else character


def _without_switch(match: re.Match[str]) -> str:
    return HOLE if match[0].upper() == match[0] else match[0]


def _read_line(
    line: str, writer: "_Writer", paragraphs: "_Paragraphs", dropped: Counter[str]
) -> None:
    bare = line.lstrip(f" \t{HOLE}{BREAK}")
    starts_with_hole = HOLE in line[: len(line) - len(bare)]
    line = bare.rstrip(f" \t{BREAK}")
    if not line.strip(f" {HOLE}"):
        paragraphs.end()
        return
    first = line[0]
    if first == "=" and _HEADING.match(line) is not None:
        dropped["heading"] += 1
        dropped["link in heading"] += line.count("[[")
        paragraphs.end()
        return
    if first == "|" or line.startswith("{|") or (first == "!" and dropped["unclosed table"]):
        dropped["table row"] += 1
        dropped["link in table row"] += line.count("[[")
        paragraphs.end()
        return
    if line.startswith("----"):
        line = line.lstrip("-")
        paragraphs.end()
    item = _ITEM.match(line)
    if item is not None:
        line = line[item.end() :]
        starts_with_hole = starts_with_hole or HOLE in item[0]
    text, links = writer.write(HOLE + line if starts_with_hole else line)
    text, links, n_empty = tidy(text, links)
    dropped["link without text"] += n_empty
    if _WORD.search(text) is None:
        dropped["line without words"] += bool(text)
        dropped["link without text"] += len(links)
        return
    paragraphs.add(text, links, item is not None)


class _Paragraphs:
    """Joins lines to paragraphs, and paragraphs to the text."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.links: list[Link] = []
        self.length = 0
        self.previous: str | None = None  # kind of the previous line: "text", "item" or None

    def add(self, text: str, links: list[Link], is_item: bool) -> None:
        kind = "item" if is_item else "text"
        if self.parts:
            separator = "\n\n" if self.previous != kind else ("\n" if is_item else " ")
            self.parts.append(separator)
            self.length += len(separator)
        shift = self.length
        self.links += [Link(start + shift, end + shift, target) for start, end, target in links]
        self.parts.append(text)
        self.length += len(text)
        self.previous = kind

    def end(self) -> None:
        self.previous = None

    def finish(self) -> tuple[str, list[Link]]:
        return "".join(self.parts), self.links


class _Frame:
    """The state of an open bracket.

    parts, size, links: of the current argument. title: of a link, after its bar.
    key: of a template, the name of the current argument. given: name -> (text, links) of the
    arguments before it. trail: whether the last part is a link, which following letters extend.
    """

    __slots__ = ("parts", "size", "links", "title", "key", "given", "n_positional", "trail")

    def __init__(self) -> None:
        self.title: str | None = None
        self.key: str | None = None
        self.n_positional = 0
        self.given: dict[str, tuple[str, list[Link]]] = {}
        self.parts: list[str] = []
        self.links: list[Link] = []
        self.size = 0
        self.trail = False

    def take(self) -> tuple[str, list[Link]]:
        """Return the current argument and start the next one."""
        taken = ("".join(self.parts), self.links)
        self.parts, self.links, self.size = [], [], 0
        self.trail = False
        return taken

    def add(self, text: str, links: Sequence[Link] = ()) -> None:
        if links:
            shift = self.size
            self.links += [Link(start + shift, end + shift, target) for start, end, target in links]
        self.parts.append(text)
        self.size += len(text)
        self.trail = False


class _Writer:
    """Converts a line of markup to text: a loop over tokens, with a stack of open brackets."""

    def __init__(self, context: _Context, found: Blocks) -> None:
        self.site, self.page, self.rules, _ = context
        self.dropped, self.own = found.dropped, found.own
        self.tokenizer: Any = Tokenizer()
        self.frames: list[_Frame] = []
        self.targets: dict[str, tuple[str, str]] = {}

    def write(self, line: str) -> tuple[str, list[Link]]:
        """Returns the text, with HOLEs and BREAKs, and its links."""
        if "''" in line:
            line = without_quotes(line)
        if _MARKED.search(line) is None:
            return line, []
        if "]]]" in line:
            line = _BRACKET_AT_END.sub(r"\1&#93;]]", line)
        if "[[[" in line:
            line = _MORE_OPEN.sub(lambda found: "&#91;" * (len(found[0]) - 2) + "[[", line)
            line = _MORE_CLOSED.sub(lambda found: "]]" + "&#93;" * (len(found[0]) - 2), line)
        if _ADDRESS.search(line) is not None:
            line = without_open_addresses(line)
        if line[0] in "#*:;=-":
            # What is left of an item or a cell is no item, heading or rule of its own.
            line = f"&#{ord(line[0])};{line[1:]}"
        self.frames = [_Frame()]
        try:
            line_tokens = self.tokenizer.tokenize(line, 0, True)
        except (ParserError, RecursionError):  # has happened with unusual lines
            self.dropped["unparsed line"] += 1
            return _CRUDE.sub(HOLE, line), []
        entity: list[str] = []
        for token in line_tokens:
            kind = type(token)
            if entity:
                if kind is tokens.HTMLEntityEnd:
                    self._add(_character("".join((*entity, ";"))))
                    entity = []
                else:
                    entity.append(_ENTITY_PARTS.get(kind) or token["text"])
            elif kind is tokens.Text:
                self._text(token["text"])
            elif kind is tokens.HTMLEntityStart:
                entity = ["&"]
            else:
                handle = _HANDLERS.get(kind)
                if handle is not None:
                    handle(self)
        return self.frames[0].take()

    def _add(self, text: str) -> None:
        self.frames[-1].add(text)

    def _text(self, text: str) -> None:
        frame = self.frames[-1]
        if "[[" in text or "]]" in text or "{{" in text or "}}" in text:
            text, count = _RESIDUE.subn(HOLE, text)
            self.dropped["residue"] += count
        if frame.trail:
            trail = LINK_TRAIL.match(text)
            if trail is not None:
                link = frame.links[-1]
                frame.links[-1] = link._replace(end=link.end + trail.end())
        frame.add(text)

    def _open(self) -> None:
        self.frames.append(_Frame())

    def _shut(self) -> None:
        """Close a template parameter: it has no text."""
        self.frames.pop()
        self._add(HOLE)

    def _link_bar(self) -> None:
        frame = self.frames[-1]
        frame.title = frame.take()[0]

    def _close_link(self) -> None:
        frame = self.frames.pop()
        shown, inner = frame.take()
        raw = shown if frame.title is None else frame.title
        if raw not in self.targets:
            target = raw.replace(HOLE, "").replace(BREAK, " ")
            self.targets[raw] = resolve(target, self.site, self.page)
        kind, title = self.targets[raw]
        if frame.title is None:
            shown = shown_target(shown, self.site, self.page)
        elif not shown.strip() and split_property(raw, self.site)[0]:
            shown = ""  # this is how a property is set without a text
        elif not shown.strip(f" {HOLE}{BREAK}"):
            shown = pipe_trick(raw.replace(HOLE, ""))
        outer = self.frames[-1]
        if kind != ARTICLE:
            self.dropped[f"link to {kind}"] += 1
            outer.add(shown, inner)
        elif inner:  # of nested links, the inner one is kept
            self.dropped["link around a link"] += 1
            outer.add(shown, inner)
        else:
            start = outer.size
            outer.links.append(Link(start, start + len(shown), title))
            outer.parts.append(shown)
            outer.size = start + len(shown)
            outer.trail = True

    def _template_bar(self) -> None:
        frame = self.frames[-1]
        argument = frame.take()
        if frame.title is None:
            frame.title = argument[0]
            return
        if frame.key is None:
            frame.n_positional += 1
            frame.key = str(frame.n_positional)
        frame.given[frame.key] = argument
        frame.key = None

    def _argument_key(self) -> None:
        frame = self.frames[-1]
        frame.key = frame.take()[0].strip()

    def _close_template(self) -> None:
        self._template_bar()
        frame = self.frames.pop()
        name = (frame.title or "").replace(HOLE, "")
        rule = self.rules.rule_of(name)
        if rule is None and ":" in name:
            name, _, value = name.partition(":")
            rule = self.rules.rule_of(name)
            frame.given = {"1": (value, []), **frame.given}
        outer = self.frames[-1]
        given = {key: text for key, (text, _) in frame.given.items()}
        shown = rule(name, given) if rule is not None else []
        used = {part[1:] for part in shown if part.startswith(ARGUMENT)}
        n_hidden = sum(len(links) for key, (_, links) in frame.given.items() if key not in used)
        self.dropped["link in template"] += n_hidden
        if not shown:
            self.dropped["template"] += 1
            outer.add(HOLE)
        elif (key := self.rules.own_key(name)) is not None:
            self.own.add(key)
        for part in shown:
            if part.startswith(ARGUMENT):
                text, links = frame.given[part[1:]]
                shift = len(text) - len(text.lstrip(" "))
                text = text.strip(" ")
                moved = (Link(max(a - shift, 0), min(b - shift, len(text)), t) for a, b, t in links)
                outer.add(text, list(moved))
            else:
                outer.add(part)

    def _address_bar(self) -> None:
        frame = self.frames[-1]
        frame.title = frame.take()[0]

    def _close_address(self) -> None:
        frame = self.frames.pop()
        self.dropped["external link"] += 1
        shown = frame.take()
        outer = self.frames[-1]
        if frame.title is None:
            outer.add(HOLE)
        else:
            outer.add(*shown)


_ENTITY_PARTS = {tokens.HTMLEntityNumeric: "#", tokens.HTMLEntityHex: "x"}
_HANDLERS: dict[type, Callable[[_Writer], None]] = {
    tokens.WikilinkOpen: _Writer._open,
    tokens.WikilinkSeparator: _Writer._link_bar,
    tokens.WikilinkClose: _Writer._close_link,
    tokens.TemplateOpen: _Writer._open,
    tokens.TemplateParamSeparator: _Writer._template_bar,
    tokens.TemplateParamEquals: _Writer._argument_key,
    tokens.TemplateClose: _Writer._close_template,
    tokens.ExternalLinkOpen: _Writer._open,
    tokens.ExternalLinkSeparator: _Writer._address_bar,
    tokens.ExternalLinkClose: _Writer._close_address,
    tokens.ArgumentOpen: _Writer._open,
    tokens.ArgumentClose: _Writer._shut,
}
