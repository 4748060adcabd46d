"""Column files become documents with the same words and entities, or one clear error."""

import pytest
import spacy
from spacy.lang.zh import Chinese
from spacy.tokens import Doc, DocBin
from spacy.training import Corpus

from spacy_luke.corpora.columns import read_columns
from spacy_luke.corpora.conversion_report import Report
from spacy_luke.corpora.options import ConvertOptions
from spacy_luke.errors import ConfigError, CorpusError
from tests.conftest import blank

SENTENCES = "Ada B-PER\nLovelace I-PER\nwrote O\n\nin O\nLondon B-LOC\n"
SEVERAL = "cells with several tags, of which the first is taken"


def read_docs(tmp_path, content, **options):
    path = tmp_path / "corpus.conll"
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    report = Report()
    docs = list(read_columns(path, blank("en"), ConvertOptions(**options), report))
    return docs, report


def ents(doc):
    return [(ent.text, ent.label_) for ent in doc.ents]


def counts(report):
    return {what: (event.count, event.first) for what, event in report.events.items()}


def test_each_sentence_is_a_document_by_default(tmp_path):
    docs, report = read_docs(tmp_path, SENTENCES)
    assert [[t.text for t in doc] for doc in docs] == [
        ["Ada", "Lovelace", "wrote"],
        ["in", "London"],
    ]
    assert [ents(doc) for doc in docs] == [[("Ada Lovelace", "PER")], [("London", "LOC")]]
    assert (report.documents, report.sentences, report.tokens) == (2, 2, 5)
    assert report.labels == {"PER": 1, "LOC": 1}
    assert report.scheme == "IOB2 (detected)"
    assert not report.events and not report.notes


def test_words_outside_entities_are_outside_and_not_missing(tmp_path):
    docs, _ = read_docs(tmp_path, SENTENCES)
    assert [t.ent_iob_ for t in docs[0]] == ["B", "I", "O"]


def test_n_sents_joins_sentences_and_keeps_their_starts(tmp_path):
    docs, report = read_docs(tmp_path, SENTENCES + "\nlast O\n", n_sents=2)
    assert [len(doc) for doc in docs] == [5, 1]
    assert [t.is_sent_start for t in docs[0]] == [True, False, False, True, False]
    assert ents(docs[0]) == [("Ada Lovelace", "PER"), ("London", "LOC")]
    assert (report.documents, report.sentences) == (2, 3)


MARKED = "-DOCSTART- O\n\na O\n\nb O\n\n-DOCSTART- O\nc O\n\nd O\n\ne O\n"


def test_documents_are_kept_whole_on_demand(tmp_path):
    docs, report = read_docs(tmp_path, MARKED, documents=True)
    assert [[t.text for t in doc] for doc in docs] == [["a", "b"], ["c", "d", "e"]]
    assert report.docstart_lines == 2


def test_joined_sentences_never_cross_a_document_mark(tmp_path):
    docs, report = read_docs(tmp_path, MARKED, n_sents=3)
    assert [[t.text for t in doc] for doc in docs] == [["a", "b"], ["c", "d", "e"]]
    assert any("2 -DOCSTART- lines" in note for note in report.notes)


def test_whole_documents_without_marks_are_one_with_a_note(tmp_path):
    docs, report = read_docs(tmp_path, SENTENCES, documents=True)
    assert len(docs) == 1
    assert report.notes == ["no -DOCSTART- line: the whole file is one document"]


@pytest.mark.parametrize(
    "content",
    [
        SENTENCES.replace("\n", "\r\n"),
        "\ufeff" + SENTENCES,
        SENTENCES.replace("\n", "  \n"),
        SENTENCES.replace(" ", "\t").replace("\n\n", "\n\t\n"),
        "\n\n" + SENTENCES + "\n\n\n",
        SENTENCES.rstrip("\n"),
        SENTENCES.replace(" ", " NN _ "),
    ],
    ids=["crlf", "bom", "trailing", "tabs-and-tab-lines", "blank-ends", "no-last-newline", "four"],
)
def test_layouts_of_the_same_content_read_the_same(tmp_path, content):
    docs, report = read_docs(tmp_path, content)
    assert [doc.text for doc in docs] == ["Ada Lovelace wrote ", "in London "]
    assert [ents(doc) for doc in docs] == [[("Ada Lovelace", "PER")], [("London", "LOC")]]
    assert not report.events


def test_columns_can_be_chosen(tmp_path):
    docs, _ = read_docs(tmp_path, "1 Ada B-PER x\n2 ran O y\n", word_column=1, tag_column=-2)
    assert ents(docs[0]) == [("Ada", "PER")]


@pytest.mark.parametrize("first", [0, 1])
def test_running_numbers_are_no_words(tmp_path, first):
    lines = [f"{i + first}\t{word}\tO" for i, word in enumerate(["Ada", "ran", "."])]
    text = "\n".join([*lines, "", f"{first}\tTokyo\tB-LOC", ""])
    with pytest.raises(CorpusError, match="column 0 numbers the words .* --word-column 1"):
        read_docs(tmp_path, text)
    docs, _ = read_docs(tmp_path, text, word_column=1)
    assert [ents(doc) for doc in docs] == [[], [("Tokyo", "LOC")]]
    docs, _ = read_docs(tmp_path, "1 O\n2 O\n\n7 O\n")  # numbers, but not of the words
    assert [doc.text for doc in docs] == ["1 2 ", "7 "]


def test_a_tab_file_keeps_words_with_spaces(tmp_path):
    docs, _ = read_docs(tmp_path, "New York\tB-LOC\nrocks\tO\n")
    assert ents(docs[0]) == [("New York", "LOC")]
    assert len(docs[0]) == 2


@pytest.mark.parametrize("char", ["\u2028", "\x85", "\x0c", "\xa0", "\u3000"])
def test_unicode_white_space_is_a_word_and_no_line_end(tmp_path, char):
    docs, _ = read_docs(tmp_path, f"a\tB-X\n{char}\tO\nb{char}c\tO\n")
    assert [t.text for t in docs[0]] == ["a", char, f"b{char}c"]


def test_comments_before_numbered_words_are_skipped(tmp_path):
    """GermEval: the source of a sentence is in a line of its own, behind "#" and a tab."""
    text = "#\thttp://a.org\t[2010]\t\n1\tAda\tB-PER\tO\n2\t#\tO\tO\n\n#\tb\t[2011]\n1\tTokyo\tB-LOC\tO\n"
    path = tmp_path / "numbered.tsv"
    path.write_text(text, "utf8")
    report = Report()
    options = ConvertOptions(word_column=1, tag_column=2)
    docs = list(read_columns(path, blank("de"), options, report))
    assert [[token.text for token in doc] for doc in docs] == [["Ada", "#"], ["Tokyo"]]
    assert [ent.label_ for doc in docs for ent in doc.ents] == ["PER", "LOC"]
    assert counts(report) == {"comment lines skipped": (2, "line 1")}


def test_comments_are_skipped_and_counted_and_hash_words_are_kept(tmp_path):
    content = "# id 7\tdomain=en\n# O\nAda B-PER\n\n# text = Ada\n#tag O\n"
    docs, report = read_docs(tmp_path, content)
    assert [[t.text for t in doc] for doc in docs] == [["#", "Ada"], ["#tag"]]
    assert counts(report) == {"comment lines skipped": (2, "line 1")}


@pytest.mark.parametrize("mark", [",", "|"])
def test_the_first_of_several_tags_is_taken_and_counted(tmp_path, mark):
    docs, report = read_docs(tmp_path, f"Ada O\n\nBank B-ORG{mark}B-LOC\nInc I-ORG{mark}I-LOC\n")
    assert ents(docs[1]) == [("Bank Inc", "ORG")]
    assert counts(report) == {SEVERAL: (2, "line 3")}


def test_a_label_with_a_comma_is_one_label(tmp_path):
    docs, report = read_docs(tmp_path, "Ada B-PER,LOC\n")
    assert ents(docs[0]) == [("Ada", "PER,LOC")]
    assert not report.events


def test_repairs_are_counted_with_their_first_line(tmp_path):
    docs, report = read_docs(tmp_path, "a B-X\nb O\n\nc O\nd I-X\n\ne I-X\n")
    assert [ents(doc) for doc in docs] == [[("a", "X")], [("d", "X")], [("e", "X")]]
    assert list(counts(report).values()) == [(2, "line 5")]
    assert any("neither clean IOB2" in note for note in report.notes)


def test_a_forced_scheme_is_named_as_given(tmp_path):
    _, report = read_docs(tmp_path, SENTENCES, scheme="bio")
    assert report.scheme == "IOB2 (given)"


@pytest.mark.parametrize(
    "content, options, message",
    [
        ("a O\nb\n", {}, "line 2: 1 columns in 'b'"),
        ("a O\nNew York B-LOC\n", {}, "line 2: 3 columns in 'New York B-LOC'"),
        ("a\tO\n\tO\n", {}, "line 2: the word is empty"),
        ("a O\nb PER\n", {}, "line 2: 'PER' is not a tag"),
        ("a O\nb B\n", {}, "line 2: 'B' is not a tag"),
        ("just\nwords\n", {}, "line 1: one column only"),
        ("", {}, "contains no line with a word"),
        ("\n\n-DOCSTART- O\n", {}, "contains no line with a word"),
        (b"a O\nb\xff O\n", {}, "line 2: byte 1 is not UTF-8"),
        ("a O\rb O\n", {}, "line 1: a carriage return in"),
        ("a U-X\n\nb S-X\n", {}, "U- in line 1\\) and IOBES \\(S- in line 3"),
        ("a O\nb U-X\n", {"scheme": "IOB2"}, "line 2: the tag begins with U-, which IOB2"),
        ("a b O\n", {"separator": "tab"}, "line 1: one column only"),
    ],
)
def test_bad_files_give_one_error_that_names_the_line(tmp_path, content, options, message):
    with pytest.raises(CorpusError, match=message) as caught:
        read_docs(tmp_path, content, **options)
    assert "corpus.conll" in str(caught.value)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"word_column": 2}, "word_column is 2, but .*line 1 has 2 columns"),
        ({"tag_column": -3}, "tag_column is -3"),
        ({"tag_column": 0}, "are both column 0"),
        ({"n_sents": 0}, "n_sents is 0"),
        ({"documents": True, "n_sents": 2}, "contradict each other"),
        ({"scheme": "iob3"}, "scheme is 'iob3'"),
        ({"separator": "comma"}, "separator is 'comma'"),
    ],
)
def test_bad_settings_give_one_error_that_names_them(tmp_path, options, message):
    with pytest.raises(ConfigError, match=message):
        read_docs(tmp_path, SENTENCES, **options)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(CorpusError, match="nowhere.conll cannot be read"):
        list(read_columns(tmp_path / "nowhere.conll", blank("en"), ConvertOptions(), Report()))


def test_a_docbin_gives_back_the_same_words_entities_and_sentences(tmp_path):
    docs, _ = read_docs(tmp_path, SENTENCES, n_sents=2)
    DocBin(store_user_data=True, docs=docs).to_disk(tmp_path / "out.spacy")
    (back,) = DocBin().from_disk(tmp_path / "out.spacy").get_docs(spacy.blank("en").vocab)
    assert back.to_json() == docs[0].to_json()
    assert ents(back) == [("Ada Lovelace", "PER"), ("London", "LOC")]


def test_training_keeps_the_words_of_the_file(tmp_path):
    docs, _ = read_docs(tmp_path, "don't B-X\nU.K.! O\n")
    DocBin(docs=docs).to_disk(tmp_path / "out.spacy")
    (example,) = Corpus(tmp_path / "out.spacy")(blank("en"))
    assert [t.text for t in example.predicted] == ["don't", "U.K.!"]


@pytest.mark.parametrize(
    "words, text",
    [
        ("他 住 在 北 京 。", "他住在北京。"),
        ("王小明 ， 生 于 1 8 8 7 年", "王小明，生于1887年"),
        ("在 New York 见 Ada Lovelace", "在New York见Ada Lovelace"),
        ("人々 2020 年 三〇 〇二", "人々2020年三〇〇二"),
        ("见 Mr. Smith , 3.5 或 3 . 14", "见Mr. Smith,3.5或3.14"),
        ("12 : 30 , www . google . com", "12:30,www.google.com"),
    ],
)
def test_languages_without_spaces_have_none(tmp_path, words, text):
    path = tmp_path / "corpus.conll"
    path.write_text("".join(f"{word} O\n" for word in words.split(" ")), encoding="utf8")
    for lang, expected in (("zh", text), ("xx", f"{words} ")):
        report = Report()
        (doc,) = read_columns(path, blank(lang), ConvertOptions(), report)
        assert doc.text == expected and [t.text for t in doc] == words.split(" ")
        assert any("joined without spaces" in x for x in report.notes) == (lang == "zh")


def test_entities_that_the_tokenizer_cuts_are_counted(tmp_path):
    """Readers cut the text with it."""
    path = tmp_path / "corpus.conll"
    path.write_text("米 B-LOC\n軍 O\n\n北京 B-LOC\n", encoding="utf8")
    nlp = Chinese()
    nlp.tokenizer = lambda text: Doc(nlp.vocab, words=[text], spaces=[False])
    what = "entities that begin or end inside a token of the 'zh' tokenizer"
    report = Report()
    list(read_columns(path, nlp, ConvertOptions(), report))
    assert [(x.startswith(what), y.count, y.first) for x, y in report.events.items()] == [
        (True, 1, "line 1")
    ]


def test_names_are_found_in_characters_of_lines(tmp_path):
    path = tmp_path / "corpus.conll"
    path.write_text("在 O\n北 B-LOC\n京 I-LOC\n。 O\n\n北 B-LOC\n京 I-LOC\n", encoding="utf8")
    nlp = blank("zh")
    docs = list(read_columns(path, nlp, ConvertOptions(n_sents=2), Report()))
    DocBin(docs=docs).to_disk(tmp_path / "out.spacy")
    (example,) = Corpus(tmp_path / "out.spacy")(nlp)
    assert example.predicted.text == "在北京。北京"
    assert [x.text for x in example.reference.ents] == ["北京"] * 2
    assert [t.is_sent_start for t in example.reference].count(True) == 2


def test_every_entity_of_a_sentence_is_kept_neighbours_apart(tmp_path):
    docs, report = read_docs(tmp_path, "Ada B-PER\nBob B-PER\nsaw O\nNew B-LOC\nYork I-LOC\n")
    assert ents(docs[0]) == [("Ada", "PER"), ("Bob", "PER"), ("New York", "LOC")]
    assert report.labels == {"PER": 2, "LOC": 1}
