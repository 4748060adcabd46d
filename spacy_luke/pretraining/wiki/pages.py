"""Recognise redirects and disambiguation pages."""

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


def is_disambiguation(page: _Page, templates: Set[str] = DISAMBIGUATION_TEMPLATES) -> bool:
    """Whether a page is a disambiguation page, by a template, a magic word or its title.

    templates: casefolded names without prefix, with spaces. Add those of
        ``disambiguation_templates``.
    """
    suffix = _SUFFIX.search(page.title)
    if suffix is not None and suffix[1].strip().casefold() in DISAMBIGUATION_SUFFIXES:
        return True
    if _MAGIC_WORD.search(page.text) is not None:
        return True
    return any(name in templates for name in _template_names(page.text))


def disambiguation_templates(pages: Iterable[_Page]) -> set[str]:
    """Names of a dump's templates for disambiguation pages.

    These templates contain the magic word ``__DISAMBIG__``. Dumps named ``pages-articles`` contain
    templates.
    """
    return {
        page.title.partition(":")[2].strip().casefold()
        for page in pages
        if page.namespace == TEMPLATE and _MAGIC_WORD.search(page.text) is not None
    }


def _template_names(text: str) -> set[str]:
    names = _TEMPLATE_NAME.findall(text)
    return {name.rpartition(":")[2].strip().replace("_", " ").casefold() for name in names}
