"""MediaWiki XML exports, schema 0.3 to 0.11, as partitions that can be read side by side.

A dump is one file, or several (``pages1`` ... ``pagesN``), each a partition; a multistream dump
with its index beside it is cut further, into byte ranges of whole bz2 streams. Pages are read one
by one in the order of the file; memory does not grow with the dump.
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
_INDEX = re.compile(r"-index\d*\.txt")


@dataclass(frozen=True)
class Page:
    """A page as exported: the last revision of it that the export holds.

    title: with the prefix of its namespace, in Unicode NFC. namespace: 0 for articles.
    redirect: title of the page that it redirects to, without section, or None.
    text: wikitext. model: ``wikitext`` but for scripts, styles and data.
    """

    page_id: int
    title: str
    namespace: int
    redirect: str | None
    text: str
    model: str = "wikitext"


@dataclass(frozen=True)
class Partition:
    """A part of a dump that one worker reads: a file, or its bytes start to end.

    start, end: bounds of whole compressed streams; ``end`` is None where the file ends. site: from
    the head of the file, which only the first partition of a file holds.
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
    """The partitions of one file or several, in their order.

    paths: exports. Index files among them (as a wild card finds them) are left out.
    size: compressed bytes that a byte range of a multistream dump has at least.

    Raises: CorpusError for a file that is absent or no export, and for an index that does not fit.
    """
    if isinstance(paths, str | PathLike):
        paths = [paths]
    found: list[Partition] = []
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
            found.append(Partition(path, site, start, end))
    return found


MOST_BYTES = 64 << 20
"""Of the text of one page: MediaWiki's own limit is 2 MiB."""


def read_site(path: Path) -> Site:
    """The head of an export: ``<siteinfo>``, and the language of the root element."""
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
    """The pages of a partition, in the order of the file, of all namespaces.

    skipped: counts, by reason, pages that cannot be used: without text (deleted, or a dump of
        titles only), without a title, or with a title that no page can have.

    Raises: CorpusError where the file breaks off or its XML is broken. Pages before that place
        have been given out by then, so what is made of them must wait for the end.
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
                revision.clear()  # an older one, where the export holds whole histories
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
    written = parts["title"].text if "title" in parts else None
    text = last["text"].text if "text" in last else None
    if not written or not written.strip():
        skipped["page without a title"] += 1
        return None
    title = normalize_title(written, "case-sensitive")
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
        message = f"{partition}: page {title!r} has <{tag}>{element.text}</{tag}>: no number"
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
    """A tag without the namespace of the export's version."""
    return tag.rpartition("}")[2]


def _events(partition: Partition) -> Iterator[tuple[str, Element]]:
    """("start" or "end", element) of the XML; the first element is <mediawiki>."""
    parser: Any = XMLPullParser(("start", "end"))
    if partition.start:
        parser.feed(b"<mediawiki>")
    seen = False
    n_silent = 0  # bytes since the last tag
    try:
        for chunk in _decoded(partition):
            parser.feed(chunk)
            n_silent += len(chunk)
            if n_silent > MOST_BYTES:
                raise CorpusError(
                    f"{partition}: more than {MOST_BYTES >> 20} MiB of text without a tag: no page "
                    "of a wiki is that long. Is the file damaged?"
                )
            for event, element in parser.read_events():
                n_silent = 0
                if not seen and _local(element.tag) != "mediawiki":
                    name = _local(element.tag)
                    raise CorpusError(f"{partition}: no MediaWiki export: it begins with <{name}>")
                seen = True
                yield event, element
        if partition.end is not None:
            parser.feed(b"</mediawiki>")
        parser.close()
        yield from parser.read_events()
    except ParseError as error:
        if not seen:
            message = f"{partition}: no MediaWiki export, or not XML at all: {error}"
        else:
            message = f"{partition}: broken XML, or the file is not complete: {error}"
        raise CorpusError(message) from error


def _decoded(partition: Partition) -> Iterator[bytes | str]:
    """UTF-8 as it is, UTF-16 as text: its XML declaration may name another encoding."""
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
    """Starts of byte ranges; lines of an index are ``offset of the stream:page id:title``."""
    length = path.stat().st_size
    starts = [0]
    with path.open("rb") as file:
        for number, line in enumerate(_lines(index), 1):
            digits = line.partition(b":")[0]
            if not digits.isdigit():
                raise CorpusError(f"{index}: line {number} begins with no offset: {line[:40]!r}")
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
