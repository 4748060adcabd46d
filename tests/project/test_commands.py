"""``project.yml``: its commands have the options that they are given."""

import re
import shlex
from pathlib import Path

import pytest
import srsly
import typer

from spacy_luke.cli import app

PROJECT = srsly.read_yaml(Path(__file__).parents[2] / "project.yml")
LUKE = "python -m spacy luke "


def scripts() -> list[str]:
    """Lines that run a command of ours, with the variables as they stand."""
    values = PROJECT["vars"]
    lines = [line for command in PROJECT["commands"] for line in command["script"]]
    lines = [re.sub(r"\$\{vars\.(\w+)\}", lambda x: str(values[x[1]]), line) for line in lines]
    return [line.removeprefix(LUKE) for line in lines if line.startswith(LUKE)]


@pytest.mark.parametrize("script", scripts())
def test_options_of_a_command_exist(script):
    name, *arguments = shlex.split(script)
    command = typer.main.get_command(app).commands[name]
    command.make_context(name, arguments)  # raises for what is unknown, missing or of another type


def test_the_four_stages_of_pretraining_are_among_them():
    names = [script.split()[0] for script in scripts()]
    assert {"articles", "entities", "shards", "pretrain", "import"} <= set(names)


def test_a_dump_is_no_dependency():
    """The runner would read all of it into memory for a checksum; the stage has its own, and so
    it is always started."""
    assert not [x["name"] for x in PROJECT["commands"] if "${vars.dump}" in x.get("deps", [])]
    (articles,) = (x for x in PROJECT["commands"] if "${vars.dump}" in x["script"][0])
    assert articles["no_skip"]
