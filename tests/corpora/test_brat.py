"""Folders of brat become documents with spans, relations and ids."""

import pytest
import spacy

from spacy_luke.corpora.brat import read_brat
from spacy_luke.corpora.conversion_report import Report
from spacy_luke.corpora.options import ConvertOptions
from spacy_luke.errors import CorpusError
from tests.conftest import blank

TEXT = "Ada met Bob in North and South Köln."
ADA, BOB = "T1\tPER 0 3\tAda", "T2\tPER 8 11\tBob"


@pytest.fixture
def read(tmp_path):
    """Reads a folder of texts and their annotation lines; returns documents and events."""

    def run(lines, text=TEXT, **options):
        path = tmp_path / "folder" / "a.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text.encode("utf8") if isinstance(text, str) else text)
        path.with_suffix(".ann").write_text("".join(f"{line}\n" for line in lines), "utf8")
        report = Report()
        nlp = spacy.blank("en")
        docs = list(read_brat(path.parent, nlp, ConvertOptions(**options), report))
        return docs, {what: event.count for what, event in report.events.items()}

    return run


def test_spans_relations_and_ids(read, spans, relations):
    lines = [ADA, BOB, "R1\tmet Arg1:T1 Arg2:T2\t", "N1\tReference T1 Wikidata:Q7\tAda"]
    (doc,), events = read(lines)
    assert spans(doc.ents) == spans(doc.spans["luke_ner"]) == [("Ada", "PER", "Q7"), ("Bob", "PER")]
    assert relations(doc) == [("Ada", "Bob", "met")]
    assert doc.user_data["id"] == "a"
    assert not events


def test_other_annotation_is_counted(read):
    lines = [
        ADA,
        "E1\tMeet:T1 Who:T1",
        "A1\tNeg E1",
        "M1\tNeg T1",
        "#1\tNote T1\tx",
        "*\tEquiv T1 T1",
    ]
    _, events = read([*lines, "R1\tmet Arg1:E1 Arg2:T1", "N1\tReference E1 A:1\tx"])
    assert events == {
        "annotation not read: events": 1,
        "annotation not read: attributes": 2,
        "annotation not read: notes": 1,
        "annotation not read: equivalences": 1,
        "relations left out: an id of theirs has no span": 1,
        "normalizations left out: of an annotation that is not a span": 1,
    }


def test_a_discontinuous_span_is_left_out_and_its_tokens_are_unknown(read, spans):
    lines = [ADA, "T2\tLOC 15 20;31 35\tNorth Köln", "R1\tin Arg1:T1 Arg2:T2"]
    (doc,), events = read(lines)
    assert spans(doc.ents) == [("Ada", "PER")]
    assert [token.text for token in doc if not token.ent_iob_] == ["North", "Köln"]
    assert events == {
        "discontinuous spans left out: there are words between their parts": 1,
        "relations left out: one of their spans was": 1,
    }


def test_parts_with_white_space_between_are_joined(read, spans):
    (doc,), events = read(["T1\tPER 0 3;4 8\tAda King"], text="Ada\nKing ran")
    assert spans(doc.ents) == [("Ada\nKing", "PER")]
    assert events == {"spans in several parts, with white space between, joined": 1}


def test_several_ids_of_a_span_are_left_out(read, spans):
    lines = [ADA, "N1\tReference T1 A:1\tx", "N2\tReference T1 B:2\tx"]
    (doc,), events = read(lines)
    assert spans(doc.ents) == [("Ada", "PER")]
    assert events == {"spans with several ids, left without an id": 1}


@pytest.mark.parametrize("start", [10, 9])
def test_crlf_counts_as_one_or_two_characters(read, spans, start):
    (doc,), events = read([f"T1\tPER {start} {start + 3}\tAda"], text="Hallo so\r\nAda ran")
    assert spans(doc.ents) == [("Ada", "PER")]
    assert not events


@pytest.mark.parametrize("start", [0, 1])
def test_a_byte_order_mark_may_count(read, spans, start):
    (doc,), events = read([f"T1\tPER {start} {start + 3}\tAda"], text="\ufeffAda ran")
    assert spans(doc.ents) == [("Ada", "PER")]
    assert not events


def test_offsets_in_utf16_units_and_wrong_ones_are_found_by_the_text(read, spans):
    lines = ["T1\tPER 3 6\tAda", "T2\tPER 90 93\tEve", "T3\tPER 12 15\tBob"]
    (doc,), events = read(lines, text="🚀 Ada met Bob")
    assert spans(doc.ents) == [("Ada", "PER"), ("Bob", "PER")]
    assert events == {
        "spans whose offsets count UTF-16 units, converted by their text": 1,
        "spans left out: their text is not at their offsets": 1,
        "spans moved: their text is near their offsets": 1,
    }


def test_folders_in_the_folder_are_read_and_texts_without_annotation_are_not(read, tmp_path):
    folder = tmp_path / "folder" / "b"
    folder.mkdir(parents=True)
    (folder / "c.txt").write_text("Nobody.")
    (folder / "c.ann").write_text("")
    (folder / "d.txt").write_text("Nobody knows.")
    docs, events = read([ADA])
    assert [doc.user_data["id"] for doc in docs] == ["a", "b/c"]
    assert not docs[1].ents
    assert events == {"texts skipped: no .ann file": 1}


@pytest.mark.parametrize(
    "line, message",
    [
        (f"T2\tPER 8 {'9' * 5000}\tBob", "a.ann, line 2: .* is not a line of brat"),
        ("T2\tPER 8\tBob", "a.ann, line 2: .* is not a line of brat"),
        ("T2", "a.ann, line 2: 'T2' is not a line of brat"),
        ("\tPER 8 11\tBob", "a.ann, line 2: .* does not begin with the id"),
        ("R1\tmet T1 T2", "a.ann, line 2: .* is not a line of brat"),
        ("X1\tPER 8 11", "a.ann, line 2: .* does not begin with the id"),
        ("T1\tPER 8 11\tBob", "a.ann, line 2: a second 'T1'"),
        ("T2\tPER 8 99", r"a.ann: T2 in line 2 \(PER\) goes from 8 to 99"),
    ],
)
def test_invalid_lines_are_named(read, line, message):
    with pytest.raises(CorpusError, match=message):
        read([ADA, line])


def test_files_without_their_other_half_or_their_encoding_are_named(read, tmp_path):
    with pytest.raises(CorpusError, match="a.txt: byte 0 is not UTF-8"):
        read([ADA], text=b"\xc4da ran")
    (tmp_path / "folder" / "b.ann").write_text("")
    with pytest.raises(CorpusError, match="b.ann has no text: b.txt"):
        read([ADA])
    (tmp_path / "empty").mkdir()
    with pytest.raises(CorpusError, match="empty contains no .txt file"):
        list(read_brat(tmp_path / "empty", blank("en"), ConvertOptions(), Report()))


def test_hidden_files_are_skipped(read, tmp_path):
    (tmp_path / "folder").mkdir()
    for name in ("._a.txt", "._a.ann"):  # as macOS adds to archives
        (tmp_path / "folder" / name).write_bytes(b"\x00\x05\x16\x07\xff")
    docs, events = read([ADA])
    assert [doc.user_data["id"] for doc in docs] == ["a"]
    assert events == {"hidden files skipped": 1}


def test_a_text_with_a_tab_is_read_whole(read, spans):
    (doc,), events = read(["T1\tPER 0 7\tAda\tBob"], "Ada\tBob left.")
    assert spans(doc.ents) == [("Ada\tBob", "PER")]
    assert not events


def test_parts_may_be_in_any_order(read, spans):
    (doc,), events = read(["T1\tPER 8 11;4 7\tmet Bob"])
    assert spans(doc.ents) == [("met Bob", "PER")]
    assert set(events) == {"spans in several parts, with white space between, joined"}
