"""``project/scripts/encyclopedia.py``: annotated articles to one ``.spacy`` file a split."""

import json
import runpy
from pathlib import Path

import pytest
import spacy
import typer
from spacy.tokens import DocBin
from typer.testing import CliRunner

SCRIPT = Path(__file__).parents[2] / "project" / "scripts" / "encyclopedia.py"
ARTICLE = {
    "title": "Ada Reed",
    "split": "train",
    "text": "Ada Reed left. She sailed to Hallin.",
    "mentions": [
        {"id": 0, "start": 0, "end": 8, "type": "PERSON", "article": "Ada Reed"},
        {"id": 1, "start": 29, "end": 35, "type": "PLACE", "article": None},
    ],
}


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
        ("Hallin", "PLACE", ""),
    ]
    assert [sent.text for sent in doc.sents] == ["Ada Reed left.", "She sailed to Hallin."]
    assert doc.user_data["title"] == "Ada Reed"


def test_a_mention_that_cuts_a_token_is_left_out_and_told(run, tmp_path):
    cut = {"id": 0, "start": 0, "end": 2, "type": "PERSON", "article": None}
    code, output = run({**ARTICLE, "mentions": [cut]})
    assert code == 0 and "begin or end inside a token, left out: 1" in output
    assert not load(tmp_path / "out" / "train.spacy")[0].ents


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("{", "line 2: not JSON"),
        ({"title": "x", "split": "dev"}, "line 2: no text, mentions."),
        ({**ARTICLE, "split": "exam"}, "line 2: the split is 'exam'"),
        ({**ARTICLE, "mentions": ARTICLE["mentions"][:1] * 2}, "line 2: mentions overlap"),
    ],
)
def test_a_bad_line_is_one_error_and_nothing_is_written(run, tmp_path, line, fault):
    code, output = run(ARTICLE, line)
    assert code == 1 and fault in output
    assert not (tmp_path / "out").exists()
