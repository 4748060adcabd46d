"""All commands: the same names and letters for the same things, a help text with an example."""

import re
import shlex
from collections import defaultdict
from pathlib import Path

import click
import pytest
import typer
from typer.testing import CliRunner

from spacy_luke.cli import app

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "commands.md").read_text("utf8")
GROUP = typer.main.get_command(app)
COMMANDS = GROUP.commands
START = "python -m spacy luke "
# Shared options whose help depends on the command.
OWN_HELP = {"--output", "--lang", "--limit"}
# They resume, or verify what exists (docs/commands.md).
WITHOUT_FORCE = {
    *("articles", "entities", "occurrences", "shards", "pretrain"),
    "fetch-encoder",
    "names",  # has no output
}


def letters() -> dict[str, str]:
    """Letter -> option, from the documentation."""
    return dict(re.findall(r"^\| `(-\w)` \| `(--[\w-]+)` \|", PAGE, re.MULTILINE))


def options() -> list[tuple[str, typer.core.TyperOption]]:
    return [(name, x) for name, y in COMMANDS.items() for x in y.params if x.opts[0][:2] == "--"]


def is_given(option: str) -> list[str]:
    return [name for name, x in options() if option in x.opts]


def test_the_table_of_letters_is_complete_and_true():
    assert letters().keys() >= {"-o", "-l", "-n", "-F", "-g"}
    used = defaultdict(set)
    for _, option in options():
        names = [x for x in option.opts if x.startswith("--")]
        short = [x for x in option.opts if not x.startswith("--")]
        assert len(names) == 1, option.opts
        for letter in short:
            used[letter].add(names[0])
        for letter, name in letters().items():
            assert (name in names) == (letter in short), (option.opts, "docs/commands.md")
    assert used == {letter: {name} for letter, name in letters().items()}


def test_spacys_letters_keep_their_meaning():
    assert letters()["-c"] == "--code" and "-V" not in letters()


def test_old_names_are_gone():
    names = {x for _, option in options() for x in option.opts}
    assert not names & {"--out", "--language", "--number", "--name"}


@pytest.mark.parametrize("name", COMMANDS)
def test_everything_is_documented(name):
    for parameter in COMMANDS[name].params:
        assert parameter.help and parameter.help.endswith("."), parameter.name


def test_an_option_of_several_commands_means_the_same():
    texts = defaultdict(set)
    for name in ("--force", "--gpu-id", "--workers", "--engine", "--scheduler", "--progress"):
        for _, option in options():
            if name in option.opts:
                texts[name].add((option.help, option.default))
    assert {name: len(found) for name, found in texts.items()} == dict.fromkeys(texts, 1)


def test_the_default_language_is_stated_the_same_way():
    commands = is_given("--lang")
    assert {"convert", "import", "kb", "articles", "link-table"} == set(commands)
    for name, option in options():
        if "--lang" in option.opts:
            assert re.fullmatch(r"Language code; xx: any\. Default: [^.]+\.", option.help), name
            assert option.default == "" or f"Default: {option.default}." in option.help, name


def test_a_limit_of_0_is_none():
    for _, option in options():
        if "--limit" in option.opts:
            assert option.help.startswith("Maximum ") and option.help.endswith("; 0: all.")


def test_what_is_written_is_an_argument_out_or_an_option_output():
    writing = {"--output", "OUT"}
    for name, command in COMMANDS.items():
        places = {x for y in command.params for x in (*y.opts, *(y.metavar or "").split())}
        assert len(places & writing) == 1 or name == "names", name


def test_what_exists_is_replaced_only_by_force():
    assert set(is_given("--force")) == COMMANDS.keys() - WITHOUT_FORCE


def examples(name: str) -> list[str]:
    """The lines of a command's help that run it."""
    result = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "200", "TERM": "dumb"})
    assert result.exit_code == 0
    assert re.search(r"\bExamples?:", result.output), name
    lines = [line.strip(" │") for line in result.output.splitlines()]
    return [line for line in lines if line.startswith(START)]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_has_an_example_that_can_be_parsed(name):
    lines = examples(name)
    assert lines
    for line in lines:
        command, *arguments = shlex.split(line.removeprefix(START))
        assert command == name
        COMMANDS[name].make_context(name, arguments)


def documented() -> list[tuple[str, str]]:
    """Lines of the documentation that run a command, without what is only sketched."""
    found = []
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        text = path.read_text("utf8").replace("\\\n", " ")
        for block in re.findall(r"```(?:bash|sh)\n(.*?)```", text, re.DOTALL):
            for line in block.splitlines():
                if START in line and "$" not in line:
                    found.append((path.name, line.partition(START)[2].partition(" && ")[0]))
    return found


def test_commands_in_the_documentation_can_be_parsed():
    lines = documented()
    assert len(lines) > 30
    for page, line in lines:
        name, *arguments = shlex.split(line, comments=True)
        try:
            COMMANDS[name].make_context(name, arguments)
        except click.exceptions.ClickException as err:
            pytest.fail(f"{page}: {line}: {err.format_message()}")


def test_all_commands_are_in_the_documentation():
    listed = re.findall(r"`([\w-]+)`", "".join(re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE)))
    assert COMMANDS.keys() == {x for x in listed if not x.startswith("-")}
