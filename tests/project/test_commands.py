"""``project.yml``: its commands have the options that they are given."""

import re
import shlex
from functools import reduce
from operator import getitem
from pathlib import Path

import pytest
import srsly
import typer
from spacy.cli._util import parse_config_overrides
from spacy.util import load_config, load_model_from_config
from weasel.cli.run import load_project_config, project_run

from spacy_luke.cli import app

ROOT = Path(__file__).parents[2]
PROJECT = srsly.read_yaml(ROOT / "project.yml")
LUKE = "python -m spacy luke "


def filled(line: str) -> str:
    return re.sub(r"\$\{vars\.(\w+)\}", lambda x: str(PROJECT["vars"][x[1]]), line)


def scripts() -> list[str]:
    """Lines that run a command of ours, with the variables as they stand."""
    lines = [filled(line) for command in PROJECT["commands"] for line in command["script"]]
    return [line.removeprefix(LUKE) for line in lines if line.startswith(LUKE)]


@pytest.mark.parametrize("script", scripts())
def test_options_of_a_command_exist(script):
    name, *arguments = shlex.split(script)
    command = typer.main.get_command(app).commands[name]
    command.make_context(name, arguments)  # raises for what is unknown, missing or of another type


@pytest.mark.parametrize("workflow", PROJECT["workflows"])
def test_a_workflow_can_be_run(workflow, capfd):
    """spaCy fills in the variables: quotes in one of them would break the file."""
    project_run(ROOT, workflow, dry=True)
    printed = capfd.readouterr().out
    assert all(f" {name} " in printed for name in PROJECT["workflows"][workflow])


def test_files_of_the_commands_are_paths():
    """Interpolation joins two variables in a row to one name, which no file has."""
    commands = load_project_config(ROOT)["commands"]
    files = [path for x in commands for path in (*x.get("deps", ()), *x.get("outputs", ()))]
    assert files and not [path for path in files if "," in path]


def training_scripts() -> list[str]:
    lines = [line for command in PROJECT["commands"] for line in command["script"]]
    return [filled(line) for line in lines if " spacy train " in line]


@pytest.mark.parametrize("script", training_scripts())
def test_overrides_of_a_training_are_settings_of_its_config(script):
    config, *arguments = shlex.split(script)[4:]
    own = {"--output", "--gpu-id"}
    pairs = [x for x in zip(arguments[::2], arguments[1::2]) if x[0] not in own]
    overrides = parse_config_overrides([part for pair in pairs for part in pair])
    plain = load_config(ROOT / config)
    for key in overrides:
        *sections, name = key.split(".")
        assert name in reduce(getitem, sections, plain), key
    load_model_from_config(load_config(ROOT / config, overrides=overrides), auto_fill=False)


def test_the_four_stages_of_pretraining_are_among_them():
    names = [script.split()[0] for script in scripts()]
    assert {"articles", "entities", "shards", "pretrain", "import"} <= set(names)


def test_a_dump_is_no_dependency():
    """The runner would read all of it into memory for a checksum; the stage has its own, and so
    it is always started."""
    assert not [x["name"] for x in PROJECT["commands"] if "${vars.dump}" in x.get("deps", [])]
    (articles,) = (x for x in PROJECT["commands"] if "${vars.dump}" in x["script"][0])
    assert articles["no_skip"]
