"""Exports of every age and encoding become pages; broken ones become one clear error."""

import base64
import bz2
import codecs
import gzip
import pickle
import zlib
from collections import Counter
from pathlib import Path

import pytest

from spacy_luke.errors import CorpusError
from spacy_luke.pretraining.wiki.export import Page, Partition, partitions, read_pages
from spacy_luke.pretraining.wiki.sites import Site
from spacy_luke.pretraining.wiki.streams import MAX_PLAIN, decompressed, next_stream

from .exports import TIME, export, head, multistream, page


def write(folder: Path, xml: str, name: str = "wiki.xml", encoding: str = "utf-8") -> Path:
    data = xml.encode(encoding)
    path = folder / name
    pack = {".bz2": bz2.compress, ".gz": gzip.compress}.get(path.suffix, bytes)
    path.write_bytes(pack(data))
    return path


def pages_of(*paths: Path, size: int = 1) -> list[Page]:
    return [x for part in partitions(paths, size) for x in read_pages(part)]


@pytest.mark.parametrize("version", ["0.3", "0.4", "0.6", "0.8", "0.10", "0.11"])
@pytest.mark.parametrize("name", ["wiki.xml", "wiki.xml.bz2", "wiki.xml.gz"])
def test_every_schema_and_compression(tmp_path: Path, version: str, name: str) -> None:
    path = write(tmp_path, export(page("Möwe", "Ein ''Vogel''.", 7), version=version), name)
    (part,) = partitions(path)
    assert (part.site.language, part.site.dbname, part.site.case) == (
        "de",
        "dewiki",
        "first-letter",
    )
    assert part.site.namespaces[6] == "Datei"
    assert list(read_pages(part)) == [Page(7, "Möwe", 0, None, "Ein ''Vogel''.", timestamp=TIME)]


def test_old_exports_tell_namespace_and_redirect_by_title_and_text(tmp_path: Path) -> None:
    xml = export(
        page("Vorlage:Info", "x", ns=None),
        page("Category:Y", "x", ns=None),
        page("Datum: ein Wort", "x", ns=None),
        page("Lachmöwe", "#WEITERLEITUNG [[möwe#Arten|Möwe]]", ns=None),
        version="0.3",
    )
    found = pages_of(write(tmp_path, xml))
    assert [x.namespace for x in found] == [10, 14, 0, 0]
    assert [x.redirect for x in found] == [None, None, None, "Möwe"]


def test_a_redirect_is_read_from_its_element(tmp_path: Path) -> None:
    xml = export(page("A", "#FOO [[Bar]]", more='<redirect title="Tom &amp; Jerry" />'))
    assert [x.redirect for x in pages_of(write(tmp_path, xml))] == ["Tom & Jerry"]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_with_a_mark(tmp_path: Path, encoding: str) -> None:
    text = "Straße 東京 𝔘" * 40_000  # longer than a chunk, which may end within a character
    xml = "\ufeff" + '<?xml version="1.0" encoding="UTF-8"?>' + export(page("東京", text))
    (found,) = pages_of(write(tmp_path, xml, encoding=encoding))
    assert (found.title, found.text) == ("東京", text)


def test_utf_8_with_a_mark(tmp_path: Path) -> None:
    path = tmp_path / "wiki.xml"
    path.write_bytes(codecs.BOM_UTF8 + export(page("A", "x")).encode())
    assert [x.title for x in pages_of(path)] == ["A"]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_the_newest_of_several_revisions_counts(tmp_path: Path, order: tuple[int, ...]) -> None:
    revisions = "".join(
        f"<revision><id>{i}</id><timestamp>2023-0{i + 1}-01T00:00:00Z</timestamp>"
        f"<text>text {i}</text></revision>"
        for i in order
    )
    xml = export(page("A", "x"))
    start, end = xml.index("<revision>"), xml.index("</page>")
    (found,) = pages_of(write(tmp_path, xml[:start] + revisions + xml[end:]))
    assert (found.text, found.timestamp) == ("text 2", "2023-03-01T00:00:00Z")


def test_the_last_of_revisions_without_times_counts(tmp_path: Path) -> None:
    xml = export(page("A", "new", time="")).replace(
        "<revision>", "<revision><id>1</id><text>old</text></revision><revision>"
    )
    assert [x.text for x in pages_of(write(tmp_path, xml))] == ["new"]


def test_blank_pages_are_yielded_on_request_but_not_those_of_an_export_of_titles(
    tmp_path: Path,
) -> None:
    stub = page("S", None).replace("</revision>", '<text bytes="9" /></revision>')
    old_stub = page("T", None).replace("</revision>", '<text id="9" /></revision>')
    hidden = '<text bytes="23" sha1="x" deleted="deleted" /></revision>'
    hidden = page("D", None).replace("</revision>", hidden)
    blank = page("E", None).replace("</revision>", '<text bytes="0" /></revision>')
    line = page("A", None).replace("</revision>", '<text bytes="1">\n</text></revision>')
    xml = export(line, stub, old_stub, hidden, blank, page("X", "x"))
    skipped: Counter[str] = Counter()
    (part,) = partitions(write(tmp_path, xml))
    found = [(x.title, x.text) for x in read_pages(part, skipped, blank=True)]
    assert found == [("A", ""), ("D", ""), ("E", ""), ("X", "x")]
    assert skipped == {"page without text": 5}


def test_text_in_base64_is_decoded(tmp_path: Path) -> None:
    encoded = base64.b64encode("Straße in [[Berlin]]".encode()).decode()
    xml = export(page("A", encoded)).replace("<text ", '<text encoding="base64" ')
    assert [x.text for x in pages_of(write(tmp_path, xml))] == ["Straße in [[Berlin]]"]
    lines = "\n".join(encoded[i : i + 8] for i in range(0, len(encoded), 8))
    folded = xml.replace(encoded, f"\n{lines}\n")
    assert [x.text for x in pages_of(write(tmp_path, folded))] == ["Straße in [[Berlin]]"]
    for bad in ("//8=", "####", "a"):
        with pytest.raises(CorpusError, match="the text of page 'A' is not base64 of UTF-8"):
            pages_of(write(tmp_path, xml.replace(encoded, bad)))


def test_titles_come_in_one_spelling(tmp_path: Path) -> None:
    odd = "Cafe\u0301_\u200eX", "ß", "ﬁ", "𝔘", "a\u00a0b"
    found = pages_of(write(tmp_path, export(*(page(title, "x") for title in odd))))
    assert [x.title for x in found] == ["Café X", "ß", "ﬁ", "𝔘", "a b"]


def test_pages_without_text_or_title_are_counted(tmp_path: Path) -> None:
    deleted = page("D", None).replace("</revision>", '<text deleted="deleted" /></revision>')
    xml = export(page("A", None), page("B", " \n"), deleted, page("", "x"), page("C|D", "x"))
    skipped: Counter[str] = Counter()
    (part,) = partitions(write(tmp_path, xml))
    assert list(read_pages(part, skipped)) == []
    assert skipped == {
        "page without text": 3,
        "page without a title": 1,
        "page with an impossible title": 1,
    }


def test_a_wiki_with_no_pages_has_none(tmp_path: Path) -> None:
    assert pages_of(write(tmp_path, export())) == []


def test_several_files_are_partitions_in_their_order(tmp_path: Path) -> None:
    paths = [write(tmp_path, export(page(x, "x")), f"pages{i}.xml.bz2") for i, x in enumerate("BA")]
    parts = partitions(paths)
    assert [part.path for part in parts] == paths
    assert [x.title for x in pages_of(*paths)] == ["B", "A"]


@pytest.mark.parametrize("size,n_parts", [(1, 5), (1 << 30, 1)])
def test_a_multistream_dump_is_cut_at_its_streams(tmp_path: Path, size: int, n_parts: int) -> None:
    dump = multistream(tmp_path, ["AB", "C", "DEF", "G"])
    index = tmp_path / "dewiki-20240101-pages-articles-multistream-index.txt.bz2"
    parts = partitions([dump, index], size)  # the index is not needed
    assert len(parts) == n_parts
    assert all(part.site.namespaces[14] == "Kategorie" for part in parts)
    revived = pickle.loads(pickle.dumps(parts))
    titles = [[x.title for x in read_pages(part)] for part in revived]
    assert [x for group in titles for x in group] == list("ABCDEFG")
    assert size > 1 or titles == [[], ["A", "B"], ["C"], ["D", "E", "F"], ["G"]]


def test_streams_that_begin_within_a_page_are_no_place_to_cut(tmp_path: Path) -> None:
    """As some compressors make them; and the magic number of a stream may be data."""
    xml = export(page("A", "x"), page("B", "x")).encode()
    path = tmp_path / "wiki.xml.bz2"
    path.write_bytes(b"".join(bz2.compress(xml[i : i + 50]) for i in range(0, len(xml), 50)))
    assert len(partitions(path, size=1)) == 1
    assert [x.title for x in pages_of(path)] == ["A", "B"]
    data = path.read_bytes()
    path.write_bytes(data + b"BZh91AY&SY" * 3)
    assert next_stream(path, len(data), lambda plain: True) is not None
    assert next_stream(path, len(data), bool) is None


@pytest.mark.parametrize("name,says", [("w.xml.bz2", True), ("w.xml.gz", True), ("w.xml", False)])
def test_a_large_compressed_file_that_cannot_be_cut_is_told(
    tmp_path: Path, name: str, says: bool, caplog: pytest.LogCaptureFixture, monkeypatch
) -> None:
    monkeypatch.setattr("spacy_luke.pretraining.wiki.export.PARTITION_SIZE", 10)
    path = write(tmp_path, export(page("A", "x")), name)
    assert len(partitions(path, size=10)) == 1
    assert (f"{name} cannot be divided from byte 0: one process" in caplog.text) == says


@pytest.mark.parametrize("name,read", [("w.xml.bz2", ""), ("w.xml.gz", "AB"), ("w.xml", "AB")])
def test_a_truncated_file_is_an_error_after_the_pages_before(
    tmp_path: Path, name: str, read: str
) -> None:
    """bz2 gives out whole blocks of 900 kB; the other formats what there is."""
    words = " ".join(str(i * 7919 % 10007) for i in range(60_000))
    path = write(tmp_path, export(page("A", "x"), page("B", words), page("C", words)), name)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) * 3 // 4])
    titles = ""
    after = "after the page 'B'" if read else "before the first page"
    (part,) = partitions(path) if read else [Partition(path, Site())]
    with pytest.raises(CorpusError, match=f"{name}: .*(truncated|incomplete).*{after}"):
        for found in read_pages(part):
            titles += found.title
    assert titles == read


def test_the_complete_pages_of_a_cut_off_file_can_be_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    xml = export(page("A", "x"), page("B", "x"), page("C", "a longer text"))
    data = gzip.compress(xml.encode())
    cases = {"w.xml": xml[: xml.index("longer")].encode(), "w.xml.gz": data[:-9]}
    for name, content in cases.items():
        (tmp_path / name).write_bytes(content)
        (part,) = partitions(tmp_path / name, incomplete=True)
        skipped: Counter[str] = Counter()
        assert [x.title for x in read_pages(part, skipped)][:2] == ["A", "B"]
        assert skipped == {"file that ends too early": 1}
        assert f"{name}: " in caplog.text and "its complete pages are used" in caplog.text


def test_broken_xml_is_an_error_also_where_files_may_be_cut_off(tmp_path: Path) -> None:
    path = write(tmp_path, export(page("A", "x"), "<page></title></page>", page("B", "x")))
    (part,) = partitions(path, incomplete=True)
    with pytest.raises(CorpusError, match="broken XML"):
        list(read_pages(part))


def test_a_file_cut_between_two_streams_is_an_error(tmp_path: Path) -> None:
    dump = multistream(tmp_path, ["AB", "C"])
    end = len(bz2.compress(b"</mediawiki>\n"))
    dump.write_bytes(dump.read_bytes()[:-end])
    with pytest.raises(CorpusError, match="incomplete"):
        pages_of(dump)


@pytest.mark.parametrize("name", ["wiki.xml.bz2", "wiki.xml.gz"])
def test_damaged_data_is_an_error_that_names_the_byte(tmp_path: Path, name: str) -> None:
    words = " ".join(str(i * 7919 % 10007) for i in range(60_000))
    path = write(tmp_path, export(page("A", words)), name)
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 64] = bytes(64)
    path.write_bytes(data)
    with pytest.raises(CorpusError, match="damaged .* data near byte|broken XML"):
        pages_of(path)


def test_broken_xml_names_its_line_and_the_page_before(tmp_path: Path) -> None:
    xml = export(page("A", "x"), "<page><title>B</titel></page>\n", page("C", "x"))
    with pytest.raises(CorpusError, match=r"wiki.xml: broken XML.*line 4.*after the page 'A'"):
        pages_of(write(tmp_path, xml))


@pytest.mark.parametrize("tag", ["id", "ns"])
@pytest.mark.parametrize(
    "number,message",
    [("x", "not a number"), ("9" * 20, "too large"), ("9" * 5000, "not a number$")],
)
def test_numbers_that_are_none_or_too_large_name_the_page(
    tmp_path: Path, tag: str, number: str, message: str
) -> None:
    xml = export(page("A", "x", 0)).replace(f"<{tag}>0</{tag}>", f"<{tag}>{number}</{tag}>")
    with pytest.raises(CorpusError, match=f"page 'A' has <{tag}>.{{,40}}</{tag}>: {message}"):
        pages_of(write(tmp_path, xml))


@pytest.mark.parametrize(
    "data,message",
    [
        (b"", "empty"),
        (b"<html><body/></html>", "begins with <html>"),
        (b"title,text\nA,b\n", "not a MediaWiki export"),
        (b"\xfd7zXZ\x00....", "xz is not supported"),
        (bz2.compress(b""), "the file is empty when it is decompressed"),
        (gzip.compress(b"", mtime=0), "the file is empty when it is decompressed"),
    ],
)
def test_what_is_no_export_is_refused(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "x.bin"
    path.write_bytes(data)
    with pytest.raises(CorpusError, match=f"x.bin: .*{message}"):
        partitions(path)


def test_an_absent_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="nowhere.xml: no such file"):
        partitions(tmp_path / "nowhere.xml")


def test_a_byte_range_past_the_end_is_an_error(tmp_path: Path) -> None:
    dump = multistream(tmp_path, ["AB", "C"])
    *_, part, last = partitions(dump, size=1)
    dump.write_bytes(dump.read_bytes()[: part.start + 20])
    with pytest.raises(CorpusError, match="truncated"):
        list(read_pages(part))


def test_a_page_of_ten_megabytes(tmp_path: Path) -> None:
    text = (
        "Ein Wort, und noch eins, & viele andere <b>Worte</b> auf einer langen Zeile.\n" * 140_000
    )
    (found,) = pages_of(write(tmp_path, export(page("A", text)), "wiki.xml.gz"))
    assert len(found.text) > 10_000_000 and found.text == text


@pytest.mark.parametrize("name", ["wiki.xml.bz2", "wiki.xml.gz"])
@pytest.mark.parametrize("start", [head() + "<page><title>A</title><revision><text>", ""])
def test_a_small_file_that_expands_to_gigabytes_is_an_error_in_little_memory(
    tmp_path: Path, name: str, start: str
) -> None:
    path = tmp_path / name
    pack = bz2.BZ2Compressor() if name.endswith("bz2") else zlib.compressobj(wbits=31)
    data = [pack.compress(start.encode())]
    data += [pack.compress(b" " * (1 << 20)) for _ in range(100)]
    path.write_bytes(b"".join([*data, pack.flush()]))
    assert path.stat().st_size < 200_000
    assert all(len(piece) <= MAX_PLAIN for piece in decompressed(path))
    with pytest.raises(CorpusError, match="more than 64 MiB in which no page ends"):
        list(read_pages(Partition(path, Site())))


def test_neither_tags_nor_pages_expand_without_a_bound(tmp_path: Path, monkeypatch) -> None:
    path = write(tmp_path, head() + "<page>" + "<a/>" * 1_100_000, "wiki.xml.bz2")
    with pytest.raises(CorpusError, match="more than 64 MiB in which no page ends"):
        list(read_pages(Partition(path, Site())))
    monkeypatch.setattr("spacy_luke.pretraining.wiki.streams.MIN_EXPANDED", 1 << 20)
    path = write(tmp_path, export(*[page("A", "x")] * 20_000), "wiki.xml.bz2")
    with pytest.raises(CorpusError, match="wiki.xml.bz2: .* bytes expand to more than"):
        list(read_pages(Partition(path, Site())))


def test_what_a_chunk_expands_to_is_given_out_in_full(tmp_path: Path) -> None:
    plain = bytes(range(256)) * 20_000 + b"x" * 5_000_000
    for name, pack in (("a.bz2", bz2.compress), ("a.gz", gzip.compress)):
        (tmp_path / name).write_bytes(pack(plain) + pack(b"and more"))
        assert b"".join(decompressed(tmp_path / name)) == plain + b"and more"


def test_a_site_without_a_head_knows_the_names_of_every_wiki(tmp_path: Path) -> None:
    xml = export(page("File:A.jpg", "x", ns=None), page("Bild:A.jpg", "x", ns=None))
    path = write(tmp_path, xml.replace(head(), '<mediawiki xml:lang="en">'))
    assert partitions(path) == [Partition(path, Site(language="en"))]
    assert [x.namespace for x in pages_of(path)] == [6, 6]
