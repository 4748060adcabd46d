"""Every example of docs/corpora.md is converted by its command, and gives the stated result."""

import re
from pathlib import Path
from typing import NamedTuple

import pytest
import spacy
from spacy.cli import app
from spacy.tokens import Doc, DocBin
from spacy.util import registry
from thinc.api import Config
from typer.testing import CliRunner

import spacy_luke.cli  # noqa: F401  (adds `luke` to spaCy's commands)
from spacy_luke.annotations.queries import query_texts
from spacy_luke.annotations.types import get_types
from spacy_luke.cli.convert import FORMATS

PAGE = (Path(__file__).parents[2] / "docs" / "corpora.md").read_text("utf8")
SECTIONS = re.findall(r"^#### `([\w-]+)`\n(.*?)(?=^#{2,4} )", PAGE, re.DOTALL | re.MULTILINE)
PARTS = re.compile(
    r"(?:`(?P<name>[\w/]+\.\w+)`:\n\n)?^```(?P<kind>\w+)\n(?P<block>.*?)^```$"
    r"|^`python -m spacy luke convert (?P<command>[^`\n]+)`$",
    re.DOTALL | re.MULTILINE,
)
WITHOUT_FILE = {"articles"}
"""Formats whose input another command makes; tests/cli/test_convert.py converts one."""


class Example(NamedTuple):
    """files: contents by name; the name is empty if it is the command's."""

    command: list[str]
    files: dict[str, str]
    result: str


def examples() -> list[Example]:
    """The examples of all sections: files, then the command, then the result."""
    found, files, command = [], {}, []
    for _, section in SECTIONS:
        for part in PARTS.finditer(section):
            if part["command"]:
                command = part["command"].split()
            elif command:
                found.append(Example(command, files, part["block"]))
                files, command = {}, []
            elif part["kind"] != "bash":
                files[part["name"] or ""] = part["block"]
        assert not files and not command, section
    return found


def describe(doc: Doc) -> str:
    """A document's annotation as on the page."""
    lines = ["entities: " + ", ".join(map(span_text, doc.ents))]
    others = [x for x in doc.spans.get("luke_ner", ()) if x not in doc.ents]
    typed = [(x.text, get_types(x)) for x in doc.ents if get_types(x)]
    parts = {
        "spans": ", ".join(map(span_text, others)),
        "relations": ", ".join(f"{x.label}({x.head}, {x.tail})" for x in doc._.relations),
        "types": "; ".join(f"{text}: {', '.join(types)}" for text, types in typed),
        "answers": "; ".join(
            f"{found.question} {', '.join(x.span.text for x in found.answers) or '(none)'}"
            for found in doc._.answers or ()
        ),
        "completions": "; ".join(
            f"{query} {', '.join(x.text for x in found.candidates)}"
            for query, found in zip(query_texts(doc), doc._.completions or ())
        ),
    }
    lines += [f"{key}: {text}" for key, text in parts.items() if text]
    return "\n".join(line.strip() for line in lines)


def span_text(span) -> str:
    return f"{span.text} ({', '.join(x for x in (span.label_, span.kb_id_) if x)})"


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.command[1])
def test_an_example_becomes_what_the_page_says(example, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in example.files.items():
        path = Path(name or example.command[1])
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf8")
    result = CliRunner().invoke(app, ["luke", "convert", *example.command])
    assert result.exit_code == 0, result.output
    docs = DocBin().from_disk(example.command[2]).get_docs(spacy.blank("en").vocab)
    assert "\n".join(map(describe, docs)) == example.result.strip()


def test_every_format_has_an_example() -> None:
    shown = {example.command[0] for example in examples()}
    assert shown == {item.name for item in FORMATS} - WITHOUT_FILE
    assert [name for name, _ in SECTIONS if name not in shown] == sorted(WITHOUT_FILE)


def test_aliases_are_named() -> None:
    sections = dict(SECTIONS)
    for item in FORMATS:
        if item.aliases:
            names = ", ".join(f"`{alias}`" for alias in item.aliases)
            assert sections[item.name].lstrip().startswith(f"({names}) ")


@pytest.mark.parametrize(
    "title, before",
    [
        ("Corpora with different annotations", "[corpora]\n"),
        ("Contexts in training", "[training]\n"),
        (
            "Case in training",
            '[training]\n[training.batcher]\n@batchers = "spacy-luke.mix_contexts.v1"\n',
        ),
    ],
)
def test_snippets_of_a_config_are_whole(tmp_path, monkeypatch, title, before):
    monkeypatch.chdir(tmp_path)
    for name in ("news", "facts"):
        DocBin().to_disk(f"{name}.spacy")
    block = PAGE.split(f"\n## {title}\n")[1].split("```ini\n")[1].split("```")[0]
    config = Config().from_str(before + block)
    parts = {k: v for section in config.values() for k, v in section.items()}
    assert len(parts) == 1 and all(callable(x) for x in registry.resolve(parts).values())
