"""The five lines of the README, if the main job has trained what they load."""

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_the_five_lines_print_what_stands_beside_them(monkeypatch):
    section = (ROOT / "README.md").read_text("utf8").partition("## Five lines")[2]
    code, shown = re.findall(r"```(?:python|text)\n(.*?)```", section, re.DOTALL)[:2]
    if not (ROOT / "project/training/ner/model-tuned/meta.json").is_file():
        pytest.skip("project/training/ner is not trained: run 'spacy project run ner .'")
    monkeypatch.chdir(ROOT)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(code, {})
    printed, expected = (
        [x.rsplit(" ", 1) for x in y.splitlines()] for y in (out.getvalue(), shown)
    )
    assert [name for name, _ in printed] == [name for name, _ in expected]
    # Training differs a little between machines.
    assert [float(x) for _, x in printed] == pytest.approx([float(x) for _, x in expected], abs=0.2)
