"""Fields of templates such as infoboxes.

A template has facts if it starts a line and has two or more named fields that are not empty. So
infoboxes of every language and wiki do, whatever they are called, and citations in a sentence or a
list do not. Which templates matter is for the user to choose, by their names.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from .html_tags import BREAK, HOLE
from .languages import TEMPLATE
from .sites import Site
from .titles import normalize_title

_MIN_FIELDS = 2
_MARKS = re.compile(
    r"\{\{|\}\}|\[\[|\]\]|^[ \t:*#]*\{\|(?!\}\})|^[ \t]*\|\}(?!\})|\||=|\n", re.MULTILINE
)


class Fact(NamedTuple):
    """A field of a template.

    template: name, as a title. number: of the template's uses on the page, from 0.
    value: plain text; empty if it consists of templates that are left out.
    markup: the value as it is written, without comments, references and HTML tags.
    targets: titles of linked articles, each once, with redirects unresolved.
    """

    template: str
    number: int
    field: str
    value: str
    markup: str
    targets: list[str]


class Call(NamedTuple):
    """A template with its named fields: name -> markup. number: as in ``Fact``."""

    template: str
    number: int
    fields: dict[str, str]


def read_calls(templates: Iterable[str], site: Site) -> Iterator[Call]:
    """The templates that have facts. templates: the markup of templates without tags."""
    numbers: Counter[str] = Counter()
    for markup in templates:
        (_, name), *arguments = _split(markup)
        template = _template_name(name, site)
        fields = _named(arguments)
        if template and len(fields) >= _MIN_FIELDS:
            yield Call(template, numbers[template], fields)
            numbers[template] += 1


def _template_name(markup: str, site: Site) -> str:
    """The title of a template without its namespace; empty for parser functions."""
    name = markup.replace(HOLE, "").replace(BREAK, " ").strip()
    if site.namespace(name) == TEMPLATE:
        name = name.partition(":")[2]
    if name.startswith("#"):
        return ""
    return normalize_title(name, site.case, site.language) or ""


def _named(arguments: Iterable[tuple[str | None, str]]) -> dict[str, str]:
    """Named arguments that are not empty. Of two with one name the last one counts."""
    fields: dict[str, str] = {}
    for key, value in arguments:
        name = (key or "").replace(HOLE, "").replace(BREAK, " ").strip()
        if name:
            fields.pop(name, None)
            if value.strip(f" \t\n{HOLE}{BREAK}"):
                fields[name] = value.strip()
    return fields


def _split(markup: str) -> Iterator[tuple[str | None, str]]:
    """The arguments of a template, each with its name or None. The first one is the template.

    Bars and equals signs in templates, links and tables separate nothing. A link that its line does
    not close is text.
    """
    end = len(markup) - 2
    start, equals = 2, -1
    opened: list[str] = []
    for match in _MARKS.finditer(markup, start, end):
        mark = match[0]
        if mark in ("|", "="):
            if opened:
                continue
            if mark == "|":
                yield _argument(markup, start, equals, match.start())
                start, equals = match.end(), -1
            elif equals < 0:
                equals = match.start()
        elif mark == "\n":
            _close(opened, "")
        elif mark in ("{{", "[["):
            opened.append(mark)
        elif mark.endswith("{|"):
            opened.append("{|")
        elif mark == "]]":
            if opened and opened[-1] == "[[":
                opened.pop()
        else:
            _close(opened, "{{" if mark == "}}" else "{|")
    yield _argument(markup, start, equals, end)


def _argument(markup: str, start: int, equals: int, end: int) -> tuple[str | None, str]:
    if equals < 0:
        return None, markup[start:end]
    return markup[start:equals], markup[equals + 1 : end]


def _close(opened: list[str], bracket: str) -> None:
    """Close links, and the bracket around them if it is this one. The end of a template also closes
    tables in it."""
    unclosed = ("[[", "{|") if bracket == "{{" else ("[[",)
    while opened and opened[-1] in unclosed:
        opened.pop()
    if opened and opened[-1] == bracket:
        opened.pop()
