"""``Doc._.queries`` and ``Doc._.completions``."""

import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span

from spacy_luke.annotations.queries import (
    Completions,
    Offsets,
    Query,
    candidates_of,
    check_same_queries,
    clear_completions,
    completion_offsets,
    copy_queries,
    get_queries,
    has_completions,
    merge_mentions,
    set_completion_offsets,
)
from spacy_luke.errors import InputError

NLP = spacy.blank("en")
GAP = "@placeholder wrote the first program."


def asked(*queries) -> Doc:
    doc = NLP("Ada Lovelace met Babbage, and Ada wrote.")
    doc.ents = [Span(doc, 0, 2, "PERSON"), Span(doc, 3, 4, "PERSON")]
    doc._.queries = queries
    return doc


def test_queries_are_kept_in_order_also_equal_ones():
    doc = asked(GAP, "Who met @placeholder?", GAP)
    assert [x.text for x in doc._.queries] == [GAP, "Who met @placeholder?", GAP]
    assert [x.candidates for x in doc._.queries] == [None, None, None]
    assert asked()._.queries == ()


@pytest.mark.parametrize("text", ["", " ", "Ada", "@placeholder met @placeholder", "@Placeholder"])
def test_the_placeholder_must_be_there_once(text):
    with pytest.raises(InputError, match="@placeholder . times, not once"):
        asked(text)


@pytest.mark.parametrize("queries", [GAP, None, 3, [3], [None], [()], [(3, None)], [(GAP, 3)]])
def test_what_is_not_a_list_of_queries_is_an_error(queries):
    with pytest.raises(InputError, match="quer"):
        NLP("Ada")._.queries = queries


def test_candidates_are_the_entities_unless_given():
    doc = asked(GAP)
    doc.spans["all"] = [doc[6:7]]
    doc._.queries = [GAP, Query(GAP, [doc[3:4], doc[0:1], doc[3:4]]), (GAP, [])]
    default, given, none = get_queries(doc)
    assert [x.text for x in candidates_of(doc, default, None)] == ["Ada Lovelace", "Babbage"]
    assert [x.text for x in candidates_of(doc, default, "all")] == ["Ada"]
    assert candidates_of(doc, default, "absent") == []
    assert [x.text for x in candidates_of(doc, given, None)] == ["Ada", "Babbage"]
    assert candidates_of(doc, none, None) == []


def test_given_candidates_keep_label_and_id():
    doc = NLP("Ada met Babbage")
    doc._.queries = [(GAP, [Span(doc, 0, 1, "PERSON", kb_id="Q7259")])]
    (span,) = get_queries(doc)[0].candidates
    assert (span.text, span.label_, span.kb_id_) == ("Ada", "PERSON", "Q7259")


def test_candidates_that_are_not_in_the_text_are_errors_or_left_out():
    doc, other = asked(), asked()
    for span in (other[0:1], doc[1:1], "Ada"):
        with pytest.raises(InputError, match="not a span of the document|an empty span"):
            doc._.queries = [(GAP, [span])]
    doc._.queries = [(GAP, [doc[0:1], doc[6:7]])]
    part = doc[:4].as_doc()
    part.user_data.update(doc.user_data)
    assert [x.text for x in get_queries(part)[0].candidates] == ["Ada"]


def test_white_space_is_not_a_candidate():
    doc = Doc(NLP.vocab, words=["\n", " "])
    doc._.queries = [(GAP, [doc[0:1], doc[0:2]])]
    assert candidates_of(doc, get_queries(doc)[0], None) == []


def linked(*mentions):
    doc = Doc(NLP.vocab, words=[text for text, _ in mentions])
    return [Span(doc, i, i + 1, kb_id=name) for i, (_, name) in enumerate(mentions)]


@pytest.mark.parametrize(
    "mentions,merged",
    [
        ([("Ada", ""), ("Bob", ""), ("Ada", "")], [[0, 2], [1]]),
        ([("Ada", "1"), ("She", "1"), ("Ada", "2")], [[0, 1], [2]]),
        ([("Ada", "1"), ("Ada", ""), ("Ada", "NIL")], [[0, 1, 2]]),
        ([("Ada", "1"), ("Ada", "2"), ("Ada", "")], [[0], [1], [2]]),
        ([], []),
    ],
)
def test_mentions_of_an_entity_are_merged(mentions, merged):
    assert merge_mentions(linked(*mentions)) == merged


def test_completions_are_entities_best_first():
    doc = asked(GAP, GAP)
    assert not has_completions(doc) and doc._.completions == ()
    doc._.completions = [[("Ada", [doc[0:2], doc[6:7]], 0.75), ("Babbage", [doc[3:4]])], []]
    first, second = doc._.completions
    assert (first.query, first.best.text, first.best.score) == (GAP, "Ada", 0.75)
    assert [x.start for x in first.best.mentions] == [0, 6]
    assert [(x.text, x.score) for x in first.candidates] == [("Ada", 0.75), ("Babbage", 1.0)]
    assert (second.candidates, second.best) == ((), None)


def test_completions_can_be_set_as_they_were_read():
    doc = asked(GAP)
    doc._.completions = [Completions(GAP, [("Ada", [doc[0:1]], 0.5), ("Eve", [])])]
    completions = doc._.completions
    doc._.completions = completions
    assert doc._.completions == completions
    assert completion_offsets(doc) == [[Offsets("Ada", [(0, 3)], 0.5), Offsets("Eve", [], 1.0)]]


def test_new_queries_remove_completions():
    doc = asked(GAP)
    doc._.completions = [[("Ada", [doc[0:1]])]]
    doc._.queries = [GAP]
    assert not has_completions(doc)
    doc._.completions = [[]]
    clear_completions(doc)
    assert not has_completions(doc) and len(doc._.queries) == 1


def test_completions_of_another_query_are_an_error():
    doc = NLP("Ada sang and Bob danced")
    doc._.queries = ["@placeholder sang", "@placeholder danced"]
    doc._.completions = [[("Ada", [doc[0:1]])], [("Bob", [doc[3:4]])]]
    completions = doc._.completions
    with pytest.raises(InputError, match="of the query '@placeholder danced', but the query there"):
        doc._.completions = completions[::-1]
    doc._.completions = completions
    assert [x.best.text for x in doc._.completions] == ["Ada", "Bob"]


def test_invalid_completions_are_errors():
    doc, other = asked(GAP), asked(GAP)
    for completions in ([], [[], []]):
        with pytest.raises(InputError, match="one item for each of the 1 queries"):
            doc._.completions = completions
    for span in (other[0:1], doc[1:1]):
        with pytest.raises(InputError, match="not a span of the document|an empty span"):
            doc._.completions = [[("Ada", [span])]]
    for score in ("high", None, float("nan"), 7, -0.1):
        with pytest.raises(InputError, match="score of a completion is .*, not a probability"):
            doc._.completions = [[("Ada", [], score)]]
    for item in (None, 5, "Ada", [5], ["x"], [("Ada", 3)], [("Ada", doc[0:1])], [("Ada",)]):
        with pytest.raises(InputError, match="completion"):
            doc._.completions = [item]
    for completions in (None, 5, "Ada"):
        with pytest.raises(InputError, match="give a list of the completions of each query"):
            doc._.completions = completions
    with pytest.raises(InputError, match="text of a completion"):
        doc._.completions = [[("", [])]]
    with pytest.raises(InputError, match="characters 3 to 99"):
        set_completion_offsets(doc, [[Offsets("Ada", [(3, 99)])]])


def test_saved_documents_keep_both():
    doc = asked(GAP)
    doc._.queries = [GAP, (GAP, [Span(doc, 0, 2, "PERSON", kb_id="Q7259")])]
    doc._.completions = [[("Ada", [doc[0:1]], 0.5)], []]
    stored = DocBin(docs=[doc], store_user_data=True).to_bytes()
    (again,) = DocBin().from_bytes(stored).get_docs(NLP.vocab)
    for copy in (again, Doc(NLP.vocab).from_bytes(doc.to_bytes()), doc.copy()):
        assert completion_offsets(copy) == completion_offsets(doc)
        assert [x.text for x in get_queries(copy)] == [GAP, GAP]
        (span,) = get_queries(copy)[1].candidates
        assert (span.text, span.kb_id_) == ("Ada Lovelace", "Q7259")


def test_queries_are_copied_without_completions():
    doc, target = asked(GAP), NLP("Ada Lovelace met Babbage, and Ada wrote.")
    doc._.queries = [(GAP, [doc[0:1]])]
    doc._.completions = [[("Ada", [doc[0:1]])]]
    copy_queries(doc, target)
    assert [x.text for x in get_queries(target)[0].candidates] == ["Ada"]
    assert not has_completions(target)


def test_predicted_and_gold_queries_must_be_the_same():
    other = "Who met @placeholder?"
    check_same_queries(asked(GAP, other), asked(GAP, other))
    for queries in ([other, GAP], [GAP], []):
        with pytest.raises(InputError, match=f"{len(queries)} queries, which are not the 2"):
            check_same_queries(asked(*queries), asked(GAP, other))
