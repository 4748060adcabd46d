"""Resolve the target of an internal link: an article, or another kind of target."""

from html import unescape
from typing import NamedTuple

from .languages import CATEGORY, FILE, INTERWIKI_PREFIXES, WIKIPEDIA_CODES
from .sites import Site
from .titles import normalize_title

# Kinds of targets. Links to the kinds in OUTSIDE are not part of the text. Links to others are, but
# only an ARTICLE is an entity.
ARTICLE = "article"
OUTSIDE = frozenset({"file", "category", "language"})


class Target(NamedTuple):
    """The target of a link.

    kind: ``article``, ``file``, ``category``, ``language`` (the article in another language),
        ``interwiki``, ``namespace`` (another page that is not an article), ``section`` (of the same
        page) or ``invalid``.
    title: of the article, without section; empty for other kinds.
    """

    kind: str
    title: str


def resolve(raw: str, site: Site) -> Target:
    """The target of ``[[raw]]`` or ``[[raw|...]]`` on a page of the site."""
    title = raw.strip(" _\n\t")
    if title.startswith("#"):
        return Target("section", "")
    if ":" in title:
        has_colon = title.startswith(":")  # then the link is part of the text
        title = title.lstrip(": _")
        while ":" in title:
            prefix, _, rest = title.partition(":")
            key = prefix.strip(" _").replace("_", " ").casefold()
            namespace = site.prefixes.get(key)
            if namespace is not None:
                kind = {FILE: "file", CATEGORY: "category"}.get(namespace, "namespace")
                return Target("namespace" if has_colon else kind, "")
            if key == site.language and key:
                title, has_colon = rest.strip(" _"), True  # the prefix of the wiki itself
                continue
            if key in WIKIPEDIA_CODES:
                return Target("interwiki" if has_colon else "language", "")
            if key in INTERWIKI_PREFIXES:
                return Target("interwiki", "")
            break
    if "&" in title:  # before partition: the number sign of &#39; does not begin a section
        title = unescape(title)
    page, _, _ = title.partition("#")
    normal = normalize_title(page, site.case, site.language)
    return Target("invalid", "") if normal is None else Target(ARTICLE, normal)


def pipe_trick(raw: str) -> str:
    """The text of ``[[raw|]]``: without prefix, bracketed suffix, and text after a comma.

    >>> pipe_trick("Help:Boston (band)")
    'Boston'
    """
    title = raw.strip(" :_").replace("_", " ")
    title = title.partition(":")[2].strip() or title
    for opening in (" (", "（"):
        if title.endswith((")", "）")) and opening in title:
            return title[: title.rindex(opening)].strip()
    for comma in (", ", "، ", "，"):
        title = title.partition(comma)[0]
    return title.strip()
