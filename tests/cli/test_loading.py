"""Pipelines of commands: directories, and installed packages, which are never changed."""

import shutil
import sys
from pathlib import Path

import pytest
import spacy
from spacy.cli.package import package
from typer.testing import CliRunner

from spacy_luke.cli import app
from spacy_luke.cli.loading import get_pipeline_directory, load_pipeline
from spacy_luke.cli.saving import save_pipeline, state_of, update_pipeline
from spacy_luke.errors import ConfigError
from spacy_luke.pipeline.published import import_checkpoint
from tests.cli.answering import make_answers_by_rule  # noqa: F401  (registers the factory)


@pytest.fixture(scope="module")
def installed(make_checkpoint, tmp_path_factory):
    """A folder for ``sys.path`` with the package ``en_tiny``, as pip leaves it."""
    path = tmp_path_factory.mktemp("packages")
    nlp = import_checkpoint(str(make_checkpoint("luke", "LukeForMaskedLM")), "en")
    nlp.add_pipe("known_names")
    nlp.add_pipe("answers_by_rule")
    nlp.meta["name"] = "tiny"
    nlp.to_disk(path / "saved")
    (path / "built").mkdir()
    package(path / "saved", path / "built", create_sdist=False, silent=True)
    source = path / "built" / "en_tiny-0.0.0"
    shutil.copy(source / "meta.json", source / "en_tiny")  # as its setup.py does
    info = source / "en_tiny-0.0.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: en_tiny\nVersion: 0.0.0\n")
    return source


@pytest.fixture(autouse=True)
def paths(installed, monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(installed))
    monkeypatch.chdir(tmp_path)
    yield
    for name in [x for x in sys.modules if x.partition(".")[0] == "en_tiny"]:
        del sys.modules[name]


def run(*args, status=0) -> str:
    result = CliRunner().invoke(app, [*map(str, args)], env={"COLUMNS": "300"})
    assert result.exit_code == status, result.output
    return " ".join(result.output.split())


def test_a_pipeline_is_a_package_or_a_directory(installed):
    directory = get_pipeline_directory("en_tiny")
    assert directory == installed / "en_tiny" / "en_tiny-0.0.0"
    names = [load_pipeline(x).pipe_names for x in ("en_tiny", directory, str(directory))]
    assert names == [["luke", "known_names", "answers_by_rule"]] * 3
    changed = load_pipeline("en_tiny", {"components.luke.model.entity_table": "half"})
    assert changed.config["components"]["luke"]["model"]["entity_table"] == "half"


@pytest.mark.parametrize("name", ["nowhere", "spacy", "pytest"])
def test_what_is_neither_is_one_error(name):
    with pytest.raises(ConfigError, match=f"PIPELINE: .*{name}.* (of|not) a"):
        load_pipeline(name)


def test_commands_that_read_a_pipeline_take_a_package(tmp_path):
    assert "LukeForMaskedLM" in run("export", "en_tiny", "checkpoint")
    assert "4 entities (before: 23)" in run("entity-table", "en_tiny", "small", "--lite")
    assert spacy.load(tmp_path / "small").pipe_names[0] == "luke"
    assert "names: 0" in run("names", "en_tiny")
    (tmp_path / "asked.jsonl").write_text('{"text": "Ada in 1843.", "questions": ["When?"]}\n')
    assert "1 of 1 questions" in run("answer", "en_tiny", "asked.jsonl", "answers.jsonl")
    (tmp_path / "kb.csv").write_text("id,name\nQ1,Ada\n")
    assert "vectors made: 1 of 1" in run("kb", "kb.csv", "kb", "--pipeline", "en_tiny")
    run("entity-table", tmp_path / "small", "joined", "--from", "en_tiny")


@pytest.mark.parametrize(
    "command",
    [
        ["tune", "en_tiny", "dev.spacy"],
        ["names", "en_tiny", "--add", "kb.csv"],
        ["names", "en_tiny", "--set", "kb.csv"],
        ["kb-edit", "en_tiny", "--add", "kb.csv"],
    ],
)
def test_a_package_is_not_changed_in_place(command):
    output = run(*command, status=1)
    assert "en_tiny is an installed package. Packages are not changed in place" in output
    assert "spacy.load('en_tiny').to_disk(DIRECTORY)" in output


def test_the_current_directory_and_a_mount_point_are_refused_before_the_work(tmp_path, monkeypatch):
    for command in (["export", "en_tiny"], ["entity-table", "en_tiny"]):
        (tmp_path / "new").mkdir(exist_ok=True)
        monkeypatch.chdir(tmp_path / "new")
        assert "is the current directory" in run(*command, ".", status=1)
        monkeypatch.chdir(tmp_path)
        assert "is a mount point" in run(*command, "/proc", status=1)


def test_a_pipeline_is_updated_in_the_current_directory(tmp_path, monkeypatch):
    spacy.blank("en").to_disk(tmp_path / "model")
    (tmp_path / "model" / "notes.txt").write_text("keep")
    monkeypatch.chdir(tmp_path / "model")
    before = state_of(Path())
    nlp = spacy.load(Path())
    nlp.meta["version"] = "9.9"
    update_pipeline(nlp, Path(), before)
    monkeypatch.chdir(tmp_path)
    assert spacy.load("model").meta["version"] == "9.9"
    assert (tmp_path / "model" / "notes.txt").read_text() == "keep"


def test_what_exists_is_kept_without_force_and_replaced_only_by_its_kind(tmp_path):
    commands = [
        ["export", "en_tiny", "out"],
        ["entity-table", "en_tiny", "out", "--lite"],
    ]
    for command in commands:
        target = tmp_path / "out"
        run(*command)
        before = sorted(x.stat().st_mtime_ns for x in target.rglob("*"))
        assert "out exists; use --force to replace it" in run(*command, status=1)
        assert sorted(x.stat().st_mtime_ns for x in target.rglob("*")) == before
        (target / "notes.txt").write_text("mine")
        if command[0] == "export":  # which keeps no other files
            assert "out contains notes.txt, too" in run(*command, "--force", status=1)
            (target / "notes.txt").unlink()
        run(*command, "--force")
        assert (target / "notes.txt").exists() == (command[0] != "export")
        assert sorted(x.stat().st_mtime_ns for x in target.rglob("*")) != before
        other = next(x for x in commands if x is not command)
        assert "--force only replaces one with" in run(*other, "--force", status=1)
        target.rename(tmp_path / f"done-{command[0]}")


def test_files_of_others_are_neither_a_pipeline_nor_lost(tmp_path):
    """``meta.json`` is a common name, and a folder with a pipeline may have notes."""
    mine = tmp_path / "mine"
    (mine / "results").mkdir(parents=True)
    (mine / "meta.json").write_text('{"mine": 1}')
    with pytest.raises(ConfigError, match="only replaces one with meta.json and config.cfg"):
        save_pipeline(spacy.blank("en"), mine, force=True)
    assert {x.name for x in mine.iterdir()} == {"meta.json", "results"}
    nlp = load_pipeline("en_tiny")
    save_pipeline(nlp, tmp_path / "out")
    (tmp_path / "out" / "results").mkdir()
    nlp.remove_pipe("known_names")
    save_pipeline(nlp, tmp_path / "out", force=True)
    left = {x.name for x in (tmp_path / "out").iterdir()}
    assert "results" in left and "known_names" not in left
    assert spacy.load(tmp_path / "out").pipe_names == nlp.pipe_names
    for damaged in ("", '{"components": [{"a": 1}]}'):
        (tmp_path / "out" / "meta.json").write_text(damaged)
        save_pipeline(nlp, tmp_path / "out", force=True)
        assert spacy.load(tmp_path / "out").pipe_names == nlp.pipe_names
