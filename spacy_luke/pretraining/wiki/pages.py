"""Recognise redirects and disambiguation pages."""

import re
from collections import Counter
from typing import Protocol

from .html_tags import without_tags
from .languages import DISAMBIGUATION_SUFFIXES, REDIRECT_WORDS
from .links import resolve
from .sites import Site
from .templates import template_key
from .titles import normalize_title

_WORDS = "|".join(re.escape(word).replace(r"\ ", "[ _]?") for word in REDIRECT_WORDS)
_REDIRECT = re.compile(
    rf"\s*[#＃]\s*(?:{_WORDS})\s*(?::\s*)?\[\[([^\[\]|\n]+)(?:\|[^\]\n]*)?\]\]", re.IGNORECASE
)
_TEMPLATE_NAME = re.compile(r"\{\{\s*(?!\s)([^{}|\[\]<>\n]+)(?=\||\}\}|\n|<!--)")
MAGIC_WORD = re.compile("__DISAMBIG__", re.IGNORECASE)
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
    # Most pages have none, and need no second look.
    return mark and _mark(without_tags(page.text, Counter(), keep_tables=True), site)


def _mark(text: str, site: Site) -> str:
    if MAGIC_WORD.search(text) is not None:
        return "__DISAMBIG__"
    for name in _TEMPLATE_NAME.findall(text):
        if template_key(name, site.template_prefixes) in site.disambiguations:
            return f"template {' '.join(name.replace('_', ' ').split())}"
    return ""
