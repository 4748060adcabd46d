"""Read MediaWiki XML exports (schema 0.3 to 0.11) in partitions, which can be read in parallel.

A dump consists of one or several files (``pages1`` ... ``pagesN``); each is a partition. A
multistream dump beside its index is cut further, into byte ranges of whole bz2 streams. Pages are
read one at a time in file order, with bounded memory.
"""

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
from .streams import BZ2_MAGIC, decompressed
from .titles import normalize_title

PARTITION_SIZE = 32 << 20
"""Minimum compressed bytes per partition of a multistream dump."""
_INDEX = re.compile(r"-index\d*\.txt")


@dataclass(frozen=True)
class Page:
    """The last revision of a page in the export.

    title: with the prefix of its namespace, in Unicode NFC. namespace: 0 for articles.
    redirect: title of its redirect target, without section, or None.
    text: wikitext. model: ``wikitext``, or another value for scripts, styles and data.
    """

    page_id: int
    title: str
    namespace: int
    redirect: str | None
    text: str
    model: str = "wikitext"


@dataclass(frozen=True)
class Partition:
    """A part of a dump that one worker reads: a file, or a byte range of it.

    start, end: bounds of whole compressed streams; ``end`` is None for the end of the file. site:
    from the file's head, which is only in the file's first partition.
    """

    path: Path
    site: Site
    start: int = 0
    end: int | None = None

    def __str__(self) -> str:
        whole = self.start == 0 and self.end is None
        return str(self.path) if whole else f"{self.path} from byte {self.start}"


def partitions(
    paths: str | PathLike[str] | Iterable[str | PathLike[str]], size: int = PARTITION_SIZE
) -> list[Partition]:
    """The partitions of one or several files, in order.

    paths: exports. Index files among them are ignored.
    size: minimum compressed bytes per byte range of a multistream dump.

    Raises CorpusError if a file is missing or not an export, or an index belongs to another dump.
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
        index = _index_beside(path)
        if index is None and "multistream" in path.name and path.suffix == ".bz2":
            LOGGER.warning("%s has no index beside it: it is read as one part.", path)
        starts = [0] if index is None else _cuts(path, index, size)
        for start, end in zip(starts, [*starts[1:], None]):
            parts.append(Partition(path, site, start, end))
    return parts


MAX_PAGE_BYTES = 64 << 20
"""Maximum bytes of text per page. MediaWiki's own limit is 2 MiB."""


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


def read_pages(partition: Partition, skipped: Counter[str] | None = None) -> Iterator[Page]:
    """Yield the pages of a partition in file order, of all namespaces.

    skipped: counts unusable pages by reason: without text (deleted, or a dump of titles), without
        a title, or with an invalid title.

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
            raise CorpusError(f"{error} ({after})") from error
        tag = _local(element.tag)
        if event == "start":
            root = element if root is None else root
        elif tag == "revision":
            if revision is not None:
                revision.clear()  # an older one, if the export contains histories
            revision = element
        elif tag == "page":
            page = _page(element, revision, partition, skipped)
            revision = None
            if root is not None:
                root.clear()
            if page is not None:
                title = page.title
                yield page


def _page(
    element: Element, revision: Element | None, partition: Partition, skipped: Counter[str]
) -> Page | None:
    parts = {_local(child.tag): child for child in reversed(element)}
    last = {_local(child.tag): child for child in revision} if revision is not None else {}
    raw_title = parts["title"].text if "title" in parts else None
    text = last["text"].text if "text" in last else None
    if not raw_title or not raw_title.strip():
        skipped["page without a title"] += 1
        return None
    title = normalize_title(raw_title, "case-sensitive")
    if title is None:
        skipped["page with an impossible title"] += 1
        return None
    if not text or not text.strip():
        skipped["page without text"] += 1
        return None
    site = partition.site
    redirect: str | None = None
    if "redirect" in parts and "title" in parts["redirect"].attrib:
        target = parts["redirect"].attrib["title"].partition("#")[0]
        redirect = normalize_title(target, site.case, site.language)
    if redirect is None:
        redirect = redirect_target(text, site)
    namespace = _number(parts.get("ns"), title, partition)
    return Page(
        page_id=_number(parts.get("id"), title, partition) or 0,
        title=title,
        namespace=site.namespace(title) if namespace is None else namespace,
        redirect=redirect,
        text=text,
        model=(last["model"].text or "wikitext") if "model" in last else "wikitext",
    )


def _number(element: Element | None, title: str, partition: Partition) -> int | None:
    if element is None or element.text is None:
        return None
    try:
        return int(element.text)
    except ValueError:
        tag = _local(element.tag)
        message = f"{partition}: page {title!r} has <{tag}>{element.text}</{tag}>: not a number"
        raise CorpusError(message) from None


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
    n_untagged = 0  # bytes since the last tag
    try:
        for chunk in _decoded(partition):
            parser.feed(chunk)
            n_untagged += len(chunk)
            if n_untagged > MAX_PAGE_BYTES:
                raise CorpusError(
                    f"{partition}: more than {MAX_PAGE_BYTES >> 20} MiB of text without a tag: no "
                    "page of a wiki is that long. Is the file damaged?"
                )
            for event, element in parser.read_events():
                n_untagged = 0
                if not is_export and _local(element.tag) != "mediawiki":
                    name = _local(element.tag)
                    raise CorpusError(
                        f"{partition}: not a MediaWiki export: it begins with <{name}>"
                    )
                is_export = True
                yield event, element
        if partition.end is not None:
            parser.feed(b"</mediawiki>")
        parser.close()
        yield from parser.read_events()
    except ParseError as error:
        if is_export:
            message = f"{partition}: broken XML, or the file is incomplete: {error}"
        else:
            message = f"{partition}: not a MediaWiki export, or not XML: {error}"
        raise CorpusError(message) from error


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
        raise CorpusError(f"{partition}: the UTF-16 text ends within a character: truncated?")


def _index_beside(path: Path) -> Path | None:
    stem, _, rest = path.name.partition(".xml")
    rest = rest.removesuffix(".bz2")
    names = [re.sub(r"multistream(\d*)$", r"multistream-index\1", stem), f"{stem}-index"]
    for name in names:
        for end in (".bz2", ""):
            index = path.with_name(f"{name}.txt{rest}{end}")
            if index.is_file():
                return index
    return None


def _cuts(path: Path, index: Path, size: int) -> list[int]:
    """Starts of byte ranges. Lines of an index are ``offset of the stream:page id:title``."""
    length = path.stat().st_size
    starts = [0]
    with path.open("rb") as file:
        for number, line in enumerate(_lines(index), 1):
            digits = line.partition(b":")[0]
            if not digits.isdigit():
                raise CorpusError(
                    f"{index}: line {number} does not begin with an offset: {line[:40]!r}"
                )
            offset = int(digits)
            if offset - starts[-1] < size:
                continue
            file.seek(offset)
            if offset >= length or file.read(3) != BZ2_MAGIC:
                message = f"{index}: line {number}: no stream at byte {offset} of {path}"
                raise CorpusError(f"{message}: truncated, or the index of another dump?")
            starts.append(offset)
    return starts


def _lines(path: Path) -> Iterator[bytes]:
    rest = b""
    for chunk in decompressed(path):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines
    if rest:
        yield rest
