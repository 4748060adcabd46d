"""``project/scripts/encyclopedia.py``: annotated articles to one ``.spacy`` file a split."""

import json
import runpy
from pathlib import Path

import pytest
import spacy
import typer
from spacy.tokens import DocBin
from typer.testing import CliRunner

from spacy_luke.annotations.questions import answer_offsets, question_texts
from spacy_luke.annotations.relations import get_relations
from spacy_luke.annotations.types import get_types

SCRIPT = Path(__file__).parents[2] / "project" / "scripts" / "encyclopedia.py"
ARTICLE = {
    "title": "Ada Reed",
    "split": "train",
    "types": ["/person/sailor", "/person/writer"],
    "text": "Ada Reed left. She sailed to Hallin.",
    "mentions": [
        {"id": 0, "start": 0, "end": 8, "type": "PERSON", "article": "Ada Reed"},
        {"id": 1, "start": 29, "end": 35, "type": "PLACE", "article": None},
    ],
    "relations": [{"head": 0, "tail": 1, "label": "went_to"}],
    "questions": [
        {"id": "1", "question": "Who left?", "answers": [{"start": 0, "text": "Ada Reed"}]},
        {"id": "2", "question": "Why?", "answers": []},
    ],
}

MOVED = {"id": "1", "question": "Who?", "answers": [{"start": 1, "text": "Ada"}]}
OVERLAP = [ARTICLE["mentions"][0], {**ARTICLE["mentions"][0], "id": 1}]


@pytest.fixture
def run(tmp_path):
    app = typer.Typer()
    app.command()(runpy.run_path(str(SCRIPT))["main"])

    def invoke(*articles):
        path = tmp_path / "in.jsonl"
        path.write_text("\n".join(a if isinstance(a, str) else json.dumps(a) for a in articles))
        result = CliRunner().invoke(app, [str(path), str(tmp_path / "out")])
        assert result.exception is None or isinstance(result.exception, SystemExit)
        return result.exit_code, " ".join(result.output.split())

    return invoke


def load(path):
    return list(DocBin().from_disk(path).get_docs(spacy.blank("en").vocab))


def test_articles_go_to_their_split(run, tmp_path):
    code, _ = run(ARTICLE, {**ARTICLE, "split": "dev"}, {**ARTICLE, "split": "dev"})
    assert code == 0
    counts = [len(load(tmp_path / "out" / f"{s}.spacy")) for s in ("train", "dev", "test")]
    assert counts == [1, 2, 0]


def test_a_document_has_entities_links_sentences_and_its_title(run, tmp_path):
    run(ARTICLE)
    (doc,) = load(tmp_path / "out" / "train.spacy")
    assert [(ent.text, ent.label_, ent.kb_id_) for ent in doc.ents] == [
        ("Ada Reed", "PERSON", "Ada Reed"),
        ("Hallin", "PLACE", "NIL"),
    ]
    assert [sent.text for sent in doc.sents] == ["Ada Reed left.", "She sailed to Hallin."]
    assert doc.user_data["title"] == "Ada Reed"


def test_a_document_has_the_relations_of_its_article(run, tmp_path):
    _, output = run(ARTICLE)
    (doc,) = load(tmp_path / "out" / "train.spacy")
    (relation,) = get_relations(doc)
    assert (relation.head.text, relation.tail.text) == ("Ada Reed", "Hallin")
    assert (relation.label, relation.score) == ("went_to", 1.0)
    assert "articles sentences tokens entities typed relations questions" in output
    assert "train 1 2 9 2 1 1 2" in output


def test_a_document_has_the_questions_and_answers_of_its_article(run, tmp_path):
    run(ARTICLE)
    (doc,) = load(tmp_path / "out" / "train.spacy")
    assert question_texts(doc) == ["Who left?", "Why?"]
    assert answer_offsets(doc) == [([(0, 8, 1.0)], 0.0), ([], 1.0)]


def test_a_mention_has_the_types_of_the_article_it_means(run, tmp_path):
    other = {**ARTICLE, "title": "Hallin", "split": "test", "types": ["/place/town"]}
    unknown = {**ARTICLE["mentions"][1], "article": "Nowhere"}
    known = {**ARTICLE["mentions"][1], "article": "Hallin"}
    run({**ARTICLE, "mentions": [ARTICLE["mentions"][0], known]}, other)
    person, place = load(tmp_path / "out" / "train.spacy")[0].ents
    assert get_types(person) == {"/person/sailor": 1.0, "/person/writer": 1.0}
    assert get_types(place) == {"/place/town": 1.0}
    for mention in (ARTICLE["mentions"][1], unknown):
        run({**ARTICLE, "mentions": [ARTICLE["mentions"][0], mention]}, other)
        _, place = load(tmp_path / "out" / "train.spacy")[0].ents
        assert get_types(place) is None


def test_a_mention_that_cuts_a_token_is_left_out_with_its_relations_and_told(run, tmp_path):
    cut = {"id": 0, "start": 0, "end": 2, "type": "PERSON", "article": "Ada Reed"}
    code, output = run({**ARTICLE, "mentions": [cut, ARTICLE["mentions"][1]]})
    assert code == 0 and "begin or end inside a token, left out: 1" in output
    assert "Relations of these mentions, left out with them: 1" in output
    (doc,) = load(tmp_path / "out" / "train.spacy")
    assert [ent.text for ent in doc.ents] == ["Hallin"]
    assert get_relations(doc) == ()


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("{", "line 2: not JSON"),
        ({"title": "x", "split": "dev"}, "line 2: no types, text, mentions, relations, questions."),
        ({**ARTICLE, "split": "exam"}, "line 2: the split is 'exam'"),
        ({**ARTICLE, "questions": [MOVED]}, "line 2: the answer 'Ada' to 'Who?' is not at char"),
        ({**ARTICLE, "mentions": OVERLAP}, "line 2: mentions overlap"),
        ({**ARTICLE, "mentions": OVERLAP[:1]}, "line 2: a relation of mention 1, which is not"),
    ],
)
def test_a_bad_line_is_one_error_and_nothing_is_written(run, tmp_path, line, fault):
    code, output = run(ARTICLE, line)
    assert code == 1 and fault in output
    assert not (tmp_path / "out").exists()
