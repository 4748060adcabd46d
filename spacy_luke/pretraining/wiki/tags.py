"""The first pass over wikitext: comments, tags and what lies between them.

As in MediaWiki, this happens before brackets are looked at: what a tag such as ``<nowiki>`` or
``<ref>`` encloses cannot open or close a template or link outside. Linear in the text.
"""

import re
from collections import Counter

from .languages import words

# Private marks in text under way; they cannot occur in XML, and ``markup`` removes them from
# other input. HOLE: something was left out here. BREAK: a line ends, but not the item or argument.
HOLE, BREAK = "\x02", "\x0b"

_DROPPED = {
    "ref": "reference", "references": "reference", "math": "formula", "chem": "formula",
    "ce": "formula", "score": "formula", "hiero": "formula", "gallery": "gallery",
    "imagemap": "gallery", "timeline": "gallery", "graph": "gallery", "mapframe": "gallery",
    "maplink": "gallery", "pre": "code", "source": "code", "syntaxhighlight": "code",
    "templatedata": "code", "inputbox": "code", "categorytree": "code", "includeonly": "code",
    "indicator": "code", "table": "table",
}  # fmt: skip
_KEPT = ("nowiki", "poem")
_NAMES = "|".join((*_DROPPED, *_KEPT))
_OPENING = re.compile(rf"<!--|<(/?)({_NAMES})(?=[\s/>])([^<>]*?)(/?)>", re.IGNORECASE)
_CLOSING = {name: re.compile(rf"</{name}\s*>", re.IGNORECASE) for name in (*_DROPPED, *_KEPT)}
_NEXT_REFERENCE = re.compile(r"<ref(?=[\s>])[^<>]*(?<!/)>", re.IGNORECASE)

_TAG = re.compile(r"</?([a-zA-Z][a-zA-Z0-9]*)(?=[\s/>])[^<>]*>")
_BROKEN_REFERENCE = re.compile(r"</?ref(?:erences)?(?=[\s/=])[^<>\n]*", re.IGNORECASE)
_LINE_TAGS = frozenset({"br", "hr"})
_BLOCK_TAGS = frozenset(
    words(
        "p div center blockquote dl ul ol dt dd li h1 h2 h3 h4 h5 h6 tr td th caption tbody thead "
        "section article"
    )
)
_INLINE_TAGS = frozenset(
    words(
        "abbr b bdi bdo big cite code data del dfn em font i ins kbd mark noinclude "
        "onlyinclude q rb rp rt rtc ruby s samp small span strike strong sub sup time tt u var "
        "wbr a img label link meta nobr langconvert templatestyles"
    )
) | frozenset((*_DROPPED, *_KEPT))
_MARKUP = {ord(char): f"&#{ord(char)};" for char in "[]{}'|<>=:;*#&_-"}
_VARIANT = re.compile(r"-\{(?![{|])([^{}]*)\}-(?!\})")


def without_tags(text: str, dropped: Counter[str]) -> str:
    """The text without comments and tags; what a reader does not see as text becomes a HOLE.

    Contents of ``nowiki`` keep their characters as entities. Lines of ``poem`` and ``br`` become
    BREAKs. ``<`` that begins no known tag becomes an entity. Counted in ``dropped``: what is left
    out by kind, the links in it (``link in KIND``), and tags that nothing closes.
    """
    if "<" in text:
        text = _without_extensions(text, dropped)
        text = _TAG.sub(_replace_tag, text)
        if "<ref" in text or "</ref" in text:
            text, count = _BROKEN_REFERENCE.subn(HOLE, text)
            dropped["unclosed tag"] += count
        text = text.replace("<", "&lt;")
    if "-{" in text:
        text = _VARIANT.sub(_variant, text)
    return text


def _without_extensions(text: str, dropped: Counter[str]) -> str:
    out: list[str] = []
    at = 0
    closings: dict[str, int] = {}  # where a search found the next closing tag, len(text) for never
    while (match := _OPENING.search(text, at)) is not None:
        out.append(text[at : match.start()])
        at = match.end()
        if match[2] is None:
            at = _skip_comment(text, match, out, dropped, closings)
            continue
        name = match[2].lower()
        if match[1] or match[4]:  # a closing tag that closes nothing, or a tag without contents
            if not match[1]:
                dropped[_DROPPED.get(name, "tag")] += 1
            out.append(HOLE)
            continue
        closing = _next_closing(text, name, at, closings)
        if name == "ref" and closing is not None:
            another = _NEXT_REFERENCE.search(text, at, closing.start())
            closing = closing if another is None else None
        if closing is None:
            dropped["unclosed tag"] += 1
            out.append(HOLE)
            continue
        inside = text[at : closing.start()]
        at = closing.end()
        if name == "nowiki":
            # Not a HOLE at its end: a link trail does not go on, but a sentence does.
            dropped["link in nowiki"] += inside.count("[[")
            out.append(inside.translate(_MARKUP))
        elif name == "poem":
            out.append(_without_extensions(inside, dropped).strip("\n").replace("\n", BREAK))
        else:
            kind = _DROPPED[name]
            dropped[kind] += 1
            dropped[f"link in {kind}"] += inside.count("[[")
            out.append(HOLE)
    out.append(text[at:])
    return "".join(out)


def _next_closing(text: str, name: str, at: int, closings: dict[str, int]) -> re.Match[str] | None:
    """The next ``</name>``; many openings before one closing are not searched anew."""
    known = closings.get(name, -1)
    if known < at:
        found = _CLOSING[name].search(text, at)
        known = closings[name] = len(text) if found is None else found.start()
    return _CLOSING[name].match(text, known)


def _skip_comment(
    text: str, match: re.Match[str], out: list[str], dropped: Counter[str], closings: dict[str, int]
) -> int:
    """A comment that has a line for itself takes the line with it, as in MediaWiki."""
    known = closings.get("!", -1)
    if known < match.end():
        known = text.find("-->", match.end())
        closings["!"] = known = len(text) if known < 0 else known
    if known == len(text):
        dropped["unclosed tag"] += 1
        return match.end()
    dropped["comment"] += 1
    dropped["link in comment"] += text.count("[[", match.end(), known)
    end = known + 3
    before = out[-1].rstrip(" \t")
    if (before.endswith("\n") or (not before and len(out) == 1)) and end < len(text):
        line_end = text.find("\n", end, end + 200)
        if line_end >= 0 and not text[end:line_end].strip():
            out[-1] = before
            return line_end + 1
    return end


def _replace_tag(match: re.Match[str]) -> str:
    name = match[1].lower()
    if name in _LINE_TAGS:
        return BREAK
    if name in _BLOCK_TAGS:
        return "\n"
    return "" if name in _INLINE_TAGS else match[0]


def _variant(match: re.Match[str]) -> str:
    """The first spelling of ``-{zh-hans:A; zh-hant:B}-``, the text of ``-{A}-``; rules are hidden.

    Flags before a bar say how it is shown; of them A and R show it.
    """
    flags, bar, rest = match[1].partition("|")
    if bar and "[[" not in flags:
        names = {flag.strip() for flag in flags.split(";")}
        if names & {"H", "T", "-", "D", "N"}:
            return HOLE
        if "R" in names:
            return rest
    else:
        rest = match[1]
    for part in rest.split(";"):
        code, colon, words = part.partition(":")
        if colon and code.strip().replace("-", "").isascii() and code.strip().startswith("zh"):
            return words.rpartition("=>")[2].strip()
    return rest
