"""Read MediaWiki XML exports (schema 0.3 to 0.11) in partitions, which can be read in parallel.

A dump consists of one or several files (``pages1`` ... ``pagesN``); each is a partition. A
multistream dump is cut further, into byte ranges of whole bz2 streams. Pages are read one at a time
in file order, with bounded memory.
"""

import base64
import binascii
import codecs
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, ParseError, XMLPullParser

from ...errors import CorpusError
from ...report import LOGGER
from .pages import redirect_target
from .sites import Site
from .streams import TruncatedError, compression, decompressed, next_stream
from .titles import normalize_title

PARTITION_SIZE = 32 << 20
"""Minimum compressed bytes per partition of a multistream dump."""
_INDEX = re.compile(r"-index\d*\.txt")


@dataclass(frozen=True)
class Page:
    """The newest revision of a page in the export.

    title: with the prefix of its namespace, in Unicode NFC. namespace: 0 for articles.
    redirect: title of its redirect target, without section, or None.
    text: wikitext; empty if the page is blank or deleted. model: ``wikitext``, or another value for
        scripts, styles and data.
    timestamp: of the revision, as in the export (ISO 8601); empty if it has none.
    """

    page_id: int
    title: str
    namespace: int
    redirect: str | None
    text: str
    model: str = "wikitext"
    timestamp: str = ""


@dataclass(frozen=True)
class Partition:
    """A part of a dump that one worker reads: a file, or a byte range of it.

    start, end: bounds of whole compressed streams; ``end`` is None for the end of the file. site:
    from the file's head, which is only in the file's first partition. incomplete: whether the file
    may end too early; its complete pages are read then.
    """

    path: Path
    site: Site
    start: int = 0
    end: int | None = None
    incomplete: bool = False

    def __str__(self) -> str:
        whole = self.start == 0 and self.end is None
        return str(self.path) if whole else f"{self.path} from byte {self.start}"


def partitions(
    paths: str | PathLike[str] | Iterable[str | PathLike[str]],
    size: int = PARTITION_SIZE,
    incomplete: bool = False,
) -> list[Partition]:
    """The partitions of one or several files, in order.

    paths: exports. Index files among them are ignored.
    size: minimum compressed bytes per byte range of a multistream dump.

    Logs a warning for large compressed files that cannot be cut. Raises CorpusError if a file is
    missing or not an export.
    """
    if isinstance(paths, str | PathLike):
        paths = [paths]
    parts: list[Partition] = []
    for path in map(Path, paths):
        if _INDEX.search(path.name):
            continue
        if not path.is_file():
            raise CorpusError(f"{path}: no such file")
        site = read_site(path)
        starts = _cuts(path, size)
        for start, end in zip(starts, [*starts[1:], None]):
            parts.append(Partition(path, site, start, end, incomplete))
    return parts


MAX_PAGE_BYTES = 64 << 20
"""Maximum bytes per revision. MediaWiki's own limit is 2 MiB."""
_TAG_BYTES = 64
MAX_ID, MAX_NAMESPACE = 1 << 63, 1 << 31
"""Numbers of pages and namespaces are smaller: they are whole numbers of 64 and 32 bits."""
_SHOWN = 40


def read_site(path: Path) -> Site:
    """Read the head of an export: ``<siteinfo>``, and the language of the root element."""
    language = ""
    for event, element in _events(Partition(path, Site())):
        tag = _local(element.tag)
        if event == "start" and tag == "mediawiki":
            language = element.get("{http://www.w3.org/XML/1998/namespace}lang", "")
        elif event == "start" and tag == "page":
            break
        elif event == "end" and tag == "siteinfo":
            return _site(element, language)
    return Site(language=language)


def read_pages(
    partition: Partition, skipped: Counter[str] | None = None, blank: bool = False
) -> Iterator[Page]:
    """Yield the pages of a partition in file order, of all namespaces.

    skipped: counts unusable pages by reason: without text (deleted, or a dump of titles), without
        a title, or with an invalid title.
    blank: also yield pages whose text is blank or deleted, which an older export may have with it.

    Raises CorpusError if the file is truncated or its XML is broken. Earlier pages have been
    yielded by then, so callers must discard them.
    """
    skipped = Counter() if skipped is None else skipped
    root: Element | None = None
    revision: Element | None = None
    title = ""
    events = _events(partition)
    while True:
        try:
            event, element = next(events)
        except StopIteration:
            return
        except CorpusError as error:
            after = f"after the page {title!r}" if title else "before the first page"
            if partition.incomplete and isinstance(error, TruncatedError):
                LOGGER.warning("%s (%s): its complete pages are used.", error, after)
                skipped["file that ends too early"] += 1
                return
            raise type(error)(f"{error} ({after})") from error
        tag = _local(element.tag)
        if event == "start":
            root = element if root is None else root
        elif tag == "revision":
            if revision is None or _timestamp(element) >= _timestamp(revision):
                revision, element = element, revision
            if element is not None:
                element.clear()  # an older one, if the export contains histories
        elif tag == "page":
            page = _page(element, revision, partition, skipped)
            revision = None
            if root is not None:
                root.clear()
            if page is not None and (page.text or blank):
                title = page.title
                yield page


def _page(
    element: Element, revision: Element | None, partition: Partition, skipped: Counter[str]
) -> Page | None:
    parts = {_local(child.tag): child for child in reversed(element)}
    last = {_local(child.tag): child for child in revision} if revision is not None else {}
    raw_title = parts["title"].text if "title" in parts else None
    text = _text(last["text"], raw_title, partition) if "text" in last else None
    if not raw_title or not raw_title.strip():
        skipped["page without a title"] += 1
        return None
    title = normalize_title(raw_title, "case-sensitive")
    if title is None:
        skipped["page with an impossible title"] += 1
        return None
    if not text or not text.strip():
        skipped["page without text"] += 1
        if "text" not in last or _is_stub(last["text"]):
            return None
        text = ""
    site = partition.site
    number = _number(parts.get("ns"), title, partition, MAX_NAMESPACE)
    namespace = site.namespace(title) if number is None else number
    redirect: str | None = None
    if "redirect" in parts and "title" in parts["redirect"].attrib:
        target = parts["redirect"].attrib["title"].partition("#")[0]
        redirect = normalize_title(target, site.case, site.language)
    if redirect is None:
        redirect = redirect_target(text, site)
    return Page(
        page_id=_number(parts.get("id"), title, partition, MAX_ID) or 0,
        title=title,
        namespace=namespace,
        redirect=redirect,
        text=text,
        model=(last["model"].text or "wikitext") if "model" in last else "wikitext",
        timestamp=_timestamp(revision) if revision is not None else "",
    )


def _is_stub(element: Element) -> bool:
    """Whether a text is left out of an export of titles, which has only its size or its id. (That
    of a deleted revision has its size, too.)"""
    if element.text or "deleted" in element.attrib:
        return False
    return element.get("bytes", "0") != "0" or "id" in element.attrib


def _timestamp(revision: Element) -> str:
    """In UTC and of one length, so that texts compare as times do."""
    found = (child.text or "" for child in revision if _local(child.tag) == "timestamp")
    return next(found, "").strip()


def _text(element: Element, title: str | None, partition: Partition) -> str | None:
    if element.get("encoding") != "base64" or not element.text:
        return element.text
    try:
        return base64.b64decode("".join(element.text.split()), validate=True).decode("utf8")
    except (binascii.Error, UnicodeDecodeError) as error:
        message = f"{partition}: the text of page {title!r} is not base64 of UTF-8: {error}"
        raise CorpusError(message) from error


def _number(element: Element | None, title: str, partition: Partition, limit: int) -> int | None:
    if element is None or element.text is None:
        return None
    try:
        number = int(element.text)
        if abs(number) < limit:
            return number
        reason = "too large a number"
    except ValueError:
        reason = "not a number"
    tag, text = _local(element.tag), element.text[:_SHOWN]
    raise CorpusError(f"{partition}: page {title!r} has <{tag}>{text}</{tag}>: {reason}")


def _site(element: Element, language: str) -> Site:
    values = {_local(child.tag): child for child in element}

    def text(tag: str) -> str:
        return (values[tag].text or "").strip() if tag in values else ""

    names = values.get("namespaces", ())
    return Site(
        name=text("sitename"),
        dbname=text("dbname"),
        base=text("base"),
        case=text("case") or "first-letter",
        language=language,
        namespaces={int(x.get("key", "0")): x.text or "" for x in names},
        cases={int(x.get("key", "0")): case for x in names if (case := x.get("case", ""))},
    )


def _local(tag: str) -> str:
    """A tag without its XML namespace, which contains the export's version."""
    return tag.rpartition("}")[2]


def _events(partition: Partition) -> Iterator[tuple[str, Element]]:
    """("start" or "end", element) of the XML; the first element is <mediawiki>."""
    parser: Any = XMLPullParser(("start", "end"))
    if partition.start:
        parser.feed(b"<mediawiki>")
    is_export = False
    n_open = n_bytes = 0  # bytes, and memory of tags, since the last page or revision; all bytes
    try:
        for chunk in _decoded(partition):
            parser.feed(chunk)
            n_bytes += len(chunk)
            n_open += len(chunk)
            if n_open > MAX_PAGE_BYTES:
                raise CorpusError(
                    f"{partition}: more than {MAX_PAGE_BYTES >> 20} MiB in which no page ends: no "
                    "page of a wiki is that long. Is the file damaged?"
                )
            for event, element in parser.read_events():
                n_open += _TAG_BYTES
                if event == "end" and _local(element.tag) in ("page", "revision"):
                    n_open = 0
                if not is_export and _local(element.tag) != "mediawiki":
                    name = _local(element.tag)
                    raise CorpusError(
                        f"{partition}: not a MediaWiki export: it begins with <{name}>"
                    )
                is_export = True
                yield event, element
        if not n_bytes:
            raise CorpusError(f"{partition}: the file is empty when it is decompressed")
        _close(parser, partition, is_export)
        yield from parser.read_events()
    except ParseError as error:
        what = "broken XML" if is_export else "not a MediaWiki export, or not XML"
        raise CorpusError(f"{partition}: {what}: {error}") from error


def _close(parser: Any, partition: Partition, is_export: bool) -> None:
    try:
        if partition.end is not None:
            parser.feed(b"</mediawiki>")
        parser.close()
    except ParseError as error:
        if not is_export:
            raise
        raise TruncatedError(f"{partition}: the file is incomplete: {error}") from error


def _decoded(partition: Partition) -> Iterator[bytes | str]:
    """Chunks: UTF-8 as bytes, UTF-16 as text, because its XML declaration may be wrong."""
    decoder: codecs.IncrementalDecoder | None = None
    first = True
    for chunk in decompressed(partition.path, partition.start, partition.end):
        if first and chunk.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            decoder = codecs.getincrementaldecoder("utf-16")()
        first = False
        try:
            yield chunk if decoder is None else decoder.decode(chunk)
        except UnicodeDecodeError as error:
            raise CorpusError(f"{partition}: broken UTF-16: {error}") from error
    if decoder is not None and decoder.getstate()[0]:
        raise TruncatedError(f"{partition}: the UTF-16 text ends within a character: truncated?")


def _cuts(path: Path, size: int) -> list[int]:
    """Starts of byte ranges: streams of bz2 that begin with a page, as in multistream dumps."""
    length = path.stat().st_size
    starts = [0]
    while starts[-1] + size < length:
        start = next_stream(path, starts[-1] + size, _is_page)
        if start is None:
            break
        starts.append(start)
    if length - starts[-1] > 2 * max(size, PARTITION_SIZE) and compression(path):
        LOGGER.warning(
            "%s cannot be divided from byte %d: one process reads its other %d MiB. Multistream "
            "dumps (bz2) can be divided.",
            path,
            starts[-1],
            (length - starts[-1]) >> 20,
        )
    return starts


def _is_page(plain: bytes) -> bool:
    return plain.lstrip().startswith(b"<page>")
