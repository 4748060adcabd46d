"""Pipelines of commands: directories and installed packages, with code of their own."""

import sys

import pytest
import spacy
from spacy.tokens import DocBin
from typer.testing import CliRunner

from spacy_luke.cli import app
from spacy_luke.cli.loading import load_pipeline
from spacy_luke.errors import ConfigError

CODE = """
import spacy

@spacy.Language.factory("test_code", assigns=["doc.ents"])
def make(nlp, name):
    def find(doc):
        doc.set_ents([spacy.tokens.Span(doc, 0, 1, "PER")])
        return doc
    return find
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An installed package of a pipeline that finds "Ada"."""
    nlp = spacy.blank("en")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "PER", "pattern": "Ada"}])
    nlp.meta.update(name="found", version="1.0.0")
    site = tmp_path / "site"
    (site / "en_found").mkdir(parents=True)
    nlp.to_disk(site / "en_found" / "en_found-1.0.0")
    (site / "en_found" / "meta.json").write_text(
        (site / "en_found" / "en_found-1.0.0" / "meta.json").read_text()
    )
    (site / "en_found" / "__init__.py").write_text(
        "from pathlib import Path\nfrom spacy.util import load_model_from_init_py\n\n"
        "def load(**overrides):\n    return load_model_from_init_py(__file__, **overrides)\n"
    )
    (site / "en_found-1.0.0.dist-info").mkdir()
    (site / "en_found-1.0.0.dist-info" / "METADATA").write_text("Name: en_found\nVersion: 1.0.0\n")
    monkeypatch.syspath_prepend(site)
    yield "en_found"
    sys.modules.pop("en_found", None)


@pytest.fixture
def docs(tmp_path):
    doc = spacy.blank("en")("Ada left")
    doc.ents = [doc.char_span(0, 3, "PER")]
    DocBin(docs=[doc]).to_disk(tmp_path / "docs.spacy")
    return str(tmp_path / "docs.spacy")


def test_an_installed_package_is_loaded_by_its_name(package, docs, tmp_path, monkeypatch):
    assert load_pipeline(package).pipe_names == ["entity_ruler"]
    done = CliRunner().invoke(app, ["evaluate", package, docs])
    assert done.exit_code == 0 and "ents_f 100.00" in " ".join(done.output.split())
    page = str(tmp_path / "page.html")
    assert CliRunner().invoke(app, ["page", package, docs, page]).exit_code == 0
    monkeypatch.chdir(tmp_path)
    (tmp_path / package).mkdir()  # not a pipeline
    assert load_pipeline(package).pipe_names == ["entity_ruler"]


def test_a_pipeline_is_loaded_with_its_code(docs, tmp_path):
    spacy.blank("en").to_disk(tmp_path / "model")
    config = tmp_path / "model" / "config.cfg"
    text = config.read_text().replace("pipeline = []", 'pipeline = ["found"]')
    text = text.replace("[components]", '[components]\n\n[components.found]\nfactory = "test_code"')
    config.write_text(text)
    with pytest.raises(ConfigError, match="model cannot be loaded: .*test_code"):
        load_pipeline(tmp_path / "model")
    code = tmp_path / "code.py"
    code.write_text(CODE)
    args = ["evaluate", str(tmp_path / "model"), docs, "--code", str(code)]
    done = CliRunner().invoke(app, args)
    assert done.exit_code == 0, done.output
    assert load_pipeline(tmp_path / "model", code=code)("Ada left").ents[0].text == "Ada"


@pytest.mark.parametrize(
    "arguments",
    [
        ["tune", "MODEL", "DOCS", "-o", "OUT"],
        ["answer", "MODEL", "QUESTIONS", "OUT"],
        ["export", "MODEL", "OUT"],
        ["entity-table", "MODEL", "OUT", "--lite"],
        ["kb", "KB", "OUT", "--pipeline", "MODEL"],
        ["kb-edit", "KB", "-o", "OUT", "--pipeline", "MODEL"],
    ],
)
def test_every_command_that_loads_a_pipeline_imports_its_code(tmp_path, docs, arguments):
    spacy.blank("en").to_disk(tmp_path / "MODEL")
    (tmp_path / "QUESTIONS.jsonl").write_text('{"text": "Ada left", "questions": ["Who?"]}')
    (tmp_path / "code.py").write_text("raise ValueError('imported')")
    places = {"DOCS": docs, "QUESTIONS": str(tmp_path / "QUESTIONS.jsonl")}
    given = [places.get(x, str(tmp_path / x)) if x.isupper() else x for x in arguments]
    done = CliRunner().invoke(app, [*given, "--code", str(tmp_path / "code.py")])
    assert done.exit_code == 1
    assert "code.py: ValueError: imported" in " ".join(done.output.split())


@pytest.mark.parametrize(
    ("content", "fault"),
    [(None, "code.py is not a file"), ("import absent_module", "code.py: ModuleNotFoundError")],
)
def test_bad_code_is_one_error(tmp_path, content, fault):
    if content is not None:
        (tmp_path / "code.py").write_text(content)
    with pytest.raises(ConfigError, match=fault):
        load_pipeline(tmp_path, code=tmp_path / "code.py")


def test_what_is_neither_a_pipeline_nor_a_package_is_an_error(tmp_path):
    for name in (tmp_path, "absent_pipeline"):
        with pytest.raises(ConfigError, match="not the directory of a trained pipeline, and no"):
            load_pipeline(name)
