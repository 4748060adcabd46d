"""Link tables: written, mapped, saved, refused if damaged."""

import copy
import pickle
import shutil
import signal
import time

import numpy as np
import pytest

from spacy_luke.errors import KnowledgeBaseError
from spacy_luke.kb.link_table import LinkedText, LinkTable, write_link_table

ENTRIES = [
    LinkedText("ada", "Ada Lovelace", 0.5),
    LinkedText("lovelace", "Ada Lovelace", 0.25),
    LinkedText("ميونخ", "München", 1.0),
]


def write(folder, entries=ENTRIES, **meta):
    return write_link_table(folder, "en", lambda: entries, **meta)


def files(folder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_entries_are_found_by_their_text(tmp_path):
    table = write(tmp_path / "links", counts={"texts": 3})
    assert [table.get(entry.text) for entry in ENTRIES] == ENTRIES
    assert table.get("Ada") is None and table.get("") is None
    assert len(table) == 3 and table.language == "en" and table.store.meta["counts"] == {"texts": 3}


def test_a_table_that_cannot_be_written_is_named_and_stays(tmp_path):
    write(tmp_path / "links")
    before = files(tmp_path / "links")
    resource = pytest.importorskip("resource")  # of POSIX alone
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        with pytest.raises(KnowledgeBaseError, match=r"links cannot be written: "):
            write(tmp_path / "links", [LinkedText(f"x{i}", f"y{i}", 0.5) for i in range(999)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert files(tmp_path / "links") == before


def test_the_order_of_entries_changes_no_byte(tmp_path):
    write(tmp_path / "one")
    write(tmp_path / "other", ENTRIES[::-1])
    assert files(tmp_path / "one") == files(tmp_path / "other")


@pytest.mark.parametrize("entries", [ENTRIES, []])
def test_a_saved_table_is_the_same(tmp_path, entries):
    table = write(tmp_path / "links", entries)
    LinkTable.from_bytes(table.to_bytes()).save(tmp_path / "copy")
    assert files(tmp_path / "copy") == files(tmp_path / "links")
    LinkTable.open(tmp_path / "copy").save(tmp_path / "copy")  # onto the files that are mapped
    assert files(tmp_path / "copy") == files(tmp_path / "links")


def test_a_large_table_opens_at_once(tmp_path):
    write(tmp_path / "links", [LinkedText(f"text {i}", f"Title {i}", 0.5) for i in range(200_000)])
    start = time.perf_counter()
    assert LinkTable.open(tmp_path / "links").get("text 199999").title == "Title 199999"
    assert time.perf_counter() - start < 0.1


@pytest.mark.parametrize("name", ["texts.npy", "titles.npy", "title_ids.npy"])
def test_a_damaged_file_is_named(tmp_path, name):
    write(tmp_path / "links")
    path = tmp_path / "links" / name
    whole = path.read_bytes()
    for data in (b"", whole[:-1], whole[:-9] + b"damaged.."):
        path.write_bytes(data)
        with pytest.raises(KnowledgeBaseError, match=name.partition(".")[0]):
            LinkTable.open(tmp_path / "links")
    path.unlink()
    with pytest.raises(KnowledgeBaseError, match=name):
        LinkTable.open(tmp_path / "links")


def test_arrays_of_another_table_are_refused(tmp_path):
    write(tmp_path / "links")
    np.save(tmp_path / "links" / "probabilities.npy", np.zeros(2, np.float32))
    with pytest.raises(KnowledgeBaseError, match="probabilities has the shape"):
        LinkTable.open(tmp_path / "links")


@pytest.mark.parametrize(
    "change, message",
    [
        (("link table", "knowledge base"), "format is 'spacy-luke knowledge base'"),
        (('"version": 2', '"version": 1'), "version is 1; this version of spacy-luke reads 2"),
        (('"arrays": {', '"arrows": {'), "arrays is None"),
        (('"language": "en"', '"language": 3'), "language is missing in links.json"),
    ],
)
def test_other_contents_are_refused(tmp_path, change, message):
    write(tmp_path / "links")
    path = tmp_path / "links" / "links.json"
    path.write_text(path.read_text().replace(*change))
    with pytest.raises(KnowledgeBaseError, match=message):
        LinkTable.open(tmp_path / "links")


def test_other_folders_and_bytes_are_refused(tmp_path):
    with pytest.raises(KnowledgeBaseError, match="links.json is missing"):
        LinkTable.open(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(KnowledgeBaseError, match="is not a link table: it contains notes.txt"):
        write(tmp_path)
    (tmp_path / "links.json").write_text('{"nodes": []}')  # of a web page, say
    with pytest.raises(KnowledgeBaseError, match="it contains notes.txt"):
        write(tmp_path)
    (tmp_path / "notes.txt").rename(tmp_path / "notes.npy")
    with pytest.raises(KnowledgeBaseError, match="it contains notes.npy"):
        write(tmp_path)
    assert sorted(files(tmp_path)) == ["links.json", "notes.npy"]
    for data in (b"", b"\x80", b"\x81\xa4meta\x01"):
        with pytest.raises(KnowledgeBaseError):
            LinkTable.from_bytes(data)


def test_a_table_of_an_earlier_version_is_replaced(tmp_path):
    write(tmp_path / "links")
    meta = tmp_path / "links" / "links.json"
    meta.write_text(meta.read_text().replace('"version": 2', '"version": 1'))
    for name in ("texts", "titles"):
        (tmp_path / "links" / f"{name}.npy").rename(tmp_path / "links" / f"{name}.marisa")
    write(tmp_path / "links")
    assert "texts.marisa" not in files(tmp_path / "links")


def test_a_table_goes_to_another_process_with_its_content(tmp_path):
    table = write(tmp_path / "links")
    sent = pickle.dumps(table)
    shutil.rmtree(tmp_path / "links")
    assert [pickle.loads(sent).get(x.text) for x in ENTRIES] == ENTRIES
    assert copy.deepcopy(table) is table
