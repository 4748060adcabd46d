"""Collect what the pages of a dump tell about names: ``sites.Names``.

MediaWiki does not let a title start with the name of a namespace or the prefix of another wiki. So
if there is such a page, the prefix is neither in this wiki.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from .languages import (
    CATEGORY,
    CATEGORY_NAMES,
    DISAMBIGUATION_STEMS,
    DISAMBIGUATION_SUFFIXES,
    FILE_NAMES,
    INTERWIKI_PREFIXES,
    TEMPLATE,
    disambiguation_templates,
)
from .pages import MAGIC_WORD
from .sites import MAIN, PROPERTY, Names, Site
from .templates import template_key

_GUESSED = frozenset((*FILE_NAMES, *CATEGORY_NAMES, *INTERWIKI_PREFIXES))
_PLAIN = DISAMBIGUATION_SUFFIXES | disambiguation_templates("")
"""Names that say what a template is, if its text does not."""
_NOTE = re.compile(r"\[\[[^\[\]|]*\{\{\{")
"""A link to an argument, as in a note on another meaning at the top of an article."""
_ARGUMENT, _CALL = r"\{\{\{[^{}]*\}\}\}", r"\{\{[^{}]*\}\}"
_LINK = rf"\[\[(?:[^\[\]{{}}]|{_ARGUMENT}|{_CALL})*\]\]"
_BRANCH = rf"(?:[^{{}}|\[]|\[(?!\[)|{_LINK}|{_ARGUMENT}|{_CALL})*"
# ASCII: without it, "i" and "s" also match letters whose small letters are others.
_TAGS = re.IGNORECASE | re.ASCII
_HIDDEN = re.compile(r"<!--|<(nowiki|noinclude)(?=[\s>])[^<>]*(?<!/)>", _TAGS)
_CLOSINGS = {
    "": re.compile("-->"),
    **{tag: re.compile(rf"</{tag}\s*>", _TAGS) for tag in ("nowiki", "noinclude")},
}
_IF_GIVEN = re.compile(
    rf"\{{\{{\s*#if\s*:\s*\{{\{{\{{[^{{}}|]*(?:\|\s*)?\}}\}}\}}\s*\|{_BRANCH}(?:\|({_BRANCH}))?\}}\}}",
    re.IGNORECASE,
)
"""``{{#if:{{{argument|}}}|with|without}}``."""
_CATEGORY = re.compile(r"\[\[\s*(?!\s)([^\[\]|:\n]+):([^\[\]|\n]+)")
_WORDS = re.compile(
    "|".join(
        # Scripts without spaces have no beginnings of words.
        re.escape(stem)
        if re.search("[\u3040-\u9fff\uac00-\ud7a3]", stem)
        else rf"\b{re.escape(stem)}"
        for stem in sorted(DISAMBIGUATION_STEMS)
    ),
    re.IGNORECASE,
)
_NOT_OF_PAGES = re.compile(
    r"link|\b(?:hat)?not(?:es?|ices?)\b|\b(?:liens?|enlaces?|collegamenti|ligações)\b"
    r"|hinweis|verweis|vermerk|ссыл",
    re.IGNORECASE,
)
"""Links and notes: "Articles with links needing disambiguation", "Begriffsklärungshinweis"."""
_TYPE = re.compile(r"\[\[\s*has[ _]type\s*::\s*(?!\s)([^\[\]|]+)(?:\||\]\])", re.IGNORECASE)


class _Page(Protocol):
    @property
    def title(self) -> str: ...

    @property
    def namespace(self) -> int: ...

    @property
    def redirect(self) -> str | None: ...

    @property
    def text(self) -> str: ...


@dataclass
class DumpNames:
    """Names of a part of a dump; parts are merged by ``update``.

    marking: templates that mark disambiguation pages by their text. others: templates of the
    language's table that do not. redirects: template -> the template that it stands for. Other
    fields: as in ``sites.Names``.
    """

    marking: set[str] = field(default_factory=set)
    others: set[str] = field(default_factory=set)
    redirects: dict[str, str] = field(default_factory=dict)
    prefixes: set[str] = field(default_factory=set)
    double_colons: set[str] = field(default_factory=set)
    slashes: set[str] = field(default_factory=set)
    values: set[str] = field(default_factory=set)

    def add(self, page: _Page, site: Site) -> None:
        if page.namespace == MAIN:
            self._add_title(page.title)
        elif page.namespace == TEMPLATE:
            self._add_template(page, site)
        elif page.namespace == PROPERTY and PROPERTY in site.namespaces:
            kind = _TYPE.search(page.text)
            if kind is not None and kind[1].strip().casefold() not in ("page", "wikipage"):
                self.values.add(page.title.partition(":")[2].strip().casefold())

    def _add_title(self, title: str) -> None:
        prefix, colon, rest = title.partition(":")
        if colon:
            key = prefix.strip().casefold()
            if rest.startswith(":"):
                self.double_colons.add(key)
            if key in _GUESSED:
                self.prefixes.add(key)
        if title.startswith("/"):
            self.slashes.add(title)

    def _add_template(self, page: _Page, site: Site) -> None:
        name = template_key(page.title, site.template_prefixes)
        if page.redirect is not None:
            self.redirects[name] = template_key(page.redirect, site.template_prefixes)
        elif marks_disambiguations(page.text, site, name):
            self.marking.add(name)
        elif name in disambiguation_templates(site.language) and (
            name not in _PLAIN or _NOTE.search(_output(page.text)) is not None
        ):
            self.others.add(name)

    def update(self, other: "DumpNames") -> None:
        for name, values in vars(other).items():
            getattr(self, name).update(values)

    def names(self, site: Site) -> Names:
        """The names for a site of these pages. A template of the language's table marks
        disambiguation pages unless its page in the dump does not say so; in a Wikipedia it always
        does, because a program (Lua) may say so."""
        known = disambiguation_templates(site.language)
        seeds = self.marking | (known if site.is_wikimedia else known - self.others)
        seeds = seeds - site.not_disambiguations
        marking = (x for x in (*seeds, *self.redirects) if self._end(x) in seeds)
        return Names(
            disambiguations=frozenset(marking),
            prefixes=frozenset(self.prefixes),
            double_colons=frozenset(self.double_colons),
            slashes=frozenset(self.slashes),
            values=frozenset(self.values),
        )

    def _end(self, name: str) -> str:
        """MediaWiki follows one redirect."""
        return self.redirects.get(name, name)

    def to_dict(self) -> dict[str, object]:
        values = vars(self).items()
        return {name: sorted(x) if isinstance(x, set) else x for name, x in values}

    @classmethod
    def from_dict(cls, values: Mapping[str, object]) -> "DumpNames":
        lists = {name: set(x) for name, x in values.items() if isinstance(x, Sequence)}
        return cls(**{**values, **lists})  # type: ignore[arg-type]


def marks_disambiguations(text: str, site: Site, template: str = "") -> bool:
    """Whether the pages that use a template are disambiguation pages, by its text: it contains
    ``__DISAMBIG__``, or a category whose name has a word for them (and none for links or notes).

    template: its name. If that is one of the language's table, it is a word for them, too.
    """
    text = _output(text)
    known = disambiguation_templates(site.language)
    word = template.replace("_", " ") if template in known else ""
    if MAGIC_WORD.search(text) is not None:
        return True
    return any(
        site.prefixes.get(prefix.strip().casefold()) == CATEGORY
        and _is_of_disambiguations(name.replace("_", " "), word)
        for prefix, name in _CATEGORY.findall(text)
    )


def _is_of_disambiguations(category: str, word: str) -> bool:
    begins = bool(word) and category.strip().casefold().startswith(word)
    has_word = begins or _WORDS.search(category) is not None
    return has_word and _NOT_OF_PAGES.search(category) is None


def _output(text: str) -> str:
    """The text of a template that pages get, if they give it no arguments: without comments and
    documentation, and of a condition on an argument what is left without it."""
    out: list[str] = []
    position = 0
    absent: set[str] = set()  # tags that are not closed any more: nothing is searched twice
    for match in _HIDDEN.finditer(text):
        tag = (match[1] or "").lower()
        if match.start() < position or tag in absent:
            continue
        closing = _CLOSINGS[tag].search(text, match.end())
        if closing is None:
            absent.add(tag)
            continue
        out.append(text[position : match.start()])
        position = closing.end()
    out.append(text[position:])
    return _IF_GIVEN.sub(lambda x: x[1] or "", "".join(out))
