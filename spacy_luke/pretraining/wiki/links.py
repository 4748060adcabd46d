"""Resolve the target of an internal link: an article, or another kind of target."""

from typing import NamedTuple

from .languages import CATEGORY, FILE
from .sites import Site
from .titles import decoded, normalize_title, unquoted

# Kinds of targets. Links to the kinds in OUTSIDE are not part of the text. Links to others are, but
# only an ARTICLE is an entity.
ARTICLE = "article"
OUTSIDE = frozenset({"file", "category", "language"})


class Target(NamedTuple):
    """The target of a link.

    kind: ``article``, ``file``, ``category``, ``language`` (the article in another language),
        ``interwiki``, ``namespace`` (another page that is not an article), ``section`` (of the same
        page), ``property value`` (of a property whose values are not pages) or ``invalid``.
    title: of the article, without section; empty for other kinds.
    """

    kind: str
    title: str


def resolve(raw: str, site: Site, page: str = "") -> Target:
    """The target of ``[[raw]]`` or ``[[raw|...]]`` on a page of the site.

    page: the title of this page, which subpages (``[[/Rota]]``) are relative to.
    """
    # First, because an encoded colon or number sign means what they mean.
    title = decoded(raw).strip(" _\n\t")
    if title.startswith("#"):
        return Target("section", "")
    if is_relative(title, site):
        title = _absolute(title, page)
    property_name, value = split_property(title, site)
    if property_name:
        if property_name.casefold() in site.names.values:
            return Target("property value", "")
        return resolve(value, site, page)
    if ":" in title:
        has_colon = title.startswith(":")  # then the link is part of the text
        title = title.lstrip(": _")
        while ":" in title:
            prefix, _, rest = title.partition(":")
            key = prefix.strip(" _").replace("_", " ").casefold()
            namespace = site.prefixes.get(key)
            if namespace is not None:
                return _in_namespace(namespace, rest, has_colon, site)
            if key in site.languages and key in site.own_codes:
                title, has_colon = rest.strip(" _"), True  # the prefix of the wiki itself
                continue
            if key in site.languages:
                return Target("interwiki" if has_colon else "language", "")
            if key in site.other_wikis:
                return Target("interwiki", "")
            break
    return _article(title, site.case, site)


def _in_namespace(namespace: int, title: str, has_colon: bool, site: Site) -> Target:
    side = {FILE: "file", CATEGORY: "category"}.get(namespace)
    if side is not None and not has_colon:
        return Target(side, "")
    if namespace not in site.content:
        return Target("namespace", "")
    kind, name = _article(title, site.case_of(namespace), site)
    prefix = site.namespace_name(namespace)
    return Target(kind, f"{prefix}:{name}" if name and prefix else name)


def _article(title: str, case: str, site: Site) -> Target:
    page, _, _ = title.partition("#")
    normal = normalize_title(page, case, site.language)
    return Target("invalid", "") if normal is None else Target(ARTICLE, normal)


def is_relative(title: str, site: Site) -> bool:
    """Whether a target is relative to its page: ``/Rota``, ``../Rota``. The main namespace of
    Wikipedias has no subpages."""
    if title.startswith("../") or title == "..":
        return True
    if site.is_wikimedia or not title.startswith("/"):
        return False
    return title.partition("#")[0].replace("_", " ").strip() not in site.names.slashes


def _absolute(title: str, page: str) -> str:
    """``/Rota`` on the page ``Team`` is ``Team/Rota``, ``../Rota`` on ``Team/Plan`` as well."""
    if title.startswith("/"):
        return page + title.rstrip("/ ")
    while title.startswith("../") or title == "..":
        title = title[3:]
        page = page.rpartition("/")[0]
    return f"{page}/{title}".strip("/ ")


def split_property(title: str, site: Site) -> tuple[str, str]:
    """Semantic MediaWiki's ``Has location::Berlin`` is ("Has location", "Berlin"); other targets
    have no property: ("", title)."""
    name, colons, _ = title.partition("::")
    name = name.strip(" _").replace("_", " ")
    is_title = site.is_wikimedia or name.casefold() in site.names.double_colons
    if not colons or not name or is_title:
        return "", title
    return name, title.rpartition("::")[2].strip()


def shown_target(raw: str, site: Site, page: str = "") -> str:
    """The text of ``[[raw]]``: the target without a leading colon, property, final slash or
    percent-encoding."""
    text = unquoted(raw).strip(" _")
    if is_relative(text, site):
        last = text.rstrip("/").rpartition("/")[2]
        if text.endswith("/") and last != "..":
            text = last
        elif text.startswith("."):
            text = _absolute(text, page)
    else:
        text = split_property(text, site)[1]
    return text.strip(" :").removeprefix("#").replace("_", " ")


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
