"""Splitting tokens changes no character and no token but those that are cut."""

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc

from spacy_luke.corpora.characters import CharSpan, align_spans, make_text_doc, split_tokens
from spacy_luke.corpora.conversion_report import Report
from spacy_luke.errors import CorpusError

NLP = spacy.blank("en")


@given(st.text(min_size=1, max_size=30), st.sets(st.integers(0, 30)))
def test_tokens_begin_at_every_cut_and_the_text_stays(text, cuts):
    doc = NLP.make_doc(text)
    split, n_split = split_tokens(doc, cuts)
    assert split.text == text
    starts = {token.idx for token in split}
    inside = {cut for t in doc for cut in cuts if t.idx < cut < t.idx + len(t)}
    assert starts == {token.idx for token in doc} | inside
    assert (n_split == 0) == (split is doc) == (not inside)


@given(st.text(min_size=1, max_size=30), st.integers(0, 29), st.integers(1, 30))
def test_split_loses_no_span_that_holds_a_character(text, start, length):
    end = min(start + length, len(text))
    if start >= end:
        return
    item = CharSpan(start, end, "X")
    placed = align_spans(make_text_doc(NLP, text), [item], "split", Report(), "line 1")
    inner = text[start:end].strip()
    if inner:
        assert placed.spans[item].text == inner


@pytest.mark.parametrize("lang, is_named", [("en", True), ("zh", False)])
def test_the_language_is_named_where_a_token_is_a_text_without_spaces(lang, is_named):
    text, report = "王小明住在北京", Report()
    nlp = spacy.blank(lang)
    nlp.tokenizer = lambda text: Doc(nlp.vocab, words=[text], spaces=[False])
    align_spans(make_text_doc(nlp, text), [CharSpan(0, 3, "X")], "strict", report, "line 1")
    (note,) = report.notes
    assert ("--lang" in note) is is_named and "--alignment split" in note
    khmer, report = "ខ្មែរ", Report()  # spaCy has no tokenizer of it
    align_spans(make_text_doc(nlp, khmer), [CharSpan(0, 2, "X")], "strict", report, "line 1")
    assert "--lang" not in report.notes[0]


def test_a_tokenizer_that_changes_the_text_is_refused():
    nlp = spacy.blank("en")
    nlp.tokenizer = lambda text: NLP.make_doc(text.lower())
    with pytest.raises(CorpusError, match="the tokenizer of 'en' changes the text"):
        make_text_doc(nlp, "Ada")
