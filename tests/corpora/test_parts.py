"""Documents cut and joined keep what is annotated on them."""

import warnings

import pytest
import spacy
from spacy.tokens import Doc, Span

from spacy_luke.annotations.annotated import joined_starts
from spacy_luke.annotations.questions import has_answers
from spacy_luke.annotations.relations import get_relations, set_relations
from spacy_luke.annotations.types import get_types, set_types
from spacy_luke.corpora.parts import cut, join

NLP = spacy.blank("en")


def make(name: str, place: str) -> Doc:
    doc = NLP.make_doc(f"{name} lived in {place}.")
    doc.ents = [
        Span(doc, 0, 1, label="PER", kb_id="Q1", span_id="e1"),
        Span(doc, 3, 4, label="LOC"),
    ]
    doc.spans["all"] = [*doc.ents, Span(doc, 0, 4, label="FACT")]
    set_relations(doc, [(doc.ents[0], doc.ents[1], "lives", 0.5)])
    set_types(doc.ents[0], {"person": 1.0})
    doc.user_data["id"] = name
    for token in doc:
        token.is_sent_start = token.i == 0
    return doc


def described(doc: Doc) -> tuple:
    return (
        doc.text,
        [(e.text, e.label_, e.kb_id_, e.ent_id_) for e in doc.ents],
        [(s.text, s.label_) for s in doc.spans.get("all", ())],
        [(r.head.text, r.tail.text, r.label, r.score) for r in get_relations(doc)],
        [get_types(e) for e in doc.ents],
        [t.i for t in doc if t.is_sent_start],
    )


def test_what_is_joined_and_cut_again_is_what_it_was():
    docs = [make("Ada", "London"), make("Grace", "New"), make("Emmy", "Erlangen")]
    joined = join(docs)
    assert joined.text == "Ada lived in London. Grace lived in New. Emmy lived in Erlangen."
    assert len(joined.ents) == 6 and len(get_relations(joined)) == 3
    parts, lost = cut(joined, [0, 5, 10])
    assert not any(lost.values())
    strip = [described(doc)[1:] for doc in docs]
    assert [described(part)[1:] for part in parts] == strip
    assert [part.text.strip() for part in parts] == [doc.text for doc in docs]


def test_a_joined_document_knows_where_its_texts_begin():
    docs = [make("Ada", "London"), make("Grace", "New"), NLP.make_doc(""), make("Emmy", "Erlangen")]
    joined = join(docs)
    assert [joined.text[start:][:4] for start in joined_starts(joined)] == ["Ada ", "Grac", "Emmy"]
    again = join([joined, docs[0]])
    assert [again.text[start:][:4] for start in joined_starts(again)] == [
        *("Ada ", "Grac", "Emmy"),
        "Ada ",
    ]
    first, second = cut(joined, [0, 8])[0]
    assert [first.text[start:][:4] for start in joined_starts(first)] == ["Ada ", "Grac"]
    assert [second.text[start:][:4] for start in joined_starts(second)] == ["New.", "Emmy"]
    assert joined_starts(docs[0]) == []


def test_what_lies_in_no_part_is_counted():
    parts, lost = cut(make("Ada", "London"), [0, 2])
    assert +lost == {"relations": 1, "spans": 1}
    assert [len(part.ents) for part in parts] == [1, 1]
    doc = make("Ada Lovelace", "London")
    doc.ents = [Span(doc, 0, 2, label="PER")]
    set_types(doc.ents[0], {"person": 1.0})
    parts, lost = cut(doc, [0, 1])
    assert lost["entities"] == 1 and lost["types"] == 1
    assert all(not part.ents for part in parts)
    # Half an entity is not "no entity": those tokens count as not annotated.
    assert [token.ent_iob for token in parts[0]] == [0]


def test_user_data_of_a_document_goes_to_every_part_and_to_no_join():
    doc = make("Ada", "London")
    parts, _ = cut(doc, [0, 3])
    assert [part.user_data["id"] for part in parts] == ["Ada", "Ada"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "id" not in join([doc, doc]).user_data


def test_tokens_without_annotation_stay_so():
    plain, half = NLP.make_doc("no word about it"), NLP.make_doc("Ada sang")
    half.set_ents([], missing=[half[0:1]], default="outside")
    joined = join([plain, half])
    assert [token.ent_iob for token in joined] == [0, 0, 0, 0, 0, 2]
    parts, _ = cut(joined, [0, 4])
    assert [token.ent_iob for token in parts[1]] == [0, 2]


@pytest.mark.parametrize("texts", [["a ", "b"], ["a", "", "b"], ["a\n", " b"]])
def test_texts_are_not_run_together(texts):
    docs = [NLP.make_doc(text) for text in texts]
    joined = join(docs)
    assert [t.text for t in joined if not t.is_space] == ["a", "b"]


def test_a_relation_that_was_cut_does_not_come_back_in_other_text():
    doc = make("Ada", "London")
    set_relations(doc, [(doc.ents[1], doc.ents[0], "home_of"), (doc.ents[0], doc.ents[1], "lives")])
    parts, _ = cut(doc, [0, 3])
    stored = [key for part in parts for key in part.user_data if "luke_relations" in key]
    assert not stored
    joined = join([parts[0], parts[0], parts[1], parts[0]])
    assert get_relations(joined) == ()
    # spaCy's own parts keep all data of their document.
    theirs = [doc[3:].as_doc(copy_user_data=True), doc[:3].as_doc(copy_user_data=True)]
    assert get_relations(join(theirs)) == ()


def test_queries_stay_with_whole_documents():
    doc = make("Ada", "London")
    doc._.queries = [("@placeholder lived", [doc[0:1], doc[3:4]])]
    parts, lost = cut(doc, [0, 2])
    assert lost["questions"] == 1 and not any(part._.queries for part in parts)
    (whole,), lost = cut(doc, [0])
    assert lost["questions"] == 0 and len(whole._.queries[0].candidates) == 2


def test_questions_stay_with_whole_documents():
    doc = make("Ada", "London")
    doc._.questions = ["Where?", "When?"]
    doc._.answers = [[doc[3:4]], []]
    (whole,), lost = cut(doc, [0])
    assert whole._.questions == doc._.questions and not lost["questions"]
    assert whole._.answers[0].best.text == "London"
    parts, lost = cut(doc, [0, 3])
    assert lost["questions"] == 2
    for part in (*parts, join([doc, doc])):
        assert part._.questions == () and not has_answers(part)
    assert len(doc._.answers) == 2


def test_words_without_a_text_stay_so():
    """spaCy's corpus reader then gives the words, and not a text of them, to the pipeline."""
    words, text = (Doc(NLP.vocab, words=["a", "b"], spaces=x) for x in (None, [True, False]))
    for doc in (words, text):
        doc.has_unknown_spaces = doc is words
        assert [x.has_unknown_spaces for x in cut(doc, [0, 1])[0]] == [doc is words] * 2
        assert join([doc, doc]).has_unknown_spaces == (doc is words)
    assert not join([words, text]).has_unknown_spaces
