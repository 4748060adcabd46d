"""JSON lines become documents whose spans cover exactly the characters that the file names."""

import json

import pytest
import spacy
from spacy.tokens import DocBin

from spacy_luke.annotations.relations import relation_offsets
from spacy_luke.corpora.conversion_report import Report
from spacy_luke.corpora.jsonl import read_jsonl
from spacy_luke.corpora.options import ConvertOptions
from spacy_luke.errors import CorpusError
from tests.conftest import blank

TEXT = "Ada Lovelace lived in London."
ADA = {"start": 0, "end": 12, "label": "PER"}
LONDON = {"start": 22, "end": 28, "label": "LOC"}
CUT = {"start": 22, "end": 26, "label": "LOC"}  # "Lond"
LOVELACE = {"start": 4, "end": 12, "label": "NAME"}


def record(*spans, text=TEXT, **more):
    return {"text": text, "spans": list(spans), **more}


def read_docs(tmp_path, *lines, **options):
    path = tmp_path / "corpus.jsonl"
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("\n".join(texts) + "\n", encoding="utf-8")
    report = Report()
    docs = list(read_jsonl(path, blank("en"), ConvertOptions(**options), report))
    return docs, report


def texts(spans):
    return [(span.text, span.label_) for span in spans]


def counts(report):
    return {what: (event.count, event.first) for what, event in report.events.items()}


def tokens_of(text, *words):
    tokens, position = [], 0
    for i, word in enumerate(words):
        start = text.index(word, position)
        position = start + len(word)
        tokens.append({"text": word, "start": start, "end": position, "id": i, "ws": False})
    return tokens


def test_spans_become_entities_and_a_spans_group(tmp_path):
    (doc,), report = read_docs(tmp_path, record(ADA, LONDON))
    expected = [("Ada Lovelace", "PER"), ("London", "LOC")]
    assert texts(doc.ents) == texts(doc.spans["luke_ner"]) == expected
    assert doc.text == TEXT
    assert all(token.ent_iob_ for token in doc)
    assert report.labels == {"PER": 1, "LOC": 1}
    assert (report.documents, report.sentences, report.tokens) == (1, 0, 6)
    assert report.notes == ["doc.spans['luke_ner'] contains 2 spans, doc.ents 2 of them"]
    assert not report.events


def test_knowledge_base_ids_and_meta_survive_a_docbin(tmp_path):
    (doc,), _ = read_docs(tmp_path, record({**ADA, "kb_id": 7259}))
    assert doc.ents[0].kb_id_ == "7259"
    docs, _ = read_docs(tmp_path, record({**ADA, "kb_id": "Q7259"}, meta={"source": "x", "n": 1}))
    path = tmp_path / "out.spacy"
    DocBin(store_user_data=True, docs=docs).to_disk(path)
    (doc,) = DocBin().from_disk(path).get_docs(spacy.blank("en").vocab)
    assert doc.ents[0].kb_id_ == doc.spans["luke_ner"][0].kb_id_ == "Q7259"
    assert doc.user_data["meta"] == {"source": "x", "n": 1}


def test_not_annotated_and_none_of_the_entities_are_different_ids(tmp_path):
    none, unknown = {**LONDON, "kb_id": "NIL"}, {**LOVELACE, "kb_id": None}
    (doc,), report = read_docs(tmp_path, record({**ADA, "kb_id": "Q7259"}, none, unknown))
    assert [span.kb_id_ for span in doc.spans["luke_ner"]] == ["Q7259", "NIL", ""]
    assert (report.links, report.nil) == (1, 1)


def test_only_accepted_records_are_taken_and_the_others_counted(tmp_path):
    docs, report = read_docs(
        tmp_path,
        record(ADA, answer="reject"),
        record(ADA, answer="accept"),
        "",
        record(answer="ignore"),
        record(answer="reject"),
        record(ADA),
    )
    assert len(docs) == 2
    assert counts(report) == {
        "records skipped: answer 'reject'": (2, "line 1"),
        "records skipped: answer 'ignore'": (1, "line 4"),
    }


def test_a_span_that_cuts_a_token_is_left_out_counted_and_marked_missing(tmp_path):
    (doc,), report = read_docs(tmp_path, record(ADA, CUT))
    assert texts(doc.ents) == texts(doc.spans["luke_ner"]) == [("Ada Lovelace", "PER")]
    assert counts(report) == {"spans left out: they cut a token (alignment strict)": (1, "line 1")}
    assert [t.ent_iob_ for t in doc] == ["B", "I", "O", "O", "", "O"]


@pytest.mark.parametrize("alignment, n_notes", [("strict", 1), ("contract", 0), ("expand", 0)])
def test_strict_alignment_tells_once_how_to_keep_spans_that_cut_tokens(
    tmp_path, alignment, n_notes
):
    _, report = read_docs(tmp_path, record(CUT), record(CUT), alignment=alignment)
    assert sum("--alignment expand moves them" in note for note in report.notes) == n_notes
    _, report = read_docs(tmp_path, record(ADA), alignment=alignment)
    assert not any("--alignment" in note for note in report.notes)


def test_expand_moves_a_span_out_to_token_boundaries(tmp_path):
    (doc,), report = read_docs(tmp_path, record(CUT), alignment="expand")
    assert texts(doc.ents) == [("London", "LOC")]
    assert counts(report) == {"spans moved to token boundaries (expand)": (1, "line 1")}


def test_contract_moves_a_span_in_and_leaves_it_out_where_nothing_is_inside(tmp_path):
    wide = {"start": 0, "end": 8, "label": "PER"}  # "Ada Love"
    (doc,), report = read_docs(tmp_path, record(wide, CUT), alignment="contract")
    assert texts(doc.ents) == [("Ada", "PER")]
    assert counts(report) == {
        "spans moved to token boundaries (contract)": (1, "line 1"),
        "spans left out: they cut a token (alignment contract)": (1, "line 1"),
    }


@pytest.mark.parametrize("alignment", ["strict", "contract", "expand"])
def test_a_span_of_nothing_but_a_space_is_never_an_entity(tmp_path, alignment):
    space = {"start": 3, "end": 4, "label": "X"}
    (doc,), report = read_docs(tmp_path, record(space), alignment=alignment)
    assert not doc.ents and not doc.spans["luke_ner"]
    assert sum(event.count for event in report.events.values()) == 1


def test_overlapping_spans_are_in_the_group_and_missing_in_the_entities(tmp_path):
    (doc, _), report = read_docs(tmp_path, record(ADA, LOVELACE, LONDON), record(), spans_key="all")
    assert texts(doc.ents) == [("London", "LOC")]
    assert sorted(texts(doc.spans["all"])) == [
        ("Ada Lovelace", "PER"),
        ("London", "LOC"),
        ("Lovelace", "NAME"),
    ]
    assert [t.ent_iob_ for t in doc] == ["", "", "O", "O", "B", "O"]
    assert report.notes[0] == "doc.spans['all'] contains 3 spans, doc.ents 1 of them"
    assert counts(report) == {
        "overlapping spans kept in doc.spans['all'] and left out of doc.ents": (
            2,
            "line 1; 1 documents",
        )
    }


def test_two_labels_on_one_span_overlap(tmp_path):
    (doc,), _ = read_docs(tmp_path, record(ADA, {**ADA, "label": "MATH"}))
    assert not doc.ents
    assert len(doc.spans["luke_ner"]) == 2


def test_a_repeated_span_is_taken_once_and_counted(tmp_path):
    (doc,), report = read_docs(tmp_path, record(ADA, ADA))
    assert texts(doc.ents) == [("Ada Lovelace", "PER")]
    assert counts(report) == {"repeated spans taken once": (1, "line 1")}


def test_given_tokens_replace_the_tokenizer(tmp_path):
    tokens = tokens_of(TEXT, "Ada", "Lovelace", "lived", "in", "Lond", "on", ".")
    (doc,), report = read_docs(tmp_path, record(CUT, tokens=tokens))
    assert [t.text for t in doc] == [token["text"] for token in tokens]
    assert texts(doc.ents) == [("Lond", "LOC")]
    assert doc.text == TEXT
    assert not report.events


def test_given_tokens_do_not_shift_spans_after_several_spaces(tmp_path):
    text = " Ada   in\n\nLondon "
    span = {"start": text.index("London"), "end": len(text) - 1, "label": "LOC"}
    (doc,), _ = read_docs(
        tmp_path, record(span, text=text, tokens=tokens_of(text, "Ada", "in", "London"))
    )
    assert doc.text == text
    assert texts(doc.ents) == [("London", "LOC")]


@pytest.mark.parametrize(
    "words",
    [
        ("London", " ", "is", "\n", "\n", "big"),
        ("New", "\nYork", " in"),
        ("a", " b", " ", "c "),
        (" ", " "),
    ],
)
def test_given_tokens_of_or_with_white_space_are_kept(words, tmp_path):
    text = "".join(words)
    (doc,), _ = read_docs(tmp_path, record(text=text, tokens=tokens_of(text, *words)))
    assert [token.text for token in doc] == list(words) and doc.text == text


def test_white_space_between_given_tokens_is_that_of_spacy(tmp_path):
    text = " Ada  saw\n Rome "
    (doc,), _ = read_docs(tmp_path, record(text=text, tokens=tokens_of(text, "Ada", "saw", "Rome")))
    words = [" ", "Ada", " ", "saw", "\n ", "Rome"]
    assert [token.text for token in doc] == words and doc.text == text


def test_token_positions_stand_in_for_characters(tmp_path):
    tokens = tokens_of(TEXT, "Ada", "Lovelace", "lived", "in", "London", ".")
    span = {"token_start": 0, "token_end": 1, "label": "PER"}
    (doc,), _ = read_docs(tmp_path, record(span, tokens=tokens))
    assert texts(doc.ents) == [("Ada Lovelace", "PER")]


def test_characters_win_over_contradicting_token_positions_and_it_is_counted(tmp_path):
    tokens = tokens_of(TEXT, "Ada", "Lovelace", "lived", "in", "London", ".")
    span = {**ADA, "token_start": 0, "token_end": 2}
    (doc,), report = read_docs(tmp_path, record(span, tokens=tokens))
    assert texts(doc.ents) == [("Ada Lovelace", "PER")]
    assert [count for count, _ in counts(report).values()] == [1]


def test_empty_texts_and_absent_spans_are_counted(tmp_path):
    docs, report = read_docs(tmp_path, record(text=""), {"text": TEXT})
    assert len(docs) == 1
    assert counts(report) == {
        "records skipped: empty text": (1, "line 1"),
        "records without the key spans, read as having none": (1, "line 2; its keys are 'text'"),
    }


def test_split_cuts_a_token_where_a_span_begins_or_ends(tmp_path):
    (doc,), report = read_docs(tmp_path, record(ADA, CUT, meta={"n": 1}), alignment="split")
    assert texts(doc.ents) == [("Ada Lovelace", "PER"), ("Lond", "LOC")]
    assert doc.text == TEXT and doc.user_data["meta"] == {"n": 1}
    assert counts(report) == {"tokens split where a span begins or ends inside": (1, "line 1")}


def test_spans_that_grow_into_one_are_taken_once(tmp_path):
    (doc,), report = read_docs(tmp_path, record(CUT, LONDON), alignment="expand")
    assert texts(doc.ents) == [("London", "LOC")]
    assert report.events["repeated spans taken once"].count == 1


@pytest.mark.parametrize(
    "line, message",
    [
        ("{", "not JSON"),
        ("[1]", "the record is a list, not an object"),
        ({"spans": []}, "the record has no key 'text'; its keys are 'spans'"),
        ({"text": 1}, "text of the record is a whole number, not a string"),
        ('{"text": "a\\ud800b"}', "an unpaired surrogate"),
        (record(answer="maybe"), "answer is 'maybe'"),
        ({"text": TEXT, "spans": {}}, "spans is an object, not a list"),
        (record("Ada"), "span 0 is a string"),
        (record(ADA, {"start": 0, "end": 3}), "span 1 has no key 'label'"),
        (record({**ADA, "label": ""}), "span 0 has an empty label"),
        (record({**ADA, "label": None}), "label of span 0 is null"),
        (record({**ADA, "kb_id": 5.0}), "kb_id of span 0 is a number"),
        (record({**ADA, "start": True}), "start of span 0 is true or false"),
        (record({**ADA, "end": 12.0}), "end of span 0 is a number with a fraction"),
        (record({**ADA, "end": 30}), "span 0 \\(PER\\) goes from 0 to 30, in a text of 29"),
        (record({**ADA, "start": -3}), "goes from -3 to 12"),
        (record({**ADA, "start": 13}), "goes from 13 to 12"),
        (record({"label": "X", "token_start": 0, "token_end": 1}), "span 0 has no key 'start'"),
        (
            record(
                {"label": "X", "token_start": 0, "token_end": 1},
                text="Ada",
                tokens=tokens_of("Ada", "Ada"),
            ),
            "from token 0 to 1, but the record has 1 tokens",
        ),
        (record(tokens=[{"text": "Bob", "start": 0, "end": 3}]), "token 0 is 'Bob', but .*'Ada'"),
        (record(tokens=[{"text": "", "start": 0, "end": 0}]), "token 0 is empty"),
        (
            record(text="a a", tokens=[{"text": "a", "start": 0, "end": 1}] * 2),
            "token 1 begins before token 0 ends",
        ),
        (record(tokens=tokens_of(TEXT, "Ada", "London")), "tokens do not spell out the text"),
        (record(meta=2**70), "meta cannot be stored"),
    ],
)
def test_bad_records_give_one_error_that_names_the_line(tmp_path, line, message):
    with pytest.raises(CorpusError, match=message) as caught:
        read_docs(tmp_path, record(ADA), line)
    assert "corpus.jsonl, line 2" in str(caught.value)


def test_white_space_at_the_ends_of_a_span_is_taken_off_with_every_alignment(tmp_path):
    wide = {"start": 21, "end": 28, "label": "LOC"}  # " London"
    for alignment in ("strict", "contract", "expand", "split"):
        (doc,), report = read_docs(tmp_path, record(wide), alignment=alignment)
        assert texts(doc.ents) == [("London", "LOC")]
        assert counts(report) == {"spans with white space taken off their ends": (1, "line 1")}


def test_a_span_without_a_character_is_counted_and_so_is_its_relation(tmp_path):
    empty = {"start": 12, "end": 12, "label": "X"}
    relation = {"label": "r", "head_span": ADA, "child_span": empty}
    (doc,), report = read_docs(tmp_path, record(ADA, empty, relations=[relation]))
    assert texts(doc.spans["luke_ner"]) == [("Ada Lovelace", "PER")]
    assert counts(report) == {
        "spans left out: they contain no character": (1, "line 1"),
        "relations left out: one of their spans was": (1, "line 1"),
    }


@pytest.mark.parametrize(
    "foreign",
    [
        {"label": [[0, 12, "PER"]]},
        {"entities": []},
        {"entities": [[0, 12, "PER"]], "relations": []},
        {"id": 5},
        {"label": "POSITIVE", "answer": "accept"},
        {"options": [{"id": "A"}], "accept": ["A"], "answer": "accept"},
    ],
)
def test_a_record_of_another_format_is_an_error_that_names_its_keys(tmp_path, foreign):
    keys = ", ".join(map(repr, ["text", *foreign]))
    with pytest.raises(CorpusError, match=f"line 1: the record has no key 'spans'; .* {keys}"):
        read_docs(tmp_path, {"text": TEXT, **foreign})


def test_an_accepted_text_without_spans_has_none(tmp_path):
    tokens = tokens_of(TEXT, *TEXT[:-1].split(), ".")
    hashes = {"_input_hash": 1, "_view_id": "ner_manual"}
    docs, report = read_docs(
        tmp_path,
        {"text": TEXT, "tokens": tokens, **hashes},
        {"text": TEXT, "answer": "accept", **hashes},
        {"text": TEXT, "meta": {}},
    )
    assert [len(doc.ents) for doc in docs] == [0, 0, 0]
    assert [event.count for event in report.events.values()] == [3]


@pytest.mark.parametrize(
    "more, n_unknown",
    [
        ({"_view_id": "ner_manual"}, 0),
        ({"_view_id": "ner_manual", "_is_binary": False}, 0),
        ({"_view_id": "ner", "_is_binary": False}, 0),
        ({"_view_id": "ner"}, 4),
        ({"_is_binary": True}, 4),
        ({"options": [{"id": "Q1"}]}, 4),
        ({"options": [{"id": "Q1"}], "_view_id": "choice"}, 4),
        ({"options": [{"id": "Q1"}], "_view_id": "blocks"}, 4),
        ({"options": [{"id": "Q1"}], "_view_id": "ner_manual"}, 0),
        ({"options": [{"id": "Q1"}], "_view_id": "spans_manual"}, 0),
    ],
)
def test_nothing_is_known_of_tokens_on_which_nobody_decided(tmp_path, more, n_unknown):
    (doc,), _ = read_docs(tmp_path, record(ADA, answer="accept", **more))
    assert sum(token.ent_iob_ == "" for token in doc) == n_unknown
    assert texts(doc.ents) == [("Ada Lovelace", "PER")]


def test_chosen_options_are_counted(tmp_path):
    chosen = {"options": [{"id": "Q1"}], "accept": ["Q1"]}
    _, report = read_docs(tmp_path, record(ADA, **chosen), record(ADA, **chosen))
    _, unchosen = read_docs(tmp_path, record(ADA, options=[{"id": "Q1"}], accept=[]))
    what = "records with chosen options, not read (ids: see the format prodigy-links)"
    partial = (
        "records with options, of which only the spans are taken as annotated (if all entities "
        'are, set _view_id to "ner_manual")'
    )
    assert counts(report) == {what: (2, "line 1"), partial: (2, "line 1")}
    assert counts(unchosen) == {partial: (1, "line 1")}


def test_the_tutorial_of_three_emersons_is_read_as_spans(convert_real):
    docs, report = convert_real("nel-emerson/emerson_annotated_text.jsonl", read_jsonl)
    assert report.labels == {"ORG": 27, "PERSON": 3}
    assert all(not token.ent_iob_ for doc in docs for token in doc if not token.ent_type_)


@pytest.mark.parametrize("indent", [None, 1])
def test_records_may_be_one_list(tmp_path, indent):
    docs, _ = read_docs(tmp_path, json.dumps([record(ADA), record(LONDON)], indent=indent))
    assert [texts(doc.ents) for doc in docs] == [[("Ada Lovelace", "PER")], [("London", "LOC")]]


def test_utf_16_is_an_error(tmp_path):
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(json.dumps(record(ADA)).encode("utf-16"))
    with pytest.raises(CorpusError, match="corpus.jsonl is UTF-16. Save the file as UTF-8"):
        list(read_jsonl(path, blank("en"), ConvertOptions(), Report()))


def test_texts_without_any_annotation_are_an_error(tmp_path):
    with pytest.raises(CorpusError, match="is not annotated: none of its 2 records has 'spans'"):
        read_docs(tmp_path, {"text": TEXT}, {"text": TEXT, "meta": {}})


def test_the_text_of_a_span_is_checked(tmp_path):
    text = "🚀 Ada met Bob"  # in UTF-16 units, "Ada" begins at 3 and "Bob" ends at 14
    ada = {"start": 3, "end": 6, "label": "PER", "text": "Ada"}
    bob = {"start": 11, "end": 14, "label": "PER", "text": "Bob"}
    eve = {"start": 7, "end": 10, "label": "PER", "text": "Eve"}
    relations = [
        {"label": "met", "head_start": 3, "head_end": 6, "tail_start": 11, "tail_end": 14},
        {"label": "met", "head_start": 3, "head_end": 6, "tail_start": 7, "tail_end": 10},
    ]
    (doc,), report = read_docs(tmp_path, record(ada, bob, eve, text=text, relations=relations))
    assert [ent.text for ent in doc.ents] == ["Ada", "Bob"]
    assert relation_offsets(doc)[0][:3] == ((2, 5), (10, 13), "met")
    assert {what: event.count for what, event in report.events.items()} == {
        "spans whose offsets count UTF-16 units, converted by their text": 2,
        "spans left out: their text is not at their offsets": 1,
        "relations left out: one of their spans was": 1,
    }
    assert [token.text for token in doc if token.ent_iob == 0] == ["met"]


def test_repeated_texts_are_counted(tmp_path):
    docs, report = read_docs(tmp_path, record(ADA), record(LONDON))
    assert len(docs) == 2
    assert "records with the text of an earlier one, each a document of its own: 1" in report.notes
