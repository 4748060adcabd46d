"""The default candidates: all spans inside sentences."""

import pytest

from spacy_luke.errors import ConfigError
from spacy_luke.inputs.suggester import build_sentence_spans_suggester


def suggested(docs, max_words):
    ragged = build_sentence_spans_suggester(max_words)(docs)
    rows, result = ragged.dataXd.tolist(), []
    for n in ragged.lengths.tolist():
        result.append([tuple(row) for row in rows[:n]])
        rows = rows[n:]
    return result


def test_spans_stay_inside_sentences(make_doc):
    doc = make_doc(4, starts=(0, 3))
    expected = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (3, 4)]
    assert suggested([doc], 2) == [expected]


@pytest.mark.parametrize("max_words", [1, 3, 99])
def test_all_spans_are_suggested_once_and_in_order(make_doc, max_words):
    docs = [make_doc(7, starts=(0, 2, 3)), make_doc(0), make_doc(1)]
    bounds = [[0, 2, 3, 7], [0], [0, 1]]
    for spans, ends in zip(suggested(docs, max_words), bounds):
        expected = [
            (start, end)
            for low, high in zip(ends, ends[1:])
            for start in range(low, high)
            for end in range(start + 1, min(high, start + max_words) + 1)
        ]
        assert spans == expected


def test_without_documents_there_are_none():
    assert suggested([], 3) == []


def test_a_span_has_at_least_one_word():
    with pytest.raises(ConfigError, match="max_words"):
        build_sentence_spans_suggester(0)
