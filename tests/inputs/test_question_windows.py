"""Sequences of a question and a window of its passage."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_luke.checkpoint.read_tokenizer import read_tokenizer
from spacy_luke.errors import ConfigError
from spacy_luke.inputs.alignment import align
from spacy_luke.inputs.question_windows import PlacedEntities, question_windows

VOCAB = Vocab()
NO_SPANS = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))


def windows_of(tokenizer, docs, questions, of_doc, size=40, stride=8, most=64, spans=NO_SPANS):
    docs = [Doc(VOCAB, words=x.split()) if x else Doc(VOCAB) for x in docs]
    questions = [Doc(VOCAB, words=x.split()) if x else Doc(VOCAB) for x in questions]
    return question_windows(
        docs,
        align(docs, tokenizer),
        align(questions, tokenizer),
        np.asarray(of_doc, dtype=np.int64),
        tokenizer,
        size=size,
        stride=stride,
        max_question_pieces=most,
        n_separators=tokenizer.n_separators,
        spans=spans,
    )


@pytest.fixture(scope="module", params=["bert_dir", "roberta_dir"])
def tokenizer(request):
    return read_tokenizer(request.getfixturevalue(request.param))


def test_the_sequence_is_question_separators_passage(tokenizer):
    windows = windows_of(tokenizer, ["Tokyo is in Japan"], ["Where is Tokyo"], [0])
    words = windows.words(0, 1)
    question, passage = windows.questions.ids.tolist(), windows.passages.ids.tolist()
    sep = [tokenizer.sep_id]
    n_separators = 2 if tokenizer.spaces_matter else 1
    expected = [tokenizer.cls_id, *question, *sep * n_separators, *passage, *sep]
    assert words.piece_ids.tolist() == expected
    start = 1 + len(question) + n_separators
    assert words.types.tolist() == [0] * start + [1] * (len(passage) + 1)
    tokens = windows.window_tokens()
    assert tokens.tokens.tolist() == [0, 1, 2, 3]
    assert tokens.first[0] == start and tokens.last[-1] == start + len(passage) - 1


def test_each_question_has_the_windows_of_its_document(tokenizer):
    docs = ["Tokyo is in Japan", "London " * 60 + "x"]
    windows = windows_of(tokenizer, docs, ["Where", "Who lived", "When"], [0, 1, 1])
    assert set(windows.windows.docs) == {0, 1, 2}
    counts = np.bincount(windows.windows.docs)
    assert counts[0] == 1 and counts[1] > 1 and counts[2] > 1
    assert windows.sizes().max() <= 40
    # Packed in parts or at once, they are the same.
    whole, n = windows.words(0, len(windows.windows)), len(windows.windows)
    parts = [windows.words(i, i + 1).piece_ids for i in range(n)]
    assert np.array_equal(np.concatenate(parts), whole.piece_ids)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_every_answer_up_to_the_stride_is_whole_in_one_window(tokenizer, data):
    words = data.draw(st.lists(st.sampled_from(["Tokyo", "Japan", "the", "of"]), max_size=80))
    windows = windows_of(tokenizer, [" ".join(words)], ["Where is it"], [0], size=30, stride=8)
    if not words:
        assert not len(windows.windows)
        return
    pieces, tokens = windows.passages, windows.window_tokens()
    seen = set()
    for i in range(len(windows.windows)):
        inside = tokens.tokens[tokens.offsets[i] : tokens.offsets[i + 1]]
        seen |= {(a, b) for a in inside for b in inside if a <= b}
    for a in range(len(words)):
        for b in range(a, len(words)):
            if pieces.token_ends[b] - pieces.token_starts[a] <= 6:
                assert (a, b) in seen


def test_long_questions_are_cut_and_counted(tokenizer):
    windows = windows_of(tokenizer, ["Tokyo"], ["!", "Tokyo " * 30], [0, 0], most=5)
    assert windows.n_cut == 1 and windows.lengths.max() == 5
    assert len(windows.windows) == 2


def test_what_has_no_pieces_has_no_window(tokenizer):
    assert not len(windows_of(tokenizer, [""], ["Where"], [0]).windows)
    windows = windows_of(tokenizer, ["Tokyo"], ["", "Where"], [0, 0])
    assert windows.windows.docs.tolist() == [1]
    assert not len(windows_of(tokenizer, [], [], []).windows)


def test_a_question_that_leaves_no_room_is_an_error(tokenizer):
    with pytest.raises(ConfigError, match="no room for a passage"):
        windows_of(tokenizer, ["Tokyo " * 30], ["Tokyo " * 30], [0], size=20)


def test_entities_of_question_and_passage(tokenizer):
    windows = windows_of(tokenizer, ["Tokyo is in Japan " * 9], ["Where is Tokyo"], [0])
    pieces, questions = windows.passages, windows.questions
    names = [0, 3, 4, 7, 33, 34, 35]
    passage = PlacedEntities(pieces.token_starts[names], pieces.token_ends[names], np.arange(7))
    question = PlacedEntities(questions.token_starts[2:], questions.token_ends[2:], np.array([50]))
    words = windows.words(0, len(windows.windows))
    entities, rows = windows.entities(0, len(windows.windows), question, passage, 0)
    found = set()
    for i, (low, high) in enumerate(zip(entities.offsets, entities.offsets[1:])):
        base, own = words.offsets[i], slice(low, high)
        assert entities.ids[low] == 50 and rows[low] == 0
        for start, end, row in zip(entities.starts[own], entities.ends[own], rows[own]):
            in_passage = row < 0
            row = -1 - row if in_passage else row
            given, of_text = (passage, pieces) if in_passage else (question, questions)
            ids = of_text.ids[given.starts[row] : given.ends[row]]
            assert np.array_equal(words.piece_ids[base + start : base + end], ids)
            found.add((bool(in_passage), int(row)))
    assert found == {(True, i) for i in range(7)} | {(False, 0)}
    limited, _ = windows.entities(0, 1, question, passage, 1)
    assert (limited.ends - limited.starts == 1).all()
