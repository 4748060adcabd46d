"""What a page is made from: .spacy files, JSON lines, text, and folders of these."""

import json
import zlib

import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span

from spacy_luke.annotations.questions import question_texts
from spacy_luke.cli.pages.documents import read_documents
from spacy_luke.errors import CorpusError

EN = spacy.blank("en")


def texts_of(documents):
    return [(eg.predicted.text, eg.reference.user_data.get("title")) for eg in documents.examples]


def test_a_text_file_is_one_document_or_one_per_line(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_bytes(b"\xef\xbb\xbfAda met Byron.\r\n\r\nByron left.\r\n")
    documents = read_documents(path, EN)
    assert texts_of(documents) == [("Ada met Byron.\n\nByron left.", "notes.txt")]
    assert not documents.examples[0].reference.has_annotation("ENT_IOB")
    assert texts_of(read_documents(path, EN, lines=True)) == [
        ("Ada met Byron.", "notes.txt, line 1"),
        ("Byron left.", "notes.txt, line 3"),
    ]


def test_json_lines_have_texts_titles_and_questions(tmp_path):
    path = tmp_path / "texts.jsonl"
    rows = [{"text": "Ada."}, {"text": "Byron.", "title": "Lord", "questions": ["Who?"]}]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf8")
    documents = read_documents(path, EN)
    assert texts_of(documents) == [("Ada.", "texts.jsonl, line 1"), ("Byron.", "Lord")]
    assert question_texts(documents.examples[1].predicted) == ["Who?"]


def test_a_folder_is_read_with_its_folders_and_what_is_skipped_is_counted(tmp_path, caplog):
    (tmp_path / "deep").mkdir()
    DocBin(docs=[EN("From spaCy")]).to_disk(tmp_path / "a.spacy")
    (tmp_path / "deep" / "b.jsonl").write_text(
        '{"text": "From JSON", "spans": []}\n{"text": " "}\n', encoding="utf8"
    )
    (tmp_path / "c.TXT").write_text("From text", encoding="utf8")
    (tmp_path / ".hidden.txt").write_text("hidden", encoding="utf8")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    documents = read_documents(tmp_path, EN)
    assert sorted(text for text, _ in texts_of(documents)) == [
        "From JSON",
        "From spaCy",
        "From text",
    ]
    assert "1 files skipped" in caplog.text and "1 empty texts skipped" in caplog.text
    assert "1 records whose annotation is not shown" in caplog.text


@pytest.mark.parametrize(
    ("name", "content", "fault"),
    [
        ("x.jsonl", b'{"body": "Ada"}', "line 1: the record has no key 'text'"),
        ("x.jsonl", b'{"text": 3}', "line 1: text of the record is a whole number"),
        ("x.jsonl", b"Ada", "line 1: not JSON"),
        ("x.jsonl", b'{"text": "\\ud800"}', "unpaired surrogate"),
        ("x.txt", b"\xffAda", "x.txt, line 1: byte 0 is not UTF-8"),
        ("x.txt", b"  \n", "contains no documents"),
        ("x.json", b'[{"text": "Ada"}]', "x.json is JSON, not text. Give a .jsonl file"),
        ("x.spacy", b"Ada", "cannot be read as .spacy data"),
        ("x.spacy", zlib.compress(b"\x91\x01"), "cannot be read as .spacy data"),  # a list
    ],
)
def test_bad_files_are_one_error_with_the_line(tmp_path, name, content, fault):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(CorpusError, match=fault):
        read_documents(tmp_path / name, EN)


def test_text_without_a_pipeline_is_an_error(tmp_path):
    (tmp_path / "x.txt").write_text("Ada", encoding="utf8")
    with pytest.raises(CorpusError, match="without PIPELINE"):
        read_documents(tmp_path / "x.txt", None)


def test_a_long_text_is_read_whole(tmp_path):
    (tmp_path / "x.txt").write_text("word " * 250_000, encoding="utf8")
    nlp = spacy.blank("xx")
    (example,) = read_documents(tmp_path / "x.txt", nlp).examples
    assert len(example.predicted) == 250_000


def scored_doc(scores):
    doc = Doc(EN.vocab, words=["Ada", "met", "Byron"])
    doc.ents = [Span(doc, 0, 1, "PER"), Span(doc, 2, 3, "PER")]
    doc.spans["sc"] = list(doc.ents)[: len(scores)]
    doc.spans["sc"].attrs["scores"] = scores
    return doc


def test_empty_documents_are_counted(tmp_path, caplog):
    path = tmp_path / "docs.spacy"
    DocBin(docs=[EN("Ada"), EN(""), EN("Bob")]).to_disk(path)
    assert len(read_documents(path, EN).examples) == 2
    assert "docs.spacy: 1 empty documents skipped" in caplog.text
    DocBin(docs=[EN("")]).to_disk(path)
    with pytest.raises(CorpusError, match="contains no documents but empty ones"):
        read_documents(path, EN)


def test_a_file_of_predictions_is_not_annotation_but_corrected_ones_are(tmp_path):
    for name, scores in (("predicted", [0.9, 0.8]), ("corrected", [0.9])):
        docs = [scored_doc(scores), EN("Nobody here")]
        DocBin(docs=docs, store_user_data=True).to_disk(tmp_path / f"{name}.spacy")
    assert read_documents(tmp_path / "predicted.spacy", EN).scored == {"doc.ents"}
    assert read_documents(tmp_path / "corrected.spacy", EN).scored == set()
