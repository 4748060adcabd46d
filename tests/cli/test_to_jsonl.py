"""``spacy luke to-jsonl``: what is predicted, as JSON lines that ``convert`` reads."""

import json
import os
import zlib

import pytest
import spacy
from spacy.cli import app
from spacy.tokens import DocBin
from typer.testing import CliRunner

import spacy_luke.cli  # noqa: F401  (adds `luke` to spaCy's commands)
from spacy_luke.annotations.annotated import spans_annotated
from spacy_luke.annotations.questions import Answer, Answers
from spacy_luke.corpora.json_docs import doc_to_json

TEXT = "Émile 🙂 Zola wrote it , by Zola ,  in Médan ."


@pytest.fixture
def doc():
    nlp = spacy.blank("fr")
    doc = nlp(TEXT)
    zola = doc.char_span(0, 12, label="PER", kb_id="Q1")
    again = doc.char_span(TEXT.index("by Zola") + 3, TEXT.index("by Zola") + 7, label="PER")
    place = doc.char_span(TEXT.index("Médan"), TEXT.index("Médan") + 5, label="LOC", kb_id="NIL")
    doc.ents = [zola, again, place]
    doc.spans["mine"] = [zola, place]
    doc.spans["mine"].attrs["scores"] = [0.75, 0.5]
    zola, again, place = doc.ents
    doc._.relations = [(zola, place, "read_in", 0.625), (again, place, "read_in", 1.0)]
    zola._.types = {"/person": 0.5, "/person/author": 0.25}
    place._.types = {}
    zola._.candidates = [("Q1", 0.875), ("Q2", 0.125)]
    doc._.questions = ["Where?", "Why?"]
    where = Answers("Where?", (Answer(place, 0.5),), 0.25)
    doc._.answers = [where, Answers("Why?", (), 1.0)]
    doc._.queries = ["@placeholder wrote."]
    doc._.completions = [[("Zola", [zola, again])]]
    doc.user_data["meta"] = {"id": 7}
    return doc


@pytest.fixture
def run(tmp_path, monkeypatch, doc):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    empty = spacy.blank("fr")("")
    DocBin(docs=[doc, empty], store_user_data=True).to_disk("docs.spacy")

    def invoke(*args, status=0):
        result = CliRunner().invoke(app, ["luke", *args])
        assert result.exit_code == status, (result.output, result.exception)
        return " ".join(result.output.split())

    return invoke


def lines(path):
    return [json.loads(line) for line in path.read_text("utf8").splitlines()]


def test_everything_is_written_by_characters(run, tmp_path):
    assert "2 documents" in run("to-jsonl", "docs.spacy", "new/out.jsonl")
    written, empty = lines(tmp_path / "new" / "out.jsonl")
    assert written["text"] == TEXT and empty["text"] == "" and empty["spans"] == []
    zola, again, place = written["spans"]
    assert TEXT[zola["start"] : zola["end"]] == zola["text"] == "Émile 🙂 Zola"
    assert (zola["score"], zola["kb_id"], zola["label"]) == (0.75, "Q1", "PER")
    assert zola["types"] == ["/person", "/person/author"] and zola["type_scores"] == [0.5, 0.25]
    assert zola["candidates"] == [{"id": "Q1", "score": 0.875}, {"id": "Q2", "score": 0.125}]
    assert again.keys() == {"start", "end", "text", "label"}
    assert place["kb_id"] == "NIL" and place["types"] == place["type_scores"] == []
    relation = written["relations"][0]
    assert TEXT[relation["tail_start"] : relation["tail_end"]] == "Médan"
    assert (relation["label"], relation["score"]) == ("read_in", 0.625)
    assert written["questions"] == ["Where?", "Why?"]
    where, why = written["answers"]
    assert where["answers"][0]["text"] == "Médan" and where["no_answer"] == 0.25
    assert where["answers"][0]["score"] == 0.5 and why["answers"] == []
    (completion,) = written["completions"][0]["candidates"]
    assert completion["text"] == "Zola" and len(completion["mentions"]) == 2
    assert written["meta"] == {"id": 7} and "meta" not in empty


def test_convert_reads_it_back(run, tmp_path, doc):
    run("to-jsonl", "docs.spacy", "out.jsonl")
    output = run("convert", "jsonl", "out.jsonl", "back.spacy", "--lang", "fr")
    assert "empty text: 1" in output
    (back,) = DocBin().from_disk(tmp_path / "back.spacy").get_docs(spacy.blank("fr").vocab)
    assert [x.text for x in back] == [x.text for x in doc] and back.text == TEXT
    assert [(x.start, x.end, x.label_, x.kb_id_) for x in back.ents] == [
        (x.start, x.end, x.label_, x.kb_id_) for x in doc.ents
    ]
    assert [(x.head.start, x.tail.start, x.label) for x in back._.relations] == [
        (x.head.start, x.tail.start, x.label) for x in doc._.relations
    ]
    assert "types left out: their score is below 0.5: 1" in output
    assert [x._.types for x in back.ents] == [
        x._.types and {name: 1.0 for name, y in x._.types.items() if y >= 0.5} for x in doc.ents
    ]
    assert back.user_data["meta"] == {"id": 7}


def test_a_group_is_written_instead_of_the_entities(run, tmp_path, doc):
    assert "no spans group 'other'; it has ['mine']" in run(
        "to-jsonl", "docs.spacy", "out.jsonl", "--spans-key", "other", status=1
    )
    # The relation of the second mention has no place in this group.
    output = run("to-jsonl", "docs.spacy", "out.jsonl", "--spans-key", "mine")
    assert "1 relations were left out" in output
    assert "left out" not in run("to-jsonl", "docs.spacy", "ents.jsonl")
    assert [x["score"] for x in doc_to_json(doc, "mine")["spans"]] == [0.75, 0.5]


def test_relations_of_removed_entities_are_left_out_with_a_warning(doc, caplog):
    assert len(doc_to_json(doc)["relations"]) == len(doc._.relations) == 2
    assert not caplog.text
    doc.ents = doc.ents[:1]
    written = doc_to_json(doc)
    assert len(written["spans"]) == 1 and written["relations"] == []
    assert "2 relations of" in caplog.text and "they are no entities" in caplog.text


def test_bad_input_is_one_error(run, tmp_path):
    (tmp_path / "bad.spacy").write_bytes(b"none")
    assert "bad.spacy cannot be read as .spacy data" in run("to-jsonl", "bad.spacy", "x", status=1)
    (tmp_path / "bad.spacy").write_bytes(zlib.compress(b"\x91\x01"))  # a list
    assert "bad.spacy cannot be read as .spacy data" in run("to-jsonl", "bad.spacy", "x", status=1)
    assert "none.spacy cannot be read" in run("to-jsonl", "none.spacy", "x", status=1)
    (tmp_path / "there.jsonl").write_text("mine")
    assert "use --force" in run("to-jsonl", "docs.spacy", "there.jsonl", status=1)
    assert (tmp_path / "there.jsonl").read_text() == "mine"
    run("to-jsonl", "docs.spacy", "there.jsonl", "--force")


def test_spacy_writes_span_attributes_itself(doc):
    written = doc.to_json(underscore=["types", "candidates"])["underscore_span"]
    assert written["types"][0]["value"] == {"/person": 0.5, "/person/author": 0.25}
    assert written["candidates"][0]["value"] == [["Q1", 0.875], ["Q2", 0.125]]


def test_spans_that_are_not_entities_are_reported(run, tmp_path, doc):
    assert "not entities" not in run("to-jsonl", "docs.spacy", "out.jsonl")
    doc.spans["nested"] = [*doc.ents, doc.char_span(0, 5, label="GIVEN")]
    DocBin(docs=[doc], store_user_data=True).to_disk("docs.spacy")
    output = run("to-jsonl", "docs.spacy", "out.jsonl", "--force")
    assert "1 spans of the group 'nested' are not entities and were not written" in output


def test_the_documents_are_not_replaced(run, tmp_path):
    before = (tmp_path / "docs.spacy").read_bytes()
    assert "must be different" in run("to-jsonl", "docs.spacy", "docs.spacy", "-F", status=1)
    assert (tmp_path / "docs.spacy").read_bytes() == before


def test_unknown_annotation_stays_unknown(run, tmp_path):
    """Else a corpus without entities would teach that there are none."""
    nlp = spacy.blank("fr")
    bare, partial, whole = (nlp("Ada vit à Paris") for _ in range(3))
    ada = partial.char_span(0, 3, label="PER")
    partial.set_ents([ada], outside=[partial[1:2]], default="missing")
    whole.ents = [whole.char_span(0, 3, label="PER")]
    bare._.questions = ["Qui ?"]
    DocBin(docs=[bare, partial, whole], store_user_data=True).to_disk("three.spacy")
    output = run("to-jsonl", "three.spacy", "three.jsonl")
    assert "1 tokens that are annotated as being in no entity" in output
    output = run("convert", "jsonl", "three.jsonl", "again.spacy", "--lang", "fr")
    assert "questions not read: 1" in output
    docs = DocBin().from_disk(tmp_path / "again.spacy").get_docs(nlp.vocab)
    tags = [[token.ent_iob for token in doc] for doc in docs]
    assert tags == [[0, 0, 0, 0], [3, 0, 0, 0], [3, 2, 2, 2]]


def test_unknown_annotation_stays_unknown_where_a_group_is_written(run, tmp_path):
    """Else readers of the file would learn that the tokens around the spans are in no entity."""
    nlp = spacy.blank("fr")
    partial, nested, grouped, unlisted = (nlp("Ada vit à Paris") for _ in range(4))
    for doc in (partial, nested, grouped):
        doc.spans["found"] = [doc.char_span(0, 3, label="PER")]
    partial.set_ents(list(partial.spans["found"]), default="missing")
    nested.spans["found"] = [*nested.spans["found"], nested.char_span(0, 7, label="CLAUSE")]
    nested.set_ents([], missing=[nested[0:2]], default="outside")
    DocBin(docs=[partial, nested, grouped, unlisted]).to_disk("four.spacy")
    run("to-jsonl", "four.spacy", "four.jsonl", "--spans-key", "found")
    run("convert", "jsonl", "four.jsonl", "again.spacy", "--lang", "fr")
    docs = DocBin().from_disk(tmp_path / "again.spacy").get_docs(nlp.vocab)
    tags = [[token.ent_iob for token in doc] for doc in docs]
    assert tags == [[3, 0, 0, 0], [0, 0, 2, 2], [3, 2, 2, 2], [0, 0, 0, 0]]
    of_another = nlp("Ada vit à Paris")  # with entities, and nothing is said of the group
    of_another.ents = [of_another.char_span(0, 3, label="PER")]
    DocBin(docs=[nested, of_another]).to_disk("one.spacy")
    run("to-jsonl", "one.spacy", "one.jsonl", "--spans-key", "found")
    run("convert", "jsonl", "one.jsonl", "one-again.spacy", "--lang", "fr", "--spans-key", "found")
    _, doc = DocBin().from_disk(tmp_path / "one-again.spacy").get_docs(nlp.vocab)
    assert not spans_annotated(of_another, "found") and not spans_annotated(doc, "found")


def test_a_pipe_is_refused(run, tmp_path):
    """A file is read more than once: of a pipe, records would be lost."""
    os.mkfifo(tmp_path / "pipe.jsonl")
    output = run("convert", "jsonl", "pipe.jsonl", "out.spacy", status=1)
    assert "pipe.jsonl is not a regular file" in output
