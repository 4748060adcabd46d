"""Questions: what is asked, answered and kept."""

import numpy as np
import pytest
import spacy
import torch
from spacy.tokens import Doc, DocBin, Span

from spacy_luke.annotations.questions import Answers
from spacy_luke.calibration import sigmoid
from spacy_luke.errors import ConfigError, CorpusError, InputError, ModelError
from spacy_luke.kb.link_table import LinkedText, write_link_table
from spacy_luke.layers import encoder_run
from spacy_luke.layers.task_layer import encoder_of, head_of
from spacy_luke.pipeline import questions as pipeline_questions
from spacy_luke.pipeline.published import export_component, import_checkpoint
from spacy_luke.pipeline.thresholds import Goal
from spacy_luke.pipeline.tuning import tune
from tests.pipeline.cloze_data import make as make_cloze
from tests.pipeline.cloze_data import make_examples as make_cloze_examples
from tests.pipeline.conftest import fit
from tests.pipeline.published_data import same, tensors
from tests.pipeline.qa_data import (
    LONG,
    TEXTS,
    asked,
    close,
    make,
    make_examples,
    rows_of,
    scores_of,
    texts_of,
)


@pytest.fixture(scope="module")
def trained(bert_dir):
    return train(bert_dir)


@pytest.fixture(scope="module")
def trained_luke(luke_dir):
    """Byte-level BPE, which makes pieces of white space."""
    return train(luke_dir)


def train(directory):
    nlp = make(directory, top_k=2)
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    fit(nlp, examples, 120)
    return nlp


@pytest.fixture(params=["trained", "trained_luke"])
def of_each_tokenizer(request):
    return request.getfixturevalue(request.param)


# Learning and answering


def test_it_learns_answers_and_that_there_are_none(trained):
    for eg in make_examples(trained):
        doc = trained(eg.predicted)
        assert texts_of(doc._.answers) == texts_of(eg.reference._.answers)
        for found, gold in zip(doc._.answers, eg.reference._.answers):
            assert (found.no_answer > 0.5) == (gold.no_answer > 0.5)


def test_scores_are_independent_and_in_order(trained):
    trained.get_pipe("luke_qa").score_threshold = 0.0
    try:
        (found,) = trained(asked(trained, "Ada Lovelace was born in London .", "Where ?"))._.answers
        first, second = found.answers
        assert 0 < second.score <= first.score < 1
        assert found.no_answer == pytest.approx(1 - first.score)
        _, scores = trained.get_pipe("luke_qa").predict([first.span.doc])
        start, end = first.span.start + 1, first.span.end  # row 0 is of "no answer here"
        logits = scores.logits
        odds = logits[start, 0] + logits[end, 1] - logits[0].sum()
        assert first.score == pytest.approx(sigmoid(np.asarray([odds]))[0])
        assert not {x.i for x in first.span} & {x.i for x in second.span}
    finally:
        trained.get_pipe("luke_qa").score_threshold = 0.5


def test_answers_are_given_although_unlikely_if_there_must_be_one(trained):
    pipe = trained.get_pipe("luke_qa")
    doc = asked(trained, "She said : of course !", "Where ?")
    assert texts_of(trained(doc.copy())._.answers) == [None]
    pipe.no_answer = False
    try:
        (found,) = trained(doc.copy())._.answers
        assert found.best is not None and found.no_answer == 0.0
    finally:
        pipe.no_answer = True


def test_many_questions_of_many_documents(trained, monkeypatch):
    docs = [trained.make_doc(text) for text in TEXTS]
    pipe = trained.get_pipe("luke_qa")
    questions = ["Who sang ?", trained.make_doc("What is the capital ?"), "Who sang ?"]
    found = pipe.answer(questions, docs)
    assert [x.question for x in found] == ["Who sang ?", "What is the capital ?", "Who sang ?"]
    assert [x.best.text for x in found] == ["Beyoncé", "Tokyo", "Beyoncé"]
    assert [x.best.doc for x in found] == [docs[2], docs[1], docs[2]]
    assert not any(doc._.questions or doc._.answers for doc in docs)
    close(rows_of(pipe.answer(questions, docs, batch_size=1)), rows_of(found))
    monkeypatch.setattr(pipeline_questions, "_MAX_TOKENS", 2 * sum(len(doc) for doc in docs))
    close(rows_of(pipe.answer(questions, docs)), rows_of(found))  # two questions, then one
    monkeypatch.setattr(pipeline_questions, "_MAX_TOKENS", 1)
    close(rows_of(pipe.answer(questions, docs)), rows_of(found))
    assert pipe.answer(["Who sang ?"], []) == [Answers("Who sang ?", (), 1.0)]
    assert pipe.answer([], docs) == []


def test_the_best_document_wins_although_all_scores_are_one(trained, monkeypatch):
    docs = [trained.make_doc(text) for text in ("Tokyo is in Japan .", *TEXTS)]
    pipe, questions = trained.get_pipe("luke_qa"), ["What is the capital ?", "Who was born ?"]
    wanted = [(x.best.text, x.best.doc) for x in pipe.answer(questions, docs)]
    assert wanted[0] == ("Tokyo", docs[2])
    scores_of_query = pipe._scores

    def sure(query):
        scores = scores_of_query(query)
        return scores._replace(logits=scores.logits * 100)

    monkeypatch.setattr(pipe, "_scores", sure)
    for order in (docs, docs[::-1]):
        found = pipe.answer(questions, order, batch_size=2)
        assert [(x.best.text, x.best.doc) for x in found] == wanted
    ones = [pipe.answer(questions[:1], [doc])[0].answers[0].score for doc in docs[:3:2]]
    assert ones == [1.0, 1.0]


# Documents of any length


def test_an_answer_far_behind_is_found_once(trained):
    doc = asked(trained, LONG, "What is the capital ?")
    _, scores = trained.get_pipe("luke_qa").predict([doc])
    assert len(scores.windows.windows) > 2
    (found,) = trained(doc)._.answers
    assert found.best.text == "Tokyo" and found.best.start == 240
    assert sum(x.span.text == "Tokyo" for x in found.answers) == 1


def test_windows_do_not_cut_answers(trained):
    """Wherever an answer stands, it is found, also at the edges of windows."""
    filler = ["of", "course", "!"]
    for n in range(30, 75, 5):
        words = (
            (filler * 60)[:n] + ["Tokyo", "is", "the", "capital", "of", "Japan", "."] + filler * 30
        )
        (found,) = trained(asked(trained, " ".join(words), "What is the capital ?"))._.answers
        assert [x.span.text for x in found.answers].count("Tokyo") <= 1
        pieces = trained.get_pipe("luke_qa").predict([asked(trained, " ".join(words), "x")])[1]
        tokens = pieces.tokens
        inside = [
            {*tokens.tokens[tokens.offsets[i] : tokens.offsets[i + 1]]}
            for i in range(len(pieces.windows.windows))
        ]
        assert any({*range(n, n + 7)} <= x for x in inside)


def test_answers_do_not_depend_on_batches(trained, monkeypatch):
    docs = [asked(trained, text, *questions) for text, questions in TEXTS.items()]
    docs.insert(2, asked(trained, LONG, "Where ?", "Who sang ?"))
    expected = scores_of(trained.pipe([x.copy() for x in docs], batch_size=1))
    close(scores_of(trained.pipe([x.copy() for x in docs], batch_size=8)), expected)
    monkeypatch.setattr(encoder_run, "MAX_ROWS", 60)
    close(scores_of(trained.pipe([x.copy() for x in docs], batch_size=3)), expected)


def test_documents_with_many_questions_are_read_in_small_batches(trained, monkeypatch):
    docs = [asked(trained, text, *questions) for text, questions in TEXTS.items()]
    docs.append(trained.make_doc("No question ."))
    expected = scores_of(trained.pipe([x.copy() for x in docs]))
    pipe, sizes = trained.get_pipe("luke_qa"), []
    predict = pipe.predict
    monkeypatch.setattr(pipe, "predict", lambda docs: sizes.append(len(docs)) or predict(docs))
    for most, wanted in ((10**6, [5]), (30, [2, 3]), (1, [1] * 5)):
        sizes.clear()
        monkeypatch.setattr(pipeline_questions, "_MAX_TOKENS", most)
        close(scores_of(trained.pipe([x.copy() for x in docs])), expected)
        assert sizes == wanted
    sizes.clear()
    monkeypatch.setattr(pipeline_questions, "_MAX_TOKENS", 10**6)
    assert len(list(trained.pipe([x.copy() for x in docs], batch_size=2))) == 5
    assert sizes == [2, 2, 1]


def test_a_tokenizer_that_changes_texts_answers_too(bert_dir):
    nlp = make(bert_dir, no_answer=False)
    nlp.initialize()
    nlp.tokenizer = lambda text: Doc(nlp.vocab, words=text.split())  # spaces are lost
    pipe = nlp.get_pipe("luke_qa")
    pipe.make_doc = nlp.tokenizer
    doc = nlp.make_doc("Ada sang")
    doc._.questions = ["Who  sang?"]
    (found,) = pipe(doc)._.answers
    assert found.question == "Who  sang?" and found.best
    assert pipe.answer(["Who  sang?"], [doc])[0].question == "Who  sang?"


# Odd input


@pytest.mark.parametrize("text", ["", "  ", "\n \n"])
def test_text_without_words_has_no_answer(trained, text):
    doc = trained.make_doc(text)
    doc._.questions = ["Where ?", "Where ?"]
    trained.get_pipe("luke_qa")(doc)
    assert doc._.answers == (Answers("Where ?", (), 1.0),) * 2


@pytest.mark.parametrize("question", ["", "   ", "\n", "\u200b"])
def test_an_empty_question_has_no_answer(of_each_tokenizer, question, caplog):
    nlp = of_each_tokenizer
    doc = nlp(asked(nlp, "Beyoncé sang in Paris .", question, "Who sang ?"))
    empty, other = doc._.answers
    assert empty.answers == () and empty.no_answer == 1.0
    assert other.best.text == "Beyoncé"
    assert "longer than max_question_pieces" not in caplog.text


def test_no_questions(trained):
    doc = trained(asked(trained, "Beyoncé sang in Paris ."))
    assert doc._.answers == ()
    assert trained.make_doc("Tokyo")._.questions == ()
    assert list(trained.pipe([])) == []


def test_equal_questions_have_equal_answers(trained):
    doc = trained(asked(trained, "Beyoncé sang in Paris .", "Who sang ?", "Where ?", "Who sang ?"))
    first, _, third = scores_of([doc])
    close([first], [third])


def test_a_question_longer_than_the_window_is_cut(trained, caplog):
    doc = asked(trained, "Beyoncé sang in Paris .", "Who sang ? " * 100)
    _, scores = trained.get_pipe("luke_qa").predict([doc])
    assert scores.windows.n_cut == 1
    assert "1 of 1 questions are longer than max_question_pieces (64)" in caplog.text
    assert trained(doc)._.answers[0].question == "Who sang ? " * 100


def test_white_space_tokens_are_no_end_of_an_answer(of_each_tokenizer):
    nlp = of_each_tokenizer
    doc = Doc(nlp.vocab, words=["Beyoncé", "\n", "sang", " ", "in", "Paris"])
    doc._.questions = ["Who sang ?"]
    pipe = nlp.get_pipe("luke_qa")
    pipe.cfg.update(no_answer=False, top_k=50, overlap_threshold=1.0)
    try:
        (found,) = pipe(doc)._.answers
        assert len(found.answers) == 10  # of 4 words
        assert not any(x.span.text != x.span.text.strip() for x in found.answers)
    finally:
        pipe.cfg.update(no_answer=True, top_k=2, overlap_threshold=0.01)


def test_long_answers_need_no_more_memory_than_a_window(trained):
    pipe = trained.get_pipe("luke_qa")
    doc = asked(trained, "Ada Lovelace was born in London .", "Who was born ?")
    wanted = scores_of([trained(doc.copy())])
    pipe.max_answer_length = 10**12
    try:
        assert scores_of([trained(doc)]) == wanted
    finally:
        pipe.max_answer_length = 30


def test_what_cannot_be_asked_has_no_answer_also_if_there_must_be_one(of_each_tokenizer):
    nlp = of_each_tokenizer
    pipe = nlp.get_pipe("luke_qa")
    pipe.no_answer = False
    try:
        empty, question = nlp(asked(nlp, "Ada sang .", " ", "Who sang ?"))._.answers
        assert (empty.answers, empty.no_answer) == ((), 1.0)
        assert question.answers and question.no_answer == 0.0
        for text in ("", "\n\n ", "\u200b"):
            (of_text,) = pipe.answer(["Who sang ?"], [asked(nlp, text)])
            assert (of_text.answers, of_text.no_answer) == ((), 1.0)
    finally:
        pipe.no_answer = True


def test_one_question_and_texts_are_not_asked(trained):
    pipe, doc = trained.get_pipe("luke_qa"), asked(trained, "Ada sang .")
    for questions in ("Who sang ?", trained.make_doc("Who sang ?"), None):
        with pytest.raises(InputError, match="give a list of questions"):
            pipe.answer(questions, [doc])
    for docs in (["Ada sang ."], "Ada sang .", doc):
        with pytest.raises(InputError, match="not a Doc: make one with nlp.make_doc"):
            pipe.answer(["Who sang ?"], docs)
    with pytest.raises(InputError, match="give documents"):
        pipe.answer(["Who sang ?"], None)
    for size in (0, -1, None, 1.5):
        with pytest.raises(InputError, match="batch_size is .*, not a positive integer"):
            pipe.answer(["Who sang ?"], [doc], batch_size=size)
    (wanted,) = pipe.answer(["Who sang ?"], [doc])
    assert pipe.answer((x for x in ["Who sang ?"]), [doc]) == [wanted]


def test_a_question_is_tokenised_once(trained):
    pipe, made = trained.get_pipe("luke_qa"), []
    make_doc, pipe.make_doc = pipe.make_doc, lambda text: made.append(text) or make_doc(text)
    try:
        docs = [trained.make_doc(text) for text in TEXTS]
        pipe.answer(["Who sang ?", "Who sang ?"], docs, batch_size=1)
    finally:
        pipe.make_doc = make_doc
    assert made == ["Who sang ?"]


def test_no_threshold_is_tuned_if_there_must_be_an_answer(bert_dir):
    nlp = make(bert_dir, no_answer=False)
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    (tuned,) = tune(nlp, examples, Goal())
    assert tuned.thresholds is None and nlp.get_pipe("luke_qa").score_threshold == 0.5
    with pytest.raises(ConfigError, match="an answer to every question"):
        list(tune(nlp, examples, Goal(precision=0.6)))


def test_a_component_without_a_right_answer_is_not_silenced(trained):
    pipe = trained.get_pipe("luke_qa")
    wrong = {text: dict.fromkeys(asked, text.split()[-1]) for text, asked in TEXTS.items()}
    before = dict(pipe.cfg)
    with pytest.raises(CorpusError, match="luke_qa: no answer on the development data is right"):
        list(tune(trained, make_examples(trained, wrong), Goal(), ["luke_qa"]))
    assert pipe.cfg == before


def test_damaged_weights_give_no_answers(bert_dir):
    nlp = make(bert_dir, no_answer=False)
    nlp.initialize(lambda: make_examples(nlp))
    with torch.no_grad():
        for parameter in encoder_of(nlp.get_pipe("luke_qa").model).network.parameters():
            parameter.fill_(float("nan"))
    with pytest.raises(ModelError, match="luke_qa: scores are not numbers"):
        nlp(asked(nlp, "Ada Lovelace was born in London .", "Where ?"))
    with pytest.raises(ModelError, match="luke_qa: scores are not numbers"):
        nlp.get_pipe("luke_qa").answer(["Where ?"], [nlp.make_doc("Ada was born in London .")])


# Files


def test_a_saved_pipeline_answers_alike(trained, tmp_path):
    trained.to_disk(tmp_path)
    docs = [asked(trained, text, *questions) for text, questions in TEXTS.items()]
    expected = scores_of(trained.pipe([x.copy() for x in docs]))
    close(scores_of(spacy.load(tmp_path).pipe([x.copy() for x in docs])), expected)
    other = trained.from_config(trained.config).from_bytes(trained.to_bytes())
    close(scores_of(other.pipe([x.copy() for x in docs])), expected)
    stored = DocBin(docs=[trained(docs[0].copy())], store_user_data=True).to_bytes()
    (doc,) = DocBin().from_bytes(stored).get_docs(trained.vocab)
    close(scores_of([doc]), expected[:2])  # alone, not in a batch


def test_settings_are_checked(bert_dir):
    for name, value in (("top_k", 0), ("score_threshold", 1.5), ("max_answer_length", 0)):
        with pytest.raises(ConfigError, match=name):
            make(bert_dir, **{name: value})
    with pytest.raises(ConfigError, match="stride"):
        make(bert_dir, model={"stride": 0})
    with pytest.raises(ConfigError, match="no labels"):
        make(bert_dir).get_pipe("luke_qa").add_label("answer")


@pytest.mark.parametrize("kind", ["luke", "bert-luke"])
def test_published_files_come_back(make_checkpoint, tmp_path, kind):
    source = make_checkpoint(kind, "LukeForQuestionAnswering")
    nlp = import_checkpoint(str(source), "en")
    assert nlp.pipe_names == ["luke_qa"]
    export_component(nlp, tmp_path / "out", source_names=kind == "bert-luke")
    same(tensors(source), tensors(tmp_path / "out"))
    again = import_checkpoint(str(tmp_path / "out"), "en")
    doc = asked(nlp, "Tokyo is the capital of Japan .", "Where ?")
    close(scores_of([nlp(doc.copy())]), scores_of([again(doc.copy())]))


@pytest.mark.parametrize("kind,prefix", [("bert", "Bert"), ("roberta", "Roberta")])
def test_heads_of_plain_encoders_are_imported(make_checkpoint, tmp_path, kind, prefix, caplog):
    """Their logits are those of ``transformers`` in ``tests/layers/test_answer_scorer.py``."""
    source = make_checkpoint(kind, f"{prefix}ForQuestionAnswering")
    nlp = import_checkpoint(str(source), "en")
    assert nlp.pipe_names == ["luke_qa"] and "nothing is learned" not in caplog.text
    assert export_component(nlp, tmp_path / "out") == "LukeForQuestionAnswering"
    again = import_checkpoint(str(tmp_path / "out"), "en")
    doc = asked(nlp, "Tokyo is the capital of Japan .", "Where ?")
    close(scores_of([nlp(doc.copy())]), scores_of([again(doc.copy())]))
    ours, theirs = tensors(tmp_path / "out"), tensors(source)
    assert torch.equal(ours["qa_outputs.weight"], theirs["qa_outputs.weight"])
    # The head is kept with the encoder, and a component that is trained starts with it.
    luke = spacy.blank("en")
    luke.add_pipe("luke", config={"model": {"name": str(source)}})
    luke.initialize()
    assert export_component(luke, tmp_path / "luke") == "LukeForQuestionAnswering"
    started = make(source)
    started.initialize(lambda: make_examples(started))
    weight = head_of(started.get_pipe("luke_qa").model).classifier.weight
    assert torch.equal(weight, theirs["qa_outputs.weight"])


def test_a_trained_component_becomes_a_published_file(trained, tmp_path):
    assert export_component(trained, tmp_path / "out") == "LukeForQuestionAnswering"
    model = {"encoder": {"tokenization": "tokens"}}
    settings = {"top_k": 2, "no_answer": True, "model": model}
    again = import_checkpoint(str(tmp_path / "out"), "en", settings)
    docs = [asked(trained, text, *questions) for text, questions in TEXTS.items()]
    one, other = (scores_of(x.pipe([doc.copy() for doc in docs])) for x in (trained, again))
    close(one, other)


def test_entities_of_documents_and_questions_enter(luke_dir):
    nlp = make(luke_dir, no_answer=False)
    nlp.initialize(lambda: make_examples(nlp))
    doc = asked(nlp, "Tokyo is the capital of Japan .", "Where ?")
    plain = scores_of([nlp(doc.copy())])
    linked = doc.copy()
    linked.ents = [Span(linked, 0, 1, label="LOC", kb_id="Tokyo")]
    question = nlp.make_doc("Where ?")
    assert scores_of([nlp(linked.copy())]) != plain
    linked.ents = []
    question.ents = [Span(question, 0, 1, label="X", kb_id="Japan")]
    linked._.questions = [question]
    assert scores_of([nlp(linked)]) != plain


def test_entities_may_come_from_a_table_of_linked_texts(luke_dir, tmp_path):
    entries = [LinkedText("tokyo", "Tokyo", 0.5), LinkedText("japan", "Japan", 0.25)]
    write_link_table(tmp_path / "table", "en", lambda: entries)
    source = {"@misc": "spacy-luke.linked_mentions.v1", "path": str(tmp_path / "table")}
    nlp = make(luke_dir, no_answer=False, entities=source)
    nlp.initialize(lambda: make_examples(nlp))
    doc = asked(nlp, "Tokyo is the capital of Japan .", "Where is Tokyo ?")
    query, _ = nlp.get_pipe("luke_qa").predict([doc])
    assert [x.kb_id_ for x in query.entities[0]] == ["Tokyo", "Japan"]
    assert [x.kb_id_ for x in query.question_entities[0]] == ["Tokyo"]
    expected = scores_of([nlp(doc.copy())])
    doc.ents = []
    plain = make(luke_dir, no_answer=False)
    plain.initialize(lambda: make_examples(plain))
    assert scores_of([plain(doc.copy())]) != expected
    # The table is saved with the component.
    nlp.to_disk(tmp_path / "pipeline")
    data = nlp.to_bytes()
    for file in (tmp_path / "table").iterdir():
        file.unlink()
    (tmp_path / "table").rmdir()
    close(scores_of([spacy.load(tmp_path / "pipeline")(doc.copy())]), expected)
    close(scores_of([nlp.from_config(nlp.config).from_bytes(data)(doc)]), expected)


def test_a_linked_entity_is_looked_up_in_the_language_of_the_pipeline(make_checkpoint):
    """Multilingual vocabularies name their entities ``en:Tokyo``."""
    nlp = make(make_checkpoint("mluke"), lang="en", no_answer=False)
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)

    def score(kb_id):
        doc = asked(nlp, "Tokyo is the capital of Japan .", "Where ?")
        doc.ents = [Span(doc, 0, 1, "LOC", kb_id=kb_id)]
        return nlp(doc)._.answers[0].answers[0].score

    known, unknown = score("en:Tokyo"), score("")
    assert score("Tokyo") == known != unknown == score("NIL")


def test_a_stream_gets_its_answers_before_the_next_document_is_read(trained):
    events = []

    def stream():
        for i in range(3):
            events.append(("read", i))
            yield asked(trained, "Tokyo is the capital of Japan .", "Where ?")

    for i, _ in enumerate(trained.pipe(stream(), batch_size=1)):
        events.append(("answered", i))
    assert events == [(what, i) for i in range(3) for what in ("read", "answered")]


def test_documents_that_are_not_asked_are_reported_when_training_goes_on(trained, caplog):
    nlp = trained.from_config(trained.config)
    nlp.from_bytes(trained.to_bytes())
    examples = make_examples(nlp)
    for eg in examples:
        eg.predicted._.questions = []
    for _ in range(2):
        nlp.update(examples, sgd=nlp.resume_training())
    assert caplog.text.count("luke_qa: the first batch has no question") == 1


@pytest.mark.parametrize("factory", ["luke_qa", "luke_cloze"])
def test_questions_are_read_by_the_tokenizer_with_which_a_component_is_initialised(
    bert_dir, factory
):
    nlp = make(bert_dir) if factory == "luke_qa" else make_cloze(bert_dir)
    examples = (make_examples if factory == "luke_qa" else make_cloze_examples)(nlp)
    nlp.tokenizer = spacy.blank("xx").tokenizer
    nlp.initialize(lambda: examples)
    assert nlp.get_pipe(factory).make_doc is nlp.tokenizer
