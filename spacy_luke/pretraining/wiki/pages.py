"""Pages that are no articles: redirects, and lists of the meanings of a word."""

import re
from collections.abc import Iterable, Set
from typing import Protocol

from .languages import (
    DISAMBIGUATION_SUFFIXES,
    DISAMBIGUATION_TEMPLATES,
    REDIRECT_WORDS,
    TEMPLATE,
)
from .links import resolve
from .sites import Site
from .titles import normalize_title

_WORDS = "|".join(re.escape(word).replace(r"\ ", "[ _]?") for word in REDIRECT_WORDS)
_REDIRECT = re.compile(
    rf"\s*[#＃]\s*(?:{_WORDS})\s*:?\s*\[\[([^\[\]|\n]+)(?:\|[^\]\n]*)?\]\]", re.IGNORECASE
)
_TEMPLATE_NAME = re.compile(r"\{\{\s*([^{}|\[\]<>\n]+?)\s*(?=\||\}\}|\n|<!--)")
_MAGIC_WORD = re.compile("__DISAMBIG__", re.IGNORECASE)
_SUFFIX = re.compile(r"[(（]([^()（）]+)[)）]$")


class _Page(Protocol):
    @property
    def title(self) -> str: ...

    @property
    def namespace(self) -> int: ...

    @property
    def text(self) -> str: ...


def redirect_target(text: str, site: Site) -> str | None:
    """The page that ``#REDIRECT [[page]]`` (in any known language) at the top names, or None.

    The target may be of any namespace; a section is cut off.
    """
    match = _REDIRECT.match(text)
    if match is None:
        return None
    target = match[1].strip().lstrip(":").partition("#")[0]
    if resolve(target, site).kind in ("interwiki", "language"):
        return None
    return normalize_title(target, site.case, site.language)


def is_disambiguation(page: _Page, templates: Set[str] = DISAMBIGUATION_TEMPLATES) -> bool:
    """Whether a page lists the meanings of a word: by a template, a magic word or its title.

    templates: casefolded names without prefix, with spaces; add what
        ``disambiguation_templates`` finds in the dump.
    """
    suffix = _SUFFIX.search(page.title)
    if suffix is not None and suffix[1].strip().casefold() in DISAMBIGUATION_SUFFIXES:
        return True
    if _MAGIC_WORD.search(page.text) is not None:
        return True
    return any(name in templates for name in _template_names(page.text))


def disambiguation_templates(pages: Iterable[_Page]) -> set[str]:
    """Names of the templates of a dump that mark a page as a list of meanings.

    They hold the magic word ``__DISAMBIG__``, and so does every page that shows one. Dumps called
    ``pages-articles`` hold templates too.
    """
    return {
        page.title.partition(":")[2].strip().casefold()
        for page in pages
        if page.namespace == TEMPLATE and _MAGIC_WORD.search(page.text) is not None
    }


def _template_names(text: str) -> set[str]:
    names = _TEMPLATE_NAME.findall(text)
    return {name.rpartition(":")[2].strip().replace("_", " ").casefold() for name in names}
