"""Every epoch shows the corpus in sentences, runs and documents, and loses nothing."""

import random
from collections import Counter
from functools import partial
from itertools import count, islice

import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.training.batchers import minibatch_by_words

from spacy_luke.annotations.annotated import is_annotated, set_annotated
from spacy_luke.annotations.questions import n_questions, set_questions
from spacy_luke.annotations.relations import get_relations, set_relations
from spacy_luke.corpora import contexts
from spacy_luke.corpora.contexts import mix_contexts, possible_cuts
from spacy_luke.errors import ConfigError

NLP = spacy.blank("en")
by_words = partial(minibatch_by_words, size=50, get_length=len)


@pytest.fixture(autouse=True)
def _seed():
    random.seed(0)


def document(n_sentences: int, number: int = 0, annotated: bool = True) -> Doc:
    words, starts = [], []
    for i in range(n_sentences):
        words += [f"Name{number}x{i}", "Surname", "met", f"Other{i}", "."]
        starts += [True, False, False, False, False]
    doc = Doc(NLP.vocab, words=words, sent_starts=starts if annotated else None)
    doc.ents = [
        span
        for i in range(0, len(words), 5)
        for span in (Span(doc, i, i + 2, label="PER"), Span(doc, i + 3, i + 4, label="PER"))
    ]
    return doc


def example(doc: Doc) -> Example:
    return Example(NLP.make_doc(doc.text), doc)


def corpus(*sizes: int) -> list[Example]:
    return [example(document(n, i)) for i, n in enumerate(sizes)]


def cuts(eg: Example, max_words: int = 400) -> list[list[int]]:
    return possible_cuts(eg, max_words).tolist()


def mixed(examples, **settings) -> list[Example]:
    return list(mix_contexts(by_words, **settings).mix(examples))


def words(examples) -> Counter:
    return Counter(token.text for eg in examples for token in eg.predicted)


def entities(examples) -> Counter:
    return Counter(ent.text for eg in examples for ent in eg.reference.ents)


def n_sentences(examples) -> list[int]:
    return [sum(1 for _ in eg.reference.sents) for eg in examples]


ONLY = {
    "sentence": {"sentence": 1, "neighbours": 0, "document": 0},
    "neighbours": {"sentence": 0, "neighbours": 1, "document": 0},
    "document": {"sentence": 0, "neighbours": 0, "document": 1},
}


@pytest.mark.parametrize("sizes", [(1,) * 30, (12, 7, 1, 3), (40,), (1, 1, 9)])
def test_an_epoch_shows_every_word_and_entity_once(sizes):
    examples = corpus(*sizes)
    for _ in range(5):
        batches = list(mix_contexts(by_words, max_words=60)(examples))
        shown = [eg for batch in batches for eg in batch]
        assert words(shown) == words(examples)
        assert entities(shown) == entities(examples)
        for eg in shown:
            assert [t.text for t in eg.predicted] == [t.text for t in eg.reference]


def test_the_shares_choose_what_is_shown():
    examples = corpus(12, 12)
    assert n_sentences(mixed(examples, **ONLY["sentence"])) == [1] * 24
    assert n_sentences(mixed(examples, **ONLY["document"])) == [12, 12]
    runs = n_sentences(mixed(examples, **ONLY["neighbours"]))
    assert sum(runs) == 24 and all(run <= 5 for run in runs) and 4 < len(runs) < 13


def test_a_whole_document_is_the_example_itself():
    examples = corpus(3)
    assert mixed(examples, **ONLY["document"]) == examples


def test_long_documents_are_cut_into_runs_of_max_words():
    shown = mixed(corpus(40), **ONLY["document"], max_words=60)
    assert [len(eg.reference) for eg in shown] == [60, 60, 60, 20]


@pytest.mark.parametrize("kind", ONLY)
@pytest.mark.parametrize("n_words", [1, 2, 3, 7, 60])
def test_sentences_of_more_than_max_words_are_cut_outside_entities(kind, n_words):
    """Text without marks of sentences is one."""
    doc = document(40, annotated=False)
    for token in doc[1:]:
        token.is_sent_start = False
    shown = mixed([example(doc)], **ONLY[kind], max_words=n_words)
    assert max(len(eg.reference) for eg in shown) <= max(n_words, 2)  # "Name0x0 Surname"
    assert sum(len(eg.reference) for eg in shown) == len(doc)
    assert entities(shown) == entities([example(doc)])
    if n_words == 60:
        assert [len(eg.reference) for eg in shown] == [50, 50, 50, 50]


def test_long_sentences_are_cut_between_words_if_they_can_be():
    spaced = NLP.make_doc("the state-of-the-art method that we don't know and never saw in print")
    assert [spaced[x].text for x, _ in cuts(example(spaced), 4)[2:]] == ["method", "do", "never"]
    unspaced = Doc(NLP.vocab, words=["京"] * 9, spaces=[False] * 9)
    assert cuts(Example(unspaced.copy(), unspaced), 4) == [[0, 0], [3, 3], [6, 6]]


def test_single_sentences_are_joined_as_often_as_documents_would_be_kept():
    examples = corpus(*[1] * 60)
    assert n_sentences(mixed(examples, **ONLY["sentence"])) == [1] * 60
    runs = n_sentences(mixed(examples, **ONLY["neighbours"]))
    assert sum(runs) == 60 and all(2 <= run <= 5 for run in runs[:-1])
    joined = mixed(examples, **ONLY["document"], max_words=100)
    assert all(25 <= len(eg.reference) <= 100 for eg in joined[:-1])
    assert max(n_sentences(joined)) > 5
    assert mixed(examples, **ONLY["document"], join_sentences=False) == examples


def test_every_epoch_is_drawn_anew_and_a_seed_repeats_it():
    examples = corpus(12, 12, 12)

    def epoch():
        return [[eg.reference.text for eg in b] for b in mix_contexts(by_words)(examples)]

    random.seed(1)
    first, second = epoch(), epoch()
    random.seed(1)
    assert (epoch(), epoch()) == (first, second)
    assert first != second


def test_sentences_of_the_data_come_first_then_the_predicted_then_a_rule():
    doc = document(2, annotated=False)
    eg = example(doc)
    assert cuts(eg) == [[0, 0], [5, 5]]  # at the full stop
    for token in eg.predicted:
        token.is_sent_start = token.i == 3
    assert cuts(eg) == [[0, 0], [3, 3]]
    for token in doc:
        token.is_sent_start = token.i == 7
    assert cuts(Example(eg.predicted, doc)) == [[0, 0], [7, 7]]


def test_a_document_joined_from_unannotated_ones_is_cut_at_their_sentences_too():
    """It has only the starts of its parts. What is annotated counts, the rest is by the rule."""
    joined = Doc.from_docs([document(2, i, annotated=False) for i in range(2)])
    assert joined.has_annotation("SENT_START")
    expected = [[x, x] for x in (0, 5, 10, 15)]
    assert cuts(example(joined)) == expected
    joined[5].is_sent_start = False
    del expected[1]
    assert cuts(example(joined)) == expected
    assert max(len(eg.predicted) for eg in mixed([example(joined)], **ONLY["sentence"])) == 10


def test_marks_of_some_tokens_count_and_the_rest_is_by_the_next_source():
    """Of the reference, then the predicted document, then a rule (after the full stops at 4, 9)."""
    doc, eg = document(3, annotated=False), example(document(3, annotated=False))
    eg.predicted[7].is_sent_start = True  # of some tokens: the rule adds to it
    eg.predicted[5].is_sent_start = False
    assert cuts(eg) == [[0, 0], [7, 7], [10, 10]]
    for token in eg.predicted:
        token.is_sent_start = token.i == 7
    assert cuts(eg) == [[0, 0], [7, 7]]
    doc[3].is_sent_start = True  # the joint of two parts
    assert cuts(Example(eg.predicted, doc)) == [[0, 0], [3, 3], [7, 7]]


def test_nothing_is_cut_within_an_entity_or_a_span_of_a_group():
    doc = document(2)
    for token in doc:
        token.is_sent_start = token.i in (0, 1, 5, 8)
    doc.spans["sc"] = [Span(doc, 7, 9, label="X")]
    assert cuts(example(doc)) == [[0, 0], [5, 5]]


def test_nothing_is_cut_within_an_entity_of_the_predicted_side():
    doc = document(2)
    eg = example(doc)
    eg.predicted.ents = [Span(eg.predicted, 4, 6, label="X")]
    assert cuts(eg) == [[0, 0]]


def test_a_stream_without_end_has_batches(monkeypatch):
    monkeypatch.setattr(contexts, "_BUFFER", 10)
    batcher = mix_contexts(by_words, max_words=30)
    batches = batcher(example(document(2, i)) for i in count())
    n_words = [sum(len(eg.reference) for eg in batch) for batch in islice(batches, 50)]
    assert min(n_words) > 0 and sum(n_words) >= 50 * 10


def test_sides_that_are_tokenised_differently_are_cut_at_the_same_place():
    gold = Doc(
        NLP.vocab,
        words=["I", "can", "not", "go", ".", "Bob", "'", "s", "dog", "."],
        spaces=[True, False, True, False, True, False, False, True, False, False],
        sent_starts=[True, False, True, False, False, True, False, False, False, False],
    )
    gold.ents = [Span(gold, 5, 6, label="PER")]
    eg = Example(NLP.make_doc(gold.text), gold)
    assert [t.text for t in eg.predicted] == ["I", "can", "not", "go", ".", "Bob", "'s", "dog", "."]
    assert cuts(eg) == [[0, 0], [2, 2], [5, 5]]
    eg = Example(Doc(NLP.vocab, words=["I", "cannot", "go", ".", "Bob's", "dog", "."]), gold)
    # "not" begins within the other side's "cannot".
    assert cuts(eg) == [[0, 0], [4, 5]]
    for part in mixed([eg], **ONLY["sentence"]):
        assert "".join(t.text for t in part.predicted) == "".join(t.text for t in part.reference)


def test_relations_within_a_sentence_stay():
    doc = document(2)
    first, second, third, _ = doc.ents
    set_relations(doc, [(first, second, "met"), (second, third, "before")])
    shown = mixed([example(doc)], **ONLY["sentence"])
    assert [[r.label for r in get_relations(eg.reference)] for eg in shown] == [["met"], []]
    (whole,) = mixed([example(doc)], **ONLY["document"])
    assert [r.label for r in get_relations(whole.reference)] == ["met", "before"]


def test_entities_of_the_predicted_side_stay():
    eg = example(document(2))
    eg.predicted.ents = [Span(eg.predicted, 0, 2, label="PER")]
    shown = mixed([eg], **ONLY["sentence"])
    assert [[e.text for e in x.predicted.ents] for x in shown] == [["Name0x0 Surname"], []]


def test_only_documents_with_the_same_layers_annotated_are_joined():
    docs = [document(1, i) for i in range(40)]
    for doc in docs[::2]:
        set_annotated(doc, "relations", False)
    joined = mixed([example(doc) for doc in docs], **ONLY["document"])
    for eg in joined:
        even = {int(token.text[4:].split("x")[0]) % 2 for token in [*eg.reference][::5]}
        assert even == {0 if not is_annotated(eg.reference, "relations") else 1}
    assert len(joined) < 10 and sum(n_sentences(joined)) == 40
    parts = mixed(joined, **ONLY["sentence"])
    assert sum(is_annotated(eg.reference, "relations") for eg in parts) == 20


def test_documents_with_and_without_a_spans_group_are_not_joined():
    docs = [document(1, i) for i in range(40)]
    for doc in docs[::2]:
        doc.spans["sc"] = []
    joined = mixed([example(doc) for doc in docs], **ONLY["document"])
    words_of = {key: sum(len(eg.reference) for eg in joined if ("sc" in eg.reference.spans) is key)
                for key in (True, False)}  # fmt: skip
    assert words_of == {True: 100, False: 100} and len(joined) < 10


def test_white_space_within_a_last_token():
    gold = Doc(NLP.vocab, words=["a", "b "], spaces=[True, False], sent_starts=[True, True])
    eg = Example(Doc(NLP.vocab, words=["a", "b", " "], spaces=[True, False, False]), gold)
    assert cuts(eg) == [[0, 0], [1, 1]]


def test_documents_without_words_pass():
    empty = Example(Doc(NLP.vocab), Doc(NLP.vocab))
    for only in ONLY.values():
        assert words(mixed([empty, *corpus(1, 2)], **only)) == words(corpus(1, 2))


@pytest.mark.parametrize(
    "settings,message",
    [
        ({"sentence": -1.0}, "mix_contexts.sentence is -1.0"),
        ({"sentence": 0, "neighbours": 0, "document": 0}, "are all 0"),
        ({"max_words": 0}, "mix_contexts.max_words is 0"),
    ],
)
def test_settings_that_cannot_work(settings, message):
    with pytest.raises(ConfigError, match=message):
        mix_contexts(by_words, **settings)


def test_questions_of_documents_that_are_cut_are_counted_once(caplog):
    examples = corpus(3, 1, 2)
    for eg in examples:
        set_questions(eg.reference, ["Who?", "Whom?"])
        set_questions(eg.predicted, ["Who?", "Whom?"])
    batcher = mix_contexts(by_words, **ONLY["sentence"])
    for _ in range(2):
        shown = [eg for batch in batcher(examples) for eg in batch]
        assert [n_questions(eg.reference) for eg in shown].count(2) == 1
        assert all(n_questions(eg.reference) == n_questions(eg.predicted) for eg in shown)
    (message,) = caplog.messages
    assert "the first 3 documents have 6 of them, and 4 are not trained" in message


@pytest.mark.parametrize("kind", ["sentence", "neighbours", "document"])
def test_documents_with_categories_stay_as_they_are(kind, caplog):
    """Of a part without categories, spaCy's textcat would learn that no category is true."""
    examples = corpus(3, 1, 1, 2)
    examples[0].reference.cats = examples[1].reference.cats = {"A": 1.0, "B": 0.0}
    batcher = mix_contexts(by_words, **ONLY[kind])
    for _ in range(2):
        shown = [eg for batch in batcher(examples) for eg in batch]
        classified = [eg for eg in shown if eg.reference.cats]
        assert {id(eg) for eg in classified} == {id(eg) for eg in examples[:2]}
        others = sum(len(eg.reference) for eg in shown if not eg.reference.cats)
        assert others == sum(len(eg.reference) for eg in examples[2:])
    (message,) = caplog.messages
    assert "2 of the first 4 documents have categories (Doc.cats)" in message


def test_whole_documents_keep_their_questions(caplog):
    examples = corpus(3, 2)
    for eg in examples:
        set_questions(eg.predicted, ["Who?"])
    batches = mix_contexts(by_words, **ONLY["document"])(examples)
    assert sum(n_questions(eg.predicted) for batch in batches for eg in batch) == 2
    assert not caplog.messages
