"""Recognise redirects and disambiguation pages."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

from .languages import DISAMBIGUATION_SUFFIXES, REDIRECT_WORDS
from .links import resolve
from .sites import Site
from .titles import normalize_title

_WORDS = "|".join(re.escape(word).replace(r"\ ", "[ _]?") for word in REDIRECT_WORDS)
_REDIRECT = re.compile(
    rf"\s*[#＃]\s*(?:{_WORDS})\s*:?\s*\[\[([^\[\]|\n]+)(?:\|[^\]\n]*)?\]\]", re.IGNORECASE
)
_TEMPLATE_NAME = re.compile(r"\{\{\s*([^{}|\[\]<>\n]+?)\s*(?=\||\}\}|\n|<!--)")
MAGIC_WORD = re.compile("__DISAMBIG__", re.IGNORECASE)
_QUOTED = ("nowiki", "pre", "source", "syntaxhighlight")
"""Tags whose content is shown as it is written."""
_SUFFIX = re.compile(r"[(（]([^()（）]+)[)）]$")


class PageText(Protocol):
    @property
    def title(self) -> str: ...

    @property
    def text(self) -> str: ...


def redirect_target(text: str, site: Site) -> str | None:
    """The target of ``#REDIRECT [[page]]`` (in any known language) at the top, or None.

    The target may be in any namespace. Its section is removed.
    """
    match = _REDIRECT.match(text)
    if match is None:
        return None
    target = match[1].strip().lstrip(":").partition("#")[0]
    if resolve(target, site).kind in ("interwiki", "language"):
        return None
    return normalize_title(target, site.case, site.language)


def disambiguation_mark(page: PageText, site: Site) -> str:
    """What marks a disambiguation page: its title, a magic word or a template, in words. Empty for
    other pages, also those that only write about such marks."""
    suffix = _SUFFIX.search(page.title)
    if suffix is not None and suffix[1].strip().casefold() in DISAMBIGUATION_SUFFIXES:
        return f"title with ({suffix[1].strip()})"
    mark = _mark(page.text, site)
    return mark and _mark(without_hidden(page.text, _QUOTED), site)


def _mark(text: str, site: Site) -> str:
    if MAGIC_WORD.search(text) is not None:
        return "__DISAMBIG__"
    for name in _TEMPLATE_NAME.findall(text):
        plain = name.rpartition(":")[2].strip().replace("_", " ")
        if plain.casefold() in site.disambiguations:
            return f"template {plain}"
    return ""


def without_hidden(text: str, tags: Sequence[str]) -> str:
    """Text without comments, and without the content of some tags."""
    out: list[str] = []
    position = 0
    absent: set[str] = set()  # closing tags that do not follow: nothing is searched twice
    for match in _opening(tuple(tags)).finditer(text):
        closing = "-->" if match[1] is None else f"</{match[1]}>"
        if match.start() < position or closing in absent:
            continue
        end = text.find(closing, match.end())
        if end < 0:
            absent.add(closing)
            continue
        out.append(text[position : match.start()])
        position = end + len(closing)
    out.append(text[position:])
    return "".join(out)


@lru_cache
def _opening(tags: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"<!--|<({'|'.join(tags)})(?=[\s>])[^<>]*(?<!/)>")
