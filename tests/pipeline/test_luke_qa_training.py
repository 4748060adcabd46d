"""Questions: what is learned, what cannot be, and what is told about it."""

import logging

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc
from spacy.training import Example

from spacy_luke.errors import ConfigError, CorpusError, InputError
from spacy_luke.metrics.questions import question_score
from spacy_luke.pipeline.answer_targets import gold_tokens
from spacy_luke.pipeline.thresholds import Goal
from spacy_luke.pipeline.tuning import tune
from tests.pipeline.conftest import LISTENER, fit
from tests.pipeline.qa_data import (
    TEXTS,
    asked,
    make,
    make_examples,
    texts_of,
)


def test_documents_that_are_not_asked_are_told(bert_dir, caplog):
    nlp = make(bert_dir)
    examples = [Example(nlp.make_doc(eg.reference.text), eg.reference) for eg in make_examples(nlp)]
    with pytest.raises(
        ConfigError, match=r"5 gold annotations .* are out of reach \(5 not asked\)"
    ):
        nlp.initialize(lambda: examples)
    assert "PresetEntsCorpus" in caplog.text


def test_other_questions_than_the_reference_s_are_an_error(bert_dir):
    nlp = make(bert_dir)
    (eg, *_) = make_examples(nlp)
    eg.predicted._.questions = ["Whom ?"]
    with pytest.raises(InputError, match="same questions"):
        nlp.initialize(lambda: [eg])


def test_data_without_questions_is_told(bert_dir, caplog):
    nlp = make(bert_dir)
    nlp.initialize(lambda: [Example(doc, doc.copy()) for doc in [nlp.make_doc("No question .")]])
    assert "so that nothing is learned" in caplog.text


def test_data_without_unanswerable_questions_is_told(bert_dir, caplog):
    texts = {k: v for k, v in TEXTS.items() if None not in v.values()}
    for no_answer in (True, False):
        caplog.clear()
        nlp = make(bert_dir, no_answer=no_answer)
        nlp.initialize(lambda: make_examples(nlp, texts))  # noqa: B023
        assert ("every question of the training data has an answer" in caplog.text) == no_answer


def test_an_answer_without_words_is_not_learned_as_no_answer(bert_dir):
    # Space tokens and U+200B have no pieces, so the answer's first or last token has no score.
    nlp = make(bert_dir)
    nlp.initialize(lambda: make_examples(nlp))
    pipe, losses = nlp.get_pipe("luke_qa"), []
    golds = [(1, 3), (2, 3)], [(1, 2)], [(1, 2)]  # the last is white space alone
    words = ["Ada", " ", "Lovelace", "sang", "."], ["Ada", "\u200b", "sang", "."], ["Ada", " ", "."]
    for of_text, spans in zip(words, golds):
        for start, end in spans:
            docs = [Doc(nlp.vocab, words=of_text) for _ in range(2)]
            for doc in docs:
                doc._.questions = ["Who ?"]
            docs[1]._.answers = [[docs[1][start:end]]]
            losses.append(pipe.get_loss([Example(*docs)], pipe.predict([docs[0]]))[0])
    assert losses[0] == losses[1] > 0.0
    assert losses[2:] == [0.0, 0.0]


def test_the_first_gold_answer_with_words_is_learned(bert_dir):
    nlp = make(bert_dir)
    docs = [Doc(nlp.vocab, words=["Ada", " ", "sang", "."]) for _ in range(2)]
    for doc in docs:
        doc._.questions = ["Who ?", "Where ?"]
    docs[1]._.answers = [[docs[1][1:2], docs[1][0:1]], [docs[1][1:2]]]
    eg = Example(*docs)
    assert gold_tokens(eg) == [(0, 1), (-1, -1)]
    nlp.initialize(lambda: [eg])
    assert nlp.get_pipe("luke_qa").limits["without pieces"] == 1


def test_an_answer_that_no_window_contains_is_not_learned_as_no_answer(bert_dir, caplog):
    small = {"encoder": {"window": 24, "overlap": 4}, "model": {"stride": 4}}
    nlp = make(bert_dir, max_answer_length=60, **small)
    words = ["of", "course", "!"] * 20
    docs = [Doc(nlp.vocab, words=words) for _ in range(2)]
    for doc in docs:
        doc._.questions = ["Who ?", "Where ?"]
    docs[1]._.answers = [[docs[1][3:55]], [docs[1][7:9]]]
    eg = Example(*docs)
    with caplog.at_level(logging.WARNING):
        nlp.initialize(lambda: [eg])
    pipe = nlp.get_pipe("luke_qa")
    assert (pipe.limits["gold"], pipe.limits["in no window"]) == (2, 1)
    assert "the answers to 1 are longer than what windows share" in caplog.text
    query, scores = pipe.predict([eg.predicted])
    _, d_scores = pipe.get_loss([eg], (query, scores))
    of_window = scores.windows.windows.docs
    moved = [np.abs(d_scores.logits[scores.offsets[w] : scores.offsets[w + 1]]).sum()
             for w in range(len(of_window))]  # fmt: skip
    assert [bool(x) for x in moved] == [w == 1 for w in of_window]


@pytest.mark.parametrize("span", [(0, 2), (1, 3)])
def test_answers_that_begin_or_end_without_pieces_are_counted(bert_dir, span):
    nlp = make(bert_dir)
    # BERT's tokenizer removes this character.
    docs = [Doc(nlp.vocab, words=["\ufffd", "Ada", "\ufffd", "sang", "."]) for _ in range(2)]
    for doc in docs:
        doc._.questions = ["Who ?", "Where ?"]
    docs[1]._.answers = [[docs[1][slice(*span)]], [docs[1][1:2]]]
    nlp.initialize(lambda: [Example(*docs)])
    assert nlp.get_pipe("luke_qa").limits["without pieces"] == 1


@pytest.mark.parametrize("invisible", ["\u200b", "\u200f", "\n"])
def test_invisible_tokens_at_the_ends_of_an_answer_are_left_out(luke_dir, invisible):
    """No token of them can be an end of an answer, also where they have pieces."""
    nlp = make(luke_dir)
    docs = [Doc(nlp.vocab, words=[invisible, "Ada", invisible, "sang", "."]) for _ in range(2)]
    for doc in docs:
        doc._.questions = ["Who ?"]
    docs[1]._.answers = [[docs[1][0:3]]]
    example = Example(*docs)
    nlp.initialize(lambda: [example])
    assert nlp.get_pipe("luke_qa").limits["gold"] == 1
    assert not any(nlp.get_pipe("luke_qa").limits[x] for x in ("without pieces", "in no window"))
    assert gold_tokens(example) == [(1, 2)]


def test_limits_are_counted(bert_dir, caplog):
    nlp = make(bert_dir, max_answer_length=1)
    texts = {**TEXTS, "Kyoto": {"": "Kyoto"}}
    examples = make_examples(nlp, texts)
    inside = asked(nlp, "Beyoncé sang", "Who ?")
    gold = inside.copy()
    gold.user_data["._.", "luke_answers", None, None] = [[[[0, 3, 1.0]], 0.0]]
    with caplog.at_level(logging.WARNING):
        nlp.initialize(lambda: [*examples, Example(inside, gold)])
    assert nlp.get_pipe("luke_qa").limits == {
        "gold": 7, "not asked": 0, "without pieces": 1, "in no window": 0, "too long": 1,
        "inside a token": 1, "no answer": 3,
    }  # fmt: skip
    assert "max_answer_length (1 tokens)" in caplog.text


def test_documents_without_gold_answers_are_not_learned(bert_dir):
    nlp = make(bert_dir)
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    optimizer = nlp.resume_training()
    unknown = [Example(eg.predicted, asked(nlp, eg.predicted.text)) for eg in examples]
    assert nlp.update(unknown, sgd=optimizer)["luke_qa"] == 0.0
    assert nlp.update(examples, sgd=optimizer)["luke_qa"] > 0.0


def test_the_loss_s_gradient_is_the_slope(bert_dir):
    model = {"stride": 4, "max_question_pieces": 8}
    nlp = make(bert_dir, encoder={"window": 18, "overlap": 4}, model=model)
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    pipe = nlp.get_pipe("luke_qa")
    query, scores = pipe.predict([eg.predicted for eg in examples])
    assert len(scores.windows.windows) > len(query.questions)
    loss, d_scores = pipe.get_loss(examples, (query, scores))
    rng, step = np.random.default_rng(0), 1e-2
    for i, end in zip(rng.integers(len(scores.logits), size=25), rng.integers(2, size=25)):
        losses = []
        for sign in (1, -1):
            moved = scores.logits.astype("d")
            moved[i, end] += sign * step
            moved_scores = scores._replace(logits=moved.astype("f"))
            losses.append(pipe.get_loss(examples, (query, moved_scores))[0])
        slope = (losses[0] - losses[1]) / (2 * step)
        assert slope == pytest.approx(float(d_scores.logits[i, end]), abs=2e-4)


def test_it_shares_an_encoder(bert_dir):
    nlp = spacy.blank("en")
    encoder = {"@architectures": "spacy-luke.LukeEncoder.v1", "name": str(bert_dir)}
    nlp.add_pipe("luke", config={"model": encoder})
    nlp.add_pipe("luke_qa", config={"model": {"encoder": LISTENER}, "scorer": None})
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    fit(nlp, examples, 120)
    docs = list(nlp.pipe([eg.predicted.copy() for eg in examples]))
    expected = [texts_of(eg.reference._.answers) for eg in examples]
    assert [texts_of(doc._.answers) for doc in docs] == expected


def test_the_least_score_is_tuned_by_the_official_metric(bert_dir):
    """Withheld answers to questions without an answer count."""
    nlp = make(bert_dir)
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    fit(nlp, examples, 25)
    (tuned,) = tune(nlp, examples, Goal())

    def f1(least):
        nlp.get_pipe("luke_qa").score_threshold = least
        docs = list(nlp.pipe([eg.predicted.copy() for eg in examples]))
        found = [Example(doc, eg.reference) for doc, eg in zip(docs, examples)]
        return question_score(found)["qa_f1"]

    chosen = f1(tuned.settings["score_threshold"])
    tried = [f1(least) for least in np.linspace(0, 1, 101)]
    assert chosen >= max(tried) - 1e-9 and max(tried) > min(tried)


def test_a_component_whose_answers_are_best_not_given_is_not_silenced(bert_dir, caplog):
    """Most questions have none, and no answer is right."""
    nlp = make(bert_dir)
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    fit(nlp, examples, 80)
    texts = {
        "Ada Lovelace was born in London .": {"Who was born ?": "born in"},
        "Tokyo is the capital of Japan .": {"What is the capital ?": None, "Where ?": None},
    }
    gold = [eg for _ in range(12) for eg in make_examples(nlp, texts)]
    before = dict(nlp.get_pipe("luke_qa").cfg)
    with pytest.raises(CorpusError, match="luke_qa: on the development data it is best to give no"):
        list(tune(nlp, gold, Goal(), ["luke_qa"]))
    with pytest.raises(CorpusError, match="no right answer"), caplog.at_level(logging.WARNING):
        list(tune(nlp, gold, Goal()))
    assert "best to give no answer at all" in caplog.text
    assert nlp.get_pipe("luke_qa").cfg == before


def test_without_questions_others_are_scored_but_a_training_ends(bert_dir, caplog):
    """As ``spacy evaluate`` reads documents, and as a training with spaCy's corpus reader."""
    nlp = make(bert_dir, scorer={"@scorers": "spacy-luke.luke_qa_scorer.v1"})
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    bare = [Example(nlp.make_doc(eg.reference.text), eg.reference) for eg in examples]
    with caplog.at_level(logging.WARNING):
        nlp.evaluate(bare)
        scores = nlp.evaluate(bare)
    assert scores["qa_em"] is scores["qa_questions"] is None and scores["speed"] > 0
    assert caplog.text.count("answers are not scored") == 1
    assert "no gold annotation" not in caplog.text
    nlp.update(examples, sgd=nlp.create_optimizer())
    bare = [Example(nlp.make_doc(eg.reference.text), eg.reference) for eg in examples]
    with pytest.raises(InputError, match="Set Doc._.questions"):
        nlp.evaluate(bare)


def test_answers_inside_tokens_are_those_of_the_pipeline(bert_dir):
    """A file may have been converted with another tokenizer."""
    nlp = make(bert_dir)
    examples = make_examples(nlp)
    whole, split = ["AdaLovelace", "sang", "."], ["Ada", "Lovelace", "sang", "."]
    for words, gold_words, expected in ((split, whole, 0), (whole, split, 1)):
        predicted, gold = (
            Doc(nlp.vocab, words=x, spaces=[False] * (len(x) - 3) + [True, True, False])
            for x in (words, gold_words)
        )
        for doc in (predicted, gold):
            doc._.questions = ["Who ?"]
        gold.user_data["._.", "luke_answers", None, None] = [[[[3, 11, 1.0]], 0.0]]
        every = [*examples, Example(predicted, gold)]
        nlp.initialize(lambda every=every: every)
        assert nlp.get_pipe("luke_qa").limits["inside a token"] == expected
