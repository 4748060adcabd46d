"""Code in the pages names what exists: modules, registered functions, commands, and options."""

import ast
import importlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from spacy.cli import app
from spacy.util import registry

import spacy_luke.cli  # noqa: F401  (adds `luke` to spaCy's commands)

ROOT = Path(__file__).parents[2]
PAGES = [x.relative_to(ROOT).as_posix() for x in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"))]
OPTIONAL = {"wandb"}
GROUPS: Any = typer.main.get_command(app)
LUKE = GROUPS.commands["luke"].commands
every_page = pytest.mark.parametrize("page", sorted(PAGES))


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / page).read_text("utf8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def commands(page: str) -> Iterator[list[str]]:
    """The words of each command of ours, in blocks and in running text."""
    lines = [y for x in blocks(page, "bash") for y in x.replace("\\\n", " ").splitlines()]
    lines += re.findall(r"`([^`\n]*spacy luke [a-z][^`\n]*)`", (ROOT / page).read_text("utf8"))
    for line in lines:
        _, found, rest = line.partition("spacy luke ")
        if found:
            with_quotes = rest.count("'") % 2 == 0 and rest.count('"') % 2 == 0
            yield shlex.split(rest, comments=True) if with_quotes else rest.split()


@every_page
def test_modules_and_their_names_exist(page: str) -> None:
    for code in blocks(page, "python"):
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.Import):
                for name in {x.name for x in node.names} - OPTIONAL:
                    importlib.import_module(name)
            elif isinstance(node, ast.ImportFrom):
                assert node.module
                module = importlib.import_module(node.module)
                for name in (x.name for x in node.names):
                    assert hasattr(module, name), f"{node.module}.{name}"


@every_page
def test_registered_functions_exist(page: str) -> None:
    kinds = ("architectures", "batchers", "callbacks", "layers", "misc", "readers", "scorers")
    known = {name for kind in kinds for name in getattr(registry, kind).get_all()}
    named = re.findall(r"spacy-luke\.[A-Za-z_.]+\.v\d+", (ROOT / page).read_text("utf8"))
    assert set(named) <= known


@every_page
def test_commands_and_their_options_exist(page: str) -> None:
    for name, *words in commands(page):
        if not re.fullmatch("[a-z][a-z-]*", name):
            continue  # a placeholder
        assert name in LUKE, f"{page}: spacy luke {name}"
        params = LUKE[name].params
        known = {option for x in params for option in (*x.opts, *x.secondary_opts)}
        for word in words:
            if word in {"|", "&&", ";", ">"}:
                break
            if re.fullmatch("--[a-z][a-z-]*", word):  # others are settings of the config
                assert word in known, f"{page}: spacy luke {name} {word}"


def test_there_are_commands_to_check() -> None:
    assert sum(len(list(commands(page))) for page in PAGES) > 50
