"""The README: its five lines, if the main job has trained what they load, and all links."""

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = sorted((ROOT / "docs").glob("**/*.md"))
SECTION = (ROOT / "README.md").read_text("utf8").partition("## Five lines")[2]
CODE, SHOWN = re.findall(r"```(?:python|text)\n(.*?)```", SECTION, re.DOTALL)[:2]


def test_the_five_lines_print_what_stands_beside_them(monkeypatch):
    if not (ROOT / "project/training/ner/model-best/meta.json").is_file():
        pytest.skip("project/training/ner is not trained: run 'spacy project run ner .'")
    monkeypatch.chdir(ROOT)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(CODE, {})
    printed, expected = (
        [x.rsplit(" ", 1) for x in y.splitlines()] for y in (out.getvalue(), SHOWN)
    )
    assert [name for name, _ in printed] == [name for name, _ in expected]
    # Training differs a little between machines.
    assert [float(x) for _, x in printed] == pytest.approx([float(x) for _, x in expected], abs=0.2)


def test_the_names_are_not_in_the_articles():
    articles = (ROOT / "project/corpus/encyclopedia.xml").read_text("utf8")
    names = [line.rsplit(" ", 2)[0] for line in SHOWN.splitlines()]
    assert len(names) == 4 and not [name for name in names if name in articles]
    for year in ("1887", "1931"):
        assert f"Great Gale of {year}" in articles


def _headings(text: str) -> set[str]:
    """The anchors that hosts of repositories make of headings."""
    found = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


@pytest.mark.parametrize("page", ["README.md", *(x.relative_to(ROOT).as_posix() for x in DOCS)])
def test_links_lead_somewhere(page: str) -> None:
    text = re.sub(r"```.*?```|`[^`]*`", "", (ROOT / page).read_text("utf8"), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if link.startswith("http"):
            continue
        name, _, anchor = link.partition("#")
        target = (ROOT / page).parent / name if name else ROOT / page
        assert target.exists(), f"{page}: {link}"
        if anchor:
            assert anchor in _headings(target.read_text("utf8")), f"{page}: {link}"
