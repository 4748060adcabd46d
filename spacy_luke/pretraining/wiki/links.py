"""What the target of an internal link is: an article, or one of the things that are not."""

from html import unescape
from typing import NamedTuple

from .languages import CATEGORY, FILE, INTERWIKI_PREFIXES, WIKIPEDIA_CODES
from .sites import Site
from .titles import normalize_title

# Kinds of targets. Links of the first three stand beside the text; those of the others are text
# on the page, and only ARTICLE is an entity.
ARTICLE = "article"
BESIDE = frozenset({"file", "category", "language"})


class Target(NamedTuple):
    """kind: ``article``, ``file``, ``category``, ``language`` (the same article elsewhere),
    ``interwiki``, ``namespace`` (a page that is no article), ``section`` (of the page itself) or
    ``invalid``. title: of the article, without section; empty for all other kinds."""

    kind: str
    title: str


def resolve(raw: str, site: Site) -> Target:
    """The target of ``[[raw]]`` or ``[[raw|...]]`` on a page of the site."""
    title = raw.strip(" _\n\t")
    if title.startswith("#"):
        return Target("section", "")
    if ":" in title:
        shown = title.startswith(":")
        title = title.lstrip(": _")
        while ":" in title:
            prefix, _, rest = title.partition(":")
            key = prefix.strip(" _").replace("_", " ").casefold()
            namespace = site.prefixes.get(key)
            if namespace is not None:
                beside = {FILE: "file", CATEGORY: "category"}.get(namespace, "namespace")
                return Target("namespace" if shown else beside, "")
            if key == site.language and key:
                title, shown = rest.strip(" _"), True  # the wiki itself, named by its language
                continue
            if key in WIKIPEDIA_CODES:
                return Target("interwiki" if shown else "language", "")
            if key in INTERWIKI_PREFIXES:
                return Target("interwiki", "")
            break
    if "&" in title:  # decoded first: the number sign of &#39; begins no section
        title = unescape(title)
    page, _, _ = title.partition("#")
    normal = normalize_title(page, site.case, site.language)
    return Target("invalid", "") if normal is None else Target(ARTICLE, normal)


def pipe_trick(raw: str) -> str:
    """What ``[[raw|]]`` shows: no prefix, no bracketed addition, nothing after a comma.

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
