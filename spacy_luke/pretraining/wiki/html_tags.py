"""The first pass over wikitext: remove comments and tags, some with their content.

As in MediaWiki, this is done before brackets are matched: the content of a tag such as ``<nowiki>``
or ``<ref>`` cannot open or close a template or link outside. The time is linear in the text.
"""

import re
from collections import Counter

from .languages import words

# Marks in intermediate text. They are invalid in XML, and ``markup`` removes them from other input.
# HOLE: something was removed here. BREAK: a line end within an item or argument.
HOLE, BREAK = "\x02", "\x0b"

_DROPPED = {
    "ref": "reference", "references": "reference", "math": "formula", "chem": "formula",
    "ce": "formula", "score": "formula", "hiero": "formula", "gallery": "gallery",
    "imagemap": "gallery", "timeline": "gallery", "graph": "gallery", "mapframe": "gallery",
    "maplink": "gallery", "pre": "code", "source": "code", "syntaxhighlight": "code",
    "templatedata": "code", "inputbox": "code", "categorytree": "code", "includeonly": "code",
    "indicator": "code", "table": "table",
}  # fmt: skip
_KEPT = ("nowiki", "poem", "tabber")
_NAMES = "|".join((*_DROPPED, *_KEPT))
# ASCII: without it, "i" and "s" also match letters whose small letters are others.
_CASE = re.IGNORECASE | re.ASCII
_OPENING = re.compile(rf"<!--|<(/?)({_NAMES})(?=[\s/>])([^<>]*?)(/?)>", _CASE)
_CLOSING = {name: re.compile(rf"</{name}\s*>", _CASE) for name in (*_DROPPED, *_KEPT)}
_NEXT_REFERENCE = re.compile(r"<ref(?=[\s>])[^<>]*(?<!/)>", _CASE)

_RUBY = r"</?(?:r[tpb]|rtc|ruby)(?=[\s>])"
_READING = re.compile(
    rf"<(?:r[tp]|rtc)(?=[\s>])[^<>]*>((?:(?!{_RUBY})[^\n])*)(?:</(?:r[tp]|rtc)\s*>|(?={_RUBY}))",
    _CASE,
)
"""How Han characters are read, above them (``ruby``), and parentheses around it; its end may be
left out."""
_TAG = re.compile(r"</?([a-zA-Z][a-zA-Z0-9]*)(?=[\s/>])[^<>]*>")
_BROKEN_REFERENCE = re.compile(r"</?ref(?:erences)?(?=[\s/=])[^<>\n]*", re.IGNORECASE)
_LINE_TAGS = frozenset({"br", "hr"})
_BLOCK_TAGS = frozenset(
    words(
        "p div center blockquote dl ul ol dt dd li h1 h2 h3 h4 h5 h6 tr td th caption tbody thead "
        "section article tabs tab"
    )
)
_INLINE_TAGS = frozenset(
    words(
        "abbr b bdi bdo big cite code data del dfn em font i ins kbd mark noinclude "
        "onlyinclude q rb rp rt rtc ruby s samp small span strike strong sub sup time tt u var "
        "wbr a img label link meta nobr langconvert templatestyles translate languages tvar"
    )
) | frozenset((*_DROPPED, *_KEPT))
_MARKUP = {ord(char): f"&#{ord(char)};" for char in "[]{}'|<>=:;*#&_-"}
_VARIABLE = re.compile(r"<tvar\|[^<>\n]*>|</>")
_CODES = "zh|sr|sh|kk|ku|uz|tg|tly|crh|gan|wuu|iu|ike|shi|zgh|ban|mni"
"""Languages that are written in several scripts."""
_CODED = rf"(?:[^;]*?=>)?\s*(?:{_CODES})(?:-[a-z]+)*\s*:"
"""The beginning of a variant: ``zh-hans:``, or ``A=>zh-hans:``."""
_CODED_TEXT = re.compile(rf"{_CODED}(.*)", _CASE | re.DOTALL)
_BETWEEN_VARIANTS = re.compile(rf";(?={_CODED}|\s*$)", _CASE)
_VARIANT = re.compile(r"-\{(?![{|])((?:[^{}]|\{\{[^{}]*\}\})*)\}-(?!\})")


def without_tags(text: str, dropped: Counter[str], keep_tables: bool = False) -> str:
    """Remove comments and tags. Content that is not text becomes a HOLE.

    Markup in ``nowiki`` is kept as entities. ``br`` and line ends in ``poem`` become BREAKs. Tabs
    of ``tabber`` become paragraphs without their labels. Any other ``<`` becomes an entity.
    ``dropped`` counts removed content by kind, the links in it (``link in KIND``), and unclosed
    tags. keep_tables: cells of ``table`` become paragraphs.
    """
    if "<" in text:
        text = _without_extensions(text, dropped, keep_tables)
        if "<tvar|" in text:
            text = _VARIABLE.sub("", text)
        for reading in _READING.findall(text) if "<r" in text else ():
            dropped["reading"] += 1
            dropped["link in reading"] += reading.count("[[")
        if dropped["reading"]:
            text = _READING.sub("", text)
        text = _TAG.sub(_replace_tag, text)
        if "<ref" in text or "</ref" in text:
            text, count = _BROKEN_REFERENCE.subn(HOLE, text)
            dropped["unclosed tag"] += count
        text = text.replace("<", "&lt;")
    if "-{" in text:
        text = _VARIANT.sub(_variant, text)
    return text


def _without_extensions(text: str, dropped: Counter[str], keep_tables: bool) -> str:
    out: list[str] = []
    position = 0
    closings: dict[str, int] = {}  # tag -> position of the next closing tag, or len(text)
    while (match := _OPENING.search(text, position)) is not None:
        out.append(text[position : match.start()])
        position = match.end()
        if match[2] is None:
            position = _skip_comment(text, match, out, dropped, closings)
            continue
        name = match[2].lower()
        if name == "table" and keep_tables:
            out.append("\n")
            continue
        if match[1] or match[4]:  # an unmatched closing tag, or a tag without content
            if not match[1]:
                dropped[_DROPPED.get(name, "tag")] += 1
            out.append(HOLE)
            continue
        closing = _next_closing(text, name, position, closings)
        if name == "ref" and closing is not None:
            another = _NEXT_REFERENCE.search(text, position, closing.start())
            closing = closing if another is None else None
        if closing is None:
            dropped["unclosed tag"] += 1
            out.append(HOLE)
            continue
        inside = text[position : closing.start()]
        position = closing.end()
        if name == "nowiki":
            # No HOLE at its end, because the sentence continues.
            dropped["link in nowiki"] += inside.count("[[")
            out.append(inside.translate(_MARKUP))
        elif name == "poem":
            inside = _without_extensions(inside, dropped, keep_tables)
            out.append(inside.strip("\n").replace("\n", BREAK))
        elif name == "tabber":
            tabs = (tab.partition("=") for tab in inside.split("|-|"))
            inside = "\n\n".join(content if mark else label for label, mark, content in tabs)
            out.append(f"\n\n{_without_extensions(inside, dropped, keep_tables)}\n\n")
        else:
            kind = _DROPPED[name]
            dropped[kind] += 1
            dropped[f"link in {kind}"] += inside.count("[[")
            out.append(HOLE)
    out.append(text[position:])
    return "".join(out)


def _next_closing(
    text: str, name: str, position: int, closings: dict[str, int]
) -> re.Match[str] | None:
    """The next ``</name>``. Its position is cached, so the time is linear."""
    start = closings.get(name, -1)
    if start < position:
        match = _CLOSING[name].search(text, position)
        start = closings[name] = len(text) if match is None else match.start()
    return _CLOSING[name].match(text, start)


def _skip_comment(
    text: str, match: re.Match[str], out: list[str], dropped: Counter[str], closings: dict[str, int]
) -> int:
    """Skip a comment and, as in MediaWiki, its line if it contains nothing else. Returns the
    position after it."""
    closing = closings.get("!", -1)
    if closing < match.end():
        closing = text.find("-->", match.end())
        closings["!"] = closing = len(text) if closing < 0 else closing
    if closing == len(text):
        dropped["unclosed tag"] += 1
        return match.end()
    dropped["comment"] += 1
    dropped["link in comment"] += text.count("[[", match.end(), closing)
    end = closing + 3
    before = out[-1].rstrip(" \t")
    if (before.endswith("\n") or (not before and len(out) == 1)) and end < len(text):
        line_end = text.find("\n", end, end + 200)
        if line_end >= 0 and not text[end:line_end].strip():
            out[-1] = before
            return line_end + 1
    return end


_TRANSCLUSION = re.compile(r"\s(begin|end)\s*=", re.IGNORECASE)
"""Of ``<section begin=x />``, which marks what other pages take from this one."""


def _replace_tag(match: re.Match[str]) -> str:
    name = match[1].lower()
    if name in _LINE_TAGS:
        return BREAK
    if name == "section" and _TRANSCLUSION.search(match[0]):
        return ""
    if name in _BLOCK_TAGS:
        return "\n"
    return "" if name in _INLINE_TAGS else match[0]


def _variant(match: re.Match[str]) -> str:
    """The first variant of ``-{zh-hans:A; zh-hant:B}-``, or the text of ``-{A}-``.

    Flags before a bar control the output. With the flags H, T, -, D and N there is none.
    """
    flags, bar, rest = match[1].partition("|")
    if bar and "[[" not in flags and "{{" not in flags:
        names = {flag.strip() for flag in flags.split(";")}
        if names & {"H", "T", "-", "D", "N"}:
            return HOLE
        if "R" in names:
            return rest
    else:
        rest = match[1]
    # The text of a variant may contain entities (``&amp;``) and other semicolons.
    for part in _BETWEEN_VARIANTS.split(rest):
        if coded := _CODED_TEXT.match(part):
            return coded[1].strip()
    return rest
