"""``spacy luke answer``: predictions in SQuAD's official files, and answers in JSON lines."""

import json

import pytest
import spacy
from typer.testing import CliRunner

from spacy_luke.cli import app
from tests.cli.answering import make_answers_by_rule  # noqa: F401  (registers the factory)

TEXTS = ["Ada King wrote it in 1843 or 1844.", "Émile Zola lived in Médan."]


def question(name, text, *answers, **more):
    found = [{"text": x, "answer_start": TEXTS["Zola" in x].index(x)} for x in answers]
    return {"id": name, "question": text, "answers": found, **more}


QUESTIONS = [
    [
        question("a", "Who wrote it?", "Ada King"),
        question("b", "When was it?", "in 1843", "or 1844"),
        question("c", "Why?"),
    ],
    [question("d", "Who lived there?", "Émile Zola"), question("e", "When did he die?")],
]


def squad(questions=QUESTIONS, texts=TEXTS):
    paragraphs = [{"context": x, "qas": qas} for x, qas in zip(texts, questions)]
    return json.dumps({"version": "v2.0", "data": [{"title": "T", "paragraphs": paragraphs}]})


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run the command in a fresh directory; hand back its exit code and its words."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    nlp = spacy.blank("en")
    nlp.add_pipe("answers_by_rule")
    nlp.to_disk("model")

    def invoke(content, *args, name="in.json", model="model"):
        (tmp_path / name).write_text(content, encoding="utf8")
        result = CliRunner().invoke(app, ["answer", model, name, *args])
        assert result.exception is None or isinstance(result.exception, SystemExit)
        return result.exit_code, " ".join(result.output.split())

    return invoke


def load(path):
    return json.loads(path.read_text(encoding="utf8"))


def test_predictions_and_probabilities_are_the_official_files(run, tmp_path):
    code, output = run(squad(), "deep/out.json", "--no-answer-scores", "no.json")
    assert code == 0, output
    predicted = load(tmp_path / "deep" / "out.json")
    assert predicted == {"a": "Ada King", "b": "1843", "c": "", "d": "Émile Zola", "e": ""}
    assert load(tmp_path / "no.json") == {"a": 0.25, "b": 0.25, "c": 0.9, "d": 0.25, "e": 0.9}
    assert "3 of 5 questions are answered" in output
    # All but b are exact; b has F1 2/3 with "in 1843".
    assert "all questions 80.00 93.33 5" in output
    assert "with an answer 66.67 88.89 3" in output
    assert "without an answer 100.00 100.00 2" in output
    assert (
        "Best exact match 80.00, if answers are kept up to a 'no answer' probability of 0.25"
        in (output)
    )
    assert "Best F1 93.33, if answers are kept up to" in output


def test_without_unanswerable_questions_there_is_no_threshold(run):
    code, output = run(squad([QUESTIONS[0][:2], QUESTIONS[1][:1]]), "out.json")
    assert code == 0 and "all questions 66.67 88.89 3" in output
    assert "Best" not in output and "with an answer" not in output


def test_it_may_be_best_to_keep_no_answer(run):
    code, output = run(squad([[question("a", "Who?")]]), "out.json")
    assert "without an answer 0.00 0.00 1" in output and "with an answer - - 0" in output
    assert "Best F1 100.00, if no answer is kept" in output


def test_withheld_answers_are_not_scored(run, tmp_path):
    bare = {"id": 7, "question": "Who wrote it?"}
    code, output = run(squad([[bare]]), "out.json")
    assert code == 0 and load(tmp_path / "out.json") == {"7": "Ada King"}
    assert "exact match" not in output
    code, output = run(squad([[bare, question("b", "Who?", "King")]]), "out.json", "--force")
    assert "all questions 0.00 66.67 1" in output


def test_answers_are_written_by_the_ids_of_the_questions(run):
    code, output = run(squad([[question("a", "Who?"), {"question": "Why?"}]]), "out.json")
    assert code != 0 and "questions without an id: 1 (first: 'Why?', article 1" in output


def test_empty_texts_and_questions_have_no_answer(run, tmp_path):
    asked = [[question("a", "Who?")], [question("b", "")], [question("c", "Who?")], []]
    code, output = run(squad(asked, ["", TEXTS[0], " \n ", "x"]), "out.json")
    assert code == 0, output
    assert load(tmp_path / "out.json") == {"a": "", "b": "", "c": ""}


def test_texts_longer_than_spacys_limit_are_answered(run, tmp_path):
    text = "x " * 500_000 + TEXTS[0]
    assert len(text) > spacy.blank("en").max_length
    code, output = run(squad([[{"id": "a", "question": "Who?"}]], [text]), "out.json")
    assert code == 0 and load(tmp_path / "out.json") == {"a": "Ada King"}, output


def test_lines_get_answers_with_places_and_scores(run, tmp_path):
    records = [
        {"text": TEXTS[0], "questions": ["When?", "Why?", "When?"], "id": 5},
        {"text": TEXTS[1], "questions": []},
        {"text": "", "questions": ["Who?"]},
    ]
    lines = "\n".join(json.dumps(x) for x in records) + "\n\n"
    code, output = run(lines, "out.jsonl", name="in.jsonl")
    assert code == 0 and "2 of 4 questions are answered" in output
    written = (tmp_path / "out.jsonl").read_text(encoding="utf8")
    first, second, third = map(json.loads, written.splitlines())
    when, why, again = first.pop("answers")
    assert first == records[0]
    assert (
        when
        == again
        == {
            "question": "When?",
            "answers": [
                {"start": 21, "end": 25, "text": "1843", "score": pytest.approx(0.8)},
                {"start": 29, "end": 33, "text": "1844", "score": pytest.approx(0.7)},
            ],
            "no_answer": 0.25,
        }
    )
    assert why == {"question": "Why?", "answers": [], "no_answer": 0.9}
    assert second["answers"] == [] and third["answers"][0]["answers"] == []
    assert "Émile" in written


def test_repeated_ids_are_an_error_that_names_them(run, tmp_path):
    twice = [[question("a", "Who?"), question("b", "Who?")], [question("a", "When?")]]
    code, output = run(squad(twice), "out.json")
    assert code == 1 and "ids of several questions: a (1 ids)" in output
    assert not (tmp_path / "out.json").exists()


def test_a_pipeline_that_answers_nothing_is_one_error(run):
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.to_disk("silent")
    for name, content in (("in.json", squad()), ("in.jsonl", '{"text": "a", "questions": []}')):
        code, output = run(content, "out.json", name=name, model="silent")
        assert code == 1 and "no component of silent (sentencizer) answers questions" in output


@pytest.mark.parametrize(
    ("name", "content", "args", "fault"),
    [
        ("in.json", "", ["out.json"], "in.json is empty"),
        ("in.json", '{"data": []}', ["out.json"], "in.json has no questions"),
        ("in.json", "[]", ["out.json"], "the content is a list"),
        ("in.json", squad(), ["model"], "model is a directory"),
        ("in.json", squad(), ["in.json"], "must be different files"),
        ("in.json", squad(), ["o.json", "--no-answer-scores", "o.json"], "must be different"),
        ("in.jsonl", "", ["out.jsonl"], "in.jsonl is empty"),
        ("in.jsonl", "{}", ["out.jsonl"], "line 1: the record has no key 'text'"),
        ("in.jsonl", '{"text": "a"}', ["out.jsonl"], "has no key 'questions'; its keys are 'text'"),
        ("in.jsonl", '{"text": "a", "questions": "Who?"}', ["o"], "is a string, not a list"),
        ("in.jsonl", '{"text": "a", "questions": [], "id": "\\ud800"}', ["o"], "surrogate"),
        ("in.jsonl", '{"text": "a", "questions": []}', ["o", "--no-answer-scores", "n"], "SQuAD"),
    ],
)
def test_bad_input_is_one_error_and_nothing_is_written(run, tmp_path, name, content, args, fault):
    before = {path.name for path in tmp_path.iterdir()} | {name}
    code, output = run(content, *args, name=name)
    assert code == 1 and fault in output, output
    assert {path.name for path in tmp_path.iterdir()} == before
