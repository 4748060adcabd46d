"""Small MediaWiki exports, written by the tests that read them."""

import bz2
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

NAMESPACES = {0: "", 1: "Diskussion", 6: "Datei", 10: "Vorlage", 14: "Kategorie"}


WIKIPEDIA = "https://de.wikipedia.org/wiki/A"
TIME = "2024-01-01T00:00:00Z"


def page(
    title: str,
    text: str | None,
    page_id: int = 1,
    ns: int | None = 0,
    more: str = "",
    time: str = TIME,
) -> str:
    """more: XML between the id and the revision, such as <redirect>."""
    body = "" if text is None else f'<text xml:space="preserve">{escape(text)}</text>'
    number = "" if ns is None else f"<ns>{ns}</ns>"
    return (
        f"<page><title>{escape(title)}</title>{number}<id>{page_id}</id>{more}"
        f"<revision><id>9</id><timestamp>{time}</timestamp>{body}</revision></page>\n"
    )


def head(
    version: str = "0.10",
    language: str = "de",
    case: str = "first-letter",
    base: str = "https://x.example/wiki/A",
    namespaces: Mapping[int, str] = NAMESPACES,
) -> str:
    names = "".join(f'<namespace key="{n}">{x}</namespace>' for n, x in namespaces.items())
    return (
        f'<mediawiki xmlns="http://www.mediawiki.org/xml/export-{version}/" version="{version}" '
        f"xml:lang={quoteattr(language)}>\n<siteinfo><sitename>Wiki</sitename>"
        f"<dbname>dewiki</dbname><base>{base}</base><case>{case}</case>"
        f"<namespaces>{names}</namespaces></siteinfo>\n"
    )


def export(
    *pages: str,
    version: str = "0.10",
    language: str = "de",
    base: str = "https://x.example/wiki/A",
    namespaces: Mapping[int, str] = NAMESPACES,
) -> str:
    start = head(version, language, base=base, namespaces=namespaces)
    return f"{start}{''.join(pages)}</mediawiki>\n"


def multistream(folder: Path, groups: Sequence[Sequence[str]]) -> Path:
    """A dump with a stream for its head, one for each group of titles, and one for its end."""
    data = bz2.compress(head().encode())
    page_id = 0
    for group in groups:
        xml = ""
        for title in group:
            page_id += 1
            xml += page(title, f"'''{title}''' is a page.", page_id)
        data += bz2.compress(xml.encode())
    data += bz2.compress(b"</mediawiki>\n")
    dump = folder / "dewiki-20240101-pages-articles-multistream.xml.bz2"
    dump.write_bytes(data)
    return dump
