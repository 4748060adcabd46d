"""Tables with a header become documents, of spans or of tagged words."""

import pytest

from spacy_luke.corpora.conversion_report import Report
from spacy_luke.corpora.options import ConvertOptions
from spacy_luke.corpora.tables import read_tables
from spacy_luke.errors import ConfigError, CorpusError
from tests.conftest import blank

FORMAT = "csv"
TEXT = '"Ada, a poet, met Bob."'
KAGGLE = """Sentence #,Word,POS,Tag
Sentence: 1,Ada,NNP,B-per
,Lovelace,NNP,I-per
,said,VBD,O
,QUOTED,``,O
Sentence: 2,Köln,NNP,B-geo
,",",",",O
""".replace("QUOTED", '"' * 4)


@pytest.fixture
def convert_bytes(tmp_path):
    """Reads a file of bytes."""

    def run(content, **options):
        path = tmp_path / "table.csv"
        path.write_bytes(content)
        return list(read_tables(path, blank("en"), ConvertOptions(**options), Report()))

    return run


def test_a_row_per_span(convert, spans):
    content = f"text,start,end,label\n{TEXT},0,3,PER\n{TEXT},17,20,PER\nNobody came.,,,\n"
    docs, report = convert(FORMAT, content)
    assert [spans(doc.ents) for doc in docs] == [[("Ada", "PER"), ("Bob", "PER")], []]
    assert docs[0].text == "Ada, a poet, met Bob."
    assert not report.events
    assert report.notes[0] == "columns: text 'text', start 'start', end 'end', label 'label'"


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("begin", ["", "\ufeff", "\n"])
def test_delimiters_line_ends_and_byte_order_marks(convert, spans, delimiter, end, begin):
    rows = [["Text", "Begin", "End", "Type"], ["Ada ran.", "0", "3", "PER"], []]
    content = begin + end.join(delimiter.join(row) for row in rows)
    (doc,), _ = convert(FORMAT, content)
    assert spans(doc.ents) == [("Ada", "PER")]


@pytest.mark.parametrize("mention", [False, True])
def test_offsets_that_count_line_ends_once_are_read_so_in_a_file_of_windows(
    convert, spans, mention
):
    text = "x\ny\nz\nw\nthere Ada ran to Bob"
    names = [("Ada", "PER"), ("Bob", "PER")]
    rows = [
        f'"{text}",{text.index(name)},{text.index(name) + 3},{label}' + f",{name}" * mention
        for name, label in names
    ]
    content = "\n".join(["text,start,end,label" + ",mention" * mention, *rows])
    for written in (content, content.replace("\n", "\r\n")):
        (doc,), report = convert(FORMAT, written)
        assert spans(doc.ents) == names and doc.text == text
    assert report.events["texts in whose offsets CR LF is one character, read so"].count == 1
    counted = content.replace("\n", "\r\n")
    for name, _ in names:  # and files in which they are two
        i = text.index(name)
        counted = counted.replace(f",{i},{i + 3},", f",{i + 4},{i + 7},")
    (doc,), report = convert(FORMAT, counted)
    assert spans(doc.ents) == names and "\r\n" in doc.text and not report.events


def test_so_they_are_in_a_script_without_spaces(convert, spans):
    text = "报告。\n王小明住在北京。\n他在上海遇见了李雷。"
    names = [("王小明", "PER"), ("北京", "LOC"), ("上海", "LOC"), ("李雷", "PER")]
    rows = [f'"{text}",{text.index(x)},{text.index(x) + len(x)},{y}' for x, y in names]
    written = "\r\n".join(["text,start,end,label", *rows]).replace("\n", "\r\n")
    (doc,), report = convert(FORMAT, written.replace("\r\r", "\r"), lang="zh")
    assert spans(doc.ents) == names and doc.text == text
    assert "texts in whose offsets CR LF is one character, read so" in report.events
    unclear = 'text,start,end,label\r\n"报告。\r\n住在北京",6,8,LOC\r\n'  # or 5 to 7
    assert [x for x in convert(FORMAT, unclear, lang="zh").events if "once or twice" in x]


@pytest.mark.parametrize(
    "text, start, end, lang",
    [
        ("报告。\r\n他住在北京", 8, 10, "zh"),
        ("Costs\r\nabout $100", 14, 17, "en"),
        ("Visit\r\nthe U.S.", 11, 15, "en"),
        ("He\r\nlikes C++", 10, 13, "en"),
    ],
)
def test_a_span_at_the_end_of_a_text_whose_line_ends_count_twice(
    convert, spans, text, start, end, lang
):
    content = f'text,start,end,label\r\n"{text}",{start},{end},X\r\n'
    (doc,), _ = convert(FORMAT, content, lang=lang, alignment="split")
    assert spans(doc.ents) == [(text[start:end], "X")]
    with pytest.raises(CorpusError, match=rf"line 3: the span \(X\) goes from {start} to 40"):
        convert(FORMAT, content.replace(f",{end},", ",40,"), lang=lang)


def test_line_ends_that_may_count_once_or_twice_are_told(convert, spans):
    content = 'text,start,end,label\r\n"x\r\ny\r\nz\r\nw\r\nthe Ada and Bob",12,15,PER\r\n'
    (doc,), report = convert(FORMAT, content)
    assert spans(doc.ents) == [("the", "PER")]  # or Ada
    assert [x for x in report.events if "once or twice" in x]
    before = content.replace(",12,15,", ",0,1,").replace("x\r\ny", "x y\r\n")
    assert not convert(FORMAT, before).report.events


def test_ids_join_rows_and_ids_of_a_knowledge_base_are_read(convert, spans):
    content = (
        "id,text,start,end,label,kb_id\n"
        "1,Ada ran.,0,3,PER,Q1\n2,Ada ran.,0,3,PER,\n1,,4,7,ACT,NIL\n"
    )
    docs, _ = convert(FORMAT, content)
    assert [spans(doc.ents) for doc in docs] == [
        [("Ada", "PER", "Q1"), ("ran", "ACT", "NIL")],
        [("Ada", "PER")],
    ]
    assert [doc.user_data["id"] for doc in docs] == ["1", "2"]


def test_whole_numbers_as_pandas_writes_them_are_reported_as_ids(convert, spans):
    content = "text,start,end,label,kb_id\nAda ran.,0.0,3.0,PER,17.0\nAda ran.,4,7,ACT,\n"
    (doc,), report = convert(FORMAT, content)
    assert spans(doc.ents) == [("Ada", "PER", "17.0"), ("ran", "ACT")]
    what = "ids that end in .0, as pandas writes whole numbers beside empty cells, kept so"
    assert report.events.keys() == {what} and report.events[what].first == "line 2"
    (doc,), report = convert(FORMAT, content.replace("17.0", "v1.0"))
    assert spans(doc.ents)[0] == ("Ada", "PER", "v1.0") and not report.events


def test_ids_of_spans_do_not_divide_a_text(convert, spans):
    content = "id,text,start,end,label\n7,Ada met Bob.,0,3,PER\n8,Ada met Bob.,8,11,PER\n"
    result = convert(FORMAT, content)
    assert [spans(doc.ents) for doc in result.docs] == [[("Ada", "PER"), ("Bob", "PER")]]
    what = "rows with an id of their own but the text of an earlier row, read as its further spans"
    assert result.events == {what: (1, "line 3")}


def test_the_text_of_a_span_is_checked(convert, spans):
    content = (
        "text\tstart\tend\tlabel\tmention\n🚀 Ada met Bob\t3\t6\tPER\tAda\n"
        "🚀 Ada met Bob\t8\t11\tPER\tBob\n🚀 Ada met Bob\t2\t5\tPER\tEve\n"
    )
    result = convert(FORMAT, content)
    assert spans(result.docs[0].ents) == [("Ada", "PER"), ("Bob", "PER")]
    assert result.events == {
        "spans whose offsets count UTF-16 units, converted by their text": (1, "line 2"),
        "spans moved: their text is near their offsets": (1, "line 2"),
        "spans left out: their text is not at their offsets": (1, "line 2"),
    }


def test_columns_may_be_given(convert, spans):
    content = "Satz,von,bis,Art\nAda ran.,0.0,3.0,PER\n"
    fields = (("text", "Satz"), ("start", "von"), ("end", "bis"), ("label", "Art"))
    (doc,), _ = convert(FORMAT, content, fields=fields)
    assert spans(doc.ents) == [("Ada", "PER")]
    with pytest.raises(ConfigError, match="fields is 'token'; choose one of text, start"):
        convert(FORMAT, content, fields=(("token", "Satz"),))
    with pytest.raises(ConfigError, match="fields has 'x', but .* are 'Satz', 'von', 'bis', 'Art'"):
        convert(FORMAT, content, fields=(("text", "x"),))


def test_a_row_per_word(convert, spans):
    docs, report = convert(FORMAT, KAGGLE)
    assert [spans(doc.ents) for doc in docs] == [[("Ada Lovelace", "per")], [("Köln", "geo")]]
    assert [[token.text for token in doc] for doc in docs] == [
        ["Ada", "Lovelace", "said", '"'],
        ["Köln", ","],
    ]
    assert (report.sentences, report.scheme) == (2, "IOB2 (detected)")
    (doc,), _ = convert(FORMAT, KAGGLE, n_sents=5)
    assert [sent.text for sent in doc.sents][1].startswith("Köln ,")


def test_settings_of_the_other_shape_are_refused(convert):
    of_words, of_spans = {"n_sents": 5, "scheme": "BILOU"}, {"spans_key": "sc", "offsets": "utf16"}
    for content, settings in ((KAGGLE, of_spans), ("text,start,end,label\nAda,0,3,P\n", of_words)):
        for name, value in settings.items():
            with pytest.raises(ConfigError, match=f" per row, for .* no setting {name}."):
                convert(FORMAT, content, **{name: value})


def test_line_ends_that_windows_wrote_twice_are_one(convert, spans):
    """By csv.writer and a file that was not opened with newline="": no row between is empty."""
    docs, report = convert(FORMAT, KAGGLE.replace("\n", "\r\r\n"))
    assert [spans(doc.ents) for doc in docs] == [[("Ada Lovelace", "per")], [("Köln", "geo")]]
    assert report.events["line ends of CR CR LF, read as one"].count == KAGGLE.count("\n")


def test_a_sentence_may_be_named_in_every_row_or_end_with_an_empty_row(convert):
    named = "sentence_id,token,ner\n1,Ada,B-PER\n1,ran,O\n2,Bob,B-PER\n"
    blank = "token,ner\nAda,B-PER\nran,O\n\nBob,B-PER\n,\nEve,B-PER\n"
    assert [len(doc) for doc in convert(FORMAT, named).docs] == [2, 1]
    docs, report = convert(FORMAT, blank)
    assert [len(doc) for doc in docs] == [2, 1, 1]
    assert "no column of sentences: only empty rows end a sentence" in report.notes


def test_numbers_of_sentences_may_begin_anew_in_every_document(convert):
    content = "doc_id,sent_id,word,tag\na,0,Ada,B-PER\nb,0,Lovelace,I-PER\nb,1,ran,O\n"
    docs, report = convert(FORMAT, content)
    assert [doc.text.split() for doc in docs] == [["Ada"], ["Lovelace"], ["ran"]]
    assert "document 'doc_id'" in report.notes[0]
    joined = convert(FORMAT, content, n_sents=3).docs
    assert [doc.text.split() for doc in joined] == [["Ada"], ["Lovelace", "ran"]]


def test_quotation_marks_that_nothing_closes_are_words(convert):
    content = 'word\ttag\n"\tO\nAda\tB-PER\n"\tO\n'
    (doc,), _ = convert(FORMAT, content)
    assert [token.text for token in doc] == ['"', "Ada", '"']


def test_a_row_without_a_word_is_counted(convert):
    result = convert(FORMAT, "word,tag\nAda,B-PER\n,O\n")
    assert result.events == {"rows left out: they have no word": (1, "line 3")}


def test_encodings(convert_bytes, spans):
    for content, options in [
        (KAGGLE.encode("latin-1"), {"encoding": "latin-1"}),
        (KAGGLE.encode("utf-16"), {}),
        (KAGGLE.encode("utf-8-sig"), {}),
        (KAGGLE.encode("utf-8-sig"), {"encoding": "utf-8"}),
        (f"\ufeff{KAGGLE}".encode("utf-16-le"), {"encoding": "utf-16-le"}),
    ]:
        assert spans(convert_bytes(content, **options)[1].ents) == [("Köln", "geo")]
    with pytest.raises(CorpusError, match="table.csv, line 6: not utf-8. Give the encoding"):
        convert_bytes(KAGGLE.encode("latin-1"))
    with pytest.raises(CorpusError, match="table.csv, line 2: not utf-8"):
        convert_bytes("\ufeffword,tag\n".encode() + b"\xe4,O\n")
    with pytest.raises(ConfigError, match="encoding 'x' is unknown"):
        convert_bytes(b"a", encoding="x")


def test_a_cell_may_be_long_and_have_line_breaks(convert):
    text = "Ada ran.\n" * 30_000
    (doc,), _ = convert(FORMAT, f'text,start,end,label\n"{text}",0,3,PER\n')
    assert doc.ents[0].text == "Ada"


@pytest.mark.parametrize(
    "content, message",
    [
        ("", "corpus.in is empty"),
        ("a,b\n1,2\n", "columns are 'a', 'b'. Needed are text, start, end and label .* word and"),
        ("Ada B-PER\n", "The format columns reads files without a header"),
        ("text,start,end,label\nAda,0,3\n", "line 2: 3 columns, but the header has 4: 'text'"),
        ("text,start,end,label\nAda,0,x,PER\n", "line 2: the end is 'x', not a whole number"),
        (f"text,start,end,label\nAda,0,{'9' * 5000},PER\n", "the end is '9+', not a whole number"),
        ("text,start,end,label\nAda,0,3,\n", "line 2: the span has an empty label"),
        ("text,start,end,label\nAda,0,9,X\n", r"line 2: the span \(X\) goes from 0 to 9"),
        ("text,start,end,label\n,0,9,X\n", "line 2: the text is empty"),
        ("id,text,start,end,label\n1,Ada,0,3,X\n1,Eve,0,3,X\n", "line 3: the id '1' has another"),
        ("word,tag\nAda,PER\n", "line 2: 'PER' is not a tag"),
        ("word,tag\nAda,B-PER\nEve,L-PER\nBob,S-PER\n", "mixes tags of BILOU"),
        ("word,tag\n", "contains no word"),
        ('text,start,end,label\n"Ada, ran,0,3,X\n', "not a table"),
    ],
)
def test_invalid_tables_name_the_line_or_the_columns(convert, content, message):
    with pytest.raises(CorpusError, match=message):
        convert(FORMAT, content)


@pytest.mark.parametrize("format_name", ["csv", "label-studio"])
@pytest.mark.parametrize("delimiter", [",", "\t"])
def test_the_csv_of_label_studio_is_an_error_that_names_the_export_to_use(
    convert, format_name, delimiter
):
    regions = '[{""start"":0,""end"":3,""text"":""Ada"",""labels"":[""PER""]}]'
    rows = [
        ["text", "id", "label", "annotator", "annotation_id", "created_at", "lead_time"],
        ["Ada ran", "9", f'"{regions}"', "1", "3", "2024-05-02T08:14:11Z", "7.2"],
    ]
    content = "\n".join(delimiter.join(row) for row in rows)
    with pytest.raises(CorpusError, match=r"corpus.in looks like Label Studio's CSV; export JSON "):
        convert(format_name, content)


def test_a_table_of_spans_may_have_columns_of_label_studio(convert):
    content = "text,start,end,label,annotator,annotation_id\nAda ran,0,3,PER,1,3\n"
    assert len(convert(FORMAT, content).docs[0].ents) == 1


def test_a_file_of_utf8_that_is_read_as_latin1_is_reported(convert):
    content = "text,start,end,label\nMüller ran.,0,6,PER\n"
    result = convert(FORMAT, content, encoding="latin-1")
    assert "files read as latin-1, although they are UTF-8" in result.events
    assert not convert(FORMAT, content.replace("ü", "u"), encoding="latin-1").events
