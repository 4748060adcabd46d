"""HIPE's columns become documents with their words, sentences, entities and ids."""

import pytest
from spacy.tokens import DocBin
from spacy.training import Corpus

from spacy_luke.corpora.hipe import read_documents, read_header, read_hipe
from spacy_luke.errors import ConfigError, CorpusError
from tests.conftest import blank

FORMAT = "hipe"
NAMES = ["TOKEN", "NE-COARSE-LIT", "NE-COARSE-METO", "NE-FINE-LIT", "NE-FINE-METO"]
NAMES += ["NE-FINE-COMP", "NE-NESTED", "NEL-LIT", "NEL-METO", "MISC"]
COMMENTS = "# hipe2022:date = 1886-06-22\n# hipe2022:document_id = page 1\n# sonar:page = 1\n"


def row(word, coarse="O", nel="_", misc="_", **cells):
    given = {"TOKEN": word, "NE-COARSE-LIT": coarse, "NEL-LIT": nel, "MISC": misc}
    given.update({name.replace("_", "-"): cell for name, cell in cells.items()})
    return "\t".join(given.get(name, "_") for name in NAMES)


def file_of(*lines, comments=COMMENTS):
    return "\t".join(NAMES) + "\n" + comments + "\n".join(lines) + "\n"


ROWS = [
    row("Otto", "B-PER", "NIL"),
    row("Selm", "I-PER", "NIL", "NoSpaceAfter|LED0.00"),
    row(".", misc="EndOfSentence"),
    row("Nach"),
    row("Ber¬", "B-LOC", "Q64", "NoSpaceAfter|EndOfLine"),
    row("lin", "I-LOC", "Q64"),
    row("1886", "B-date"),
]


def test_words_text_sentences_entities_and_ids(convert, spans):
    (doc,), report = convert(FORMAT, file_of(*ROWS))
    assert doc.text == "Otto Selm. Nach Ber¬lin 1886"
    assert [token.text for token in doc] == ["Otto", "Selm", ".", "Nach", "Ber¬", "lin", "1886"]
    assert [sent.text for sent in doc.sents] == ["Otto Selm.", "Nach Ber¬lin 1886"]
    assert (
        spans(doc.ents)
        == spans(doc.spans["luke_ner"])
        == [
            ("Otto Selm", "PER", "NIL"),
            ("Ber¬lin", "LOC", "Q64"),
            ("1886", "date"),
        ]
    )
    assert doc.user_data["id"] == "page 1"
    assert doc.user_data["meta"]["hipe2022:date"] == "1886-06-22"
    assert (report.sentences, report.links, report.nil) == (2, 1, 1)
    assert not report.events


def test_documents_are_separated_by_blank_lines_or_ids(convert):
    second = "# hipe2022:document_id = page 2"
    inner = "# segment = 4"
    text = file_of(*ROWS[:3], "", second, ROWS[3], inner, ROWS[4], second + "b", *ROWS[5:], "", "")
    docs, _ = convert(FORMAT, text)
    assert [doc.text for doc in docs] == ["Otto Selm.", "Nach Ber¬", "lin 1886"]
    assert [doc.user_data["id"] for doc in docs] == ["page 1", "page 2", "page 2b"]


def test_sentences_are_unknown_if_no_end_is_marked(convert):
    (doc,), report = convert(FORMAT, file_of(*ROWS[3:]))
    assert not doc.has_annotation("SENT_START")
    assert report.sentences == 0


def test_words_that_begin_with_a_hash_are_no_comments(convert):
    (doc,), _ = convert(FORMAT, file_of(row("#"), row("###ud", "B-LOC"), row("x")))
    assert [token.text for token in doc] == ["#", "###ud", "x"]


def test_other_columns_may_be_chosen(convert, spans):
    rows = [
        row("Kanzler", "B-pers", "Q1", NE_FINE_LIT="B-pers.ind", NEL_METO="Q5"),
        row("von", "I-pers", "Q1", NE_FINE_LIT="I-pers.ind", NE_COARSE_METO="O"),
        row("Ulm", "I-pers", "Q1", NE_FINE_LIT="I-pers.ind", NE_NESTED="B-loc"),
    ]
    rows[2] = rows[2].replace("I-pers\t_", "I-pers\tB-org").replace("Q1\t_", "Q1\tQ5")
    text = file_of(*rows)
    (doc,), _ = convert(FORMAT, text, ne_columns=("NE-FINE-LIT",))
    assert spans(doc.ents) == [("Kanzler von Ulm", "pers.ind", "Q1")]
    (doc,), _ = convert(FORMAT, text, ne_columns=("NE-COARSE-METO",))
    assert spans(doc.ents) == [("Ulm", "org", "Q5")]
    (doc,), _ = convert(FORMAT, text, ne_columns=("NE-COARSE-LIT", "NE-NESTED"), spans_key="all")
    assert spans(doc.spans["all"]) == [("Kanzler von Ulm", "pers", "Q1"), ("Ulm", "loc")]
    assert not doc.ents


def test_documents_without_annotation_in_the_column_are_skipped(convert):
    text = file_of(*ROWS, "", row("Ulm", "_"), "", row("Ulm", "B-LOC", NE_FINE_LIT="B-loc"))
    result = convert(FORMAT, text)
    assert len(result.docs) == 2
    assert result.events == {"documents skipped: not annotated in NE-COARSE-LIT": (1, "line 13")}
    result = convert(FORMAT, text, ne_columns=("NE-FINE-LIT",))
    assert [doc.text for doc in result.docs] == ["Ulm"]


def test_repairs_different_ids_and_parts_of_words_are_counted(convert, spans):
    rows = [
        row("Otto", "I-PER", "Q1"),
        row("von", "B-PER", "NIL"),
        row("Selm", "I-PER", "Q2"),
        row("Ulms", "B-LOC", "Q3", "Partial-0:3"),
    ]
    result = convert(FORMAT, file_of(*rows))
    assert spans(result.docs[0].ents) == [
        ("Otto", "PER", "Q1"),
        ("von Selm", "PER"),
        ("Ulms", "LOC", "Q3"),
    ]
    assert result.events == {
        "entities not begun by a B- tag, begun at their first tag": (1, "line 5"),
        "entities whose words have different ids, left without an id": (1, "line 6"),
        "entities that begin or end inside a word, taken as whole words": (1, "line 8"),
    }


def test_a_text_that_is_tokenised_differently_is_noted_and_its_spaces_can_be_ignored(
    convert, tmp_path
):
    text = file_of(
        row("Ulm", "B-LOC", misc="NoSpaceAfter"), row("UND", misc="_"), row("Bonn", "B-LOC")
    )
    (doc,), report = convert(FORMAT, text)
    assert doc.text == "UlmUND Bonn"
    (cut,) = report.events.items()
    assert cut[0].startswith("entities that begin or end inside a token of the 'en' tokenizer")
    assert cut[1].count == 1
    (doc,), report = convert(FORMAT, text, ignore_spacing=True)
    assert doc.text == "Ulm UND Bonn "
    assert not report.events
    (doc,), _ = convert(FORMAT, text, lang="zh", ignore_spacing=True)
    assert doc.text == "Ulm UND Bonn " and doc.has_unknown_spaces
    DocBin(docs=[doc]).to_disk(tmp_path / "out.spacy")
    (example,) = Corpus(tmp_path / "out.spacy")(blank("en"))
    assert [token.text for token in example.predicted] == ["Ulm", "UND", "Bonn"]


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "corpus.in is empty"),
        ("Ulm\tB-LOC\n", "line 1: the names of HIPE's columns are needed"),
        (file_of(row("Ulm") + "\t_"), "line 5: 11 columns in"),
        (file_of(row("Ulm", "LOC")), "line 5: NE-COARSE-LIT is 'LOC'. A tag is O, or B or I"),
        (file_of(row("Ulm", "E-LOC")), "NE-COARSE-LIT is 'E-LOC'"),
        (file_of(row("")), "corpus.in, line 5: the record has no words"),
    ],
)
def test_an_invalid_file_is_an_error_with_its_line(convert, text, message):
    with pytest.raises(CorpusError, match=message):
        convert(FORMAT, text)


def test_a_column_that_the_file_lacks_is_an_error(convert):
    with pytest.raises(ConfigError, match="ne_columns has 'FINE', but the columns of .* TOKEN, NE"):
        convert(FORMAT, file_of(*ROWS), ne_columns=("FINE",))
    with pytest.raises(ConfigError, match="ne_columns is empty"):
        convert(FORMAT, file_of(*ROWS), ne_columns=())


# file: documents, entities, ids, NIL
REAL = {
    "ajmc-train-de": (76, 1739, 839, 16),
    "ajmc-dev-de": (14, 403, 218, 3),
    "ajmc-train-en": (60, 1823, 1020, 30),
    "ajmc-dev-en": (14, 416, 223, 7),
    "ajmc-train-fr": (72, 1621, 894, 16),
    "ajmc-dev-fr": (17, 391, 204, 10),
    "newseye-dev-de": (12, 540, 419, 119),
    "newseye-train-fi": (24, 2151, 1283, 868),
    "newseye-dev-fi": (24, 223, 133, 90),
    "newseye-dev-fr": (35, 752, 523, 229),
    "newseye-train-sv": (21, 2141, 1447, 694),
    "newseye-dev-sv": (21, 266, 199, 67),
    "sonar-dev-de": (10, 654, 507, 144),
}


@pytest.mark.parametrize("name", REAL)
def test_published_corpora_are_read_whole(convert_real, data_dir, name):
    file = f"hipe2022-ccby/HIPE-2022-v2.1-{name}.tsv"
    docs, report = convert_real(file, read_hipe, lang=name[-2:])
    assert (len(docs), sum(report.labels.values()), report.links, report.nil) == REAL[name]
    path = data_dir / file
    documents = list(read_documents(path, read_header(path)))
    for doc, document in zip(docs, documents, strict=True):
        rows = document.rows
        assert [token.text for token in doc] == [x.cells["TOKEN"] for x in rows]
        assert doc.user_data["id"] == document.name
        tags = [x.cells["NE-COARSE-LIT"].partition("-") for x in rows]
        assert [token.ent_type_ for token in doc] == [tag[2] for tag in tags]
        begins = [i for i, tag in enumerate(tags) if tag[0] == "B"]
        assert {ent.start for ent in doc.ents} >= set(begins)
        for ent in doc.ents:
            ids = {row.cells["NEL-LIT"] for row in rows[ent.start : ent.end]}
            assert ent.kb_id_ == ("" if len(ids) > 1 else ids.pop().replace("_", ""))
