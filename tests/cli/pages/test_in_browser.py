"""The page in a real browser, at the widths of a desk and of a phone.

Needs Chromium (on Debian: ``apt-get install chromium``); skipped without it. Set
``SPACY_LUKE_PAGE`` to measure a page of your own, such as ``project/output/all.html``.
"""

import html
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from spacy.tokens import Doc, Span
from spacy.vocab import Vocab

from spacy_luke.annotations.relations import Relation, set_relations
from spacy_luke.cli.pages.page import page_as_it_is
from spacy_luke.cli.pages.render import render
from tests.cli.pages.test_questions import WORDS, answered, page_of

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
LONG = ["Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichenverleihung" * 4]
# What a parent scrolls or cuts off may be wider than the window.
MEASURE = """<script>
const scrolls = (x) => x && (/auto|scroll|hidden/.test(getComputedStyle(x).overflowX) ||
    scrolls(x.parentElement));
const outside = [...document.body.querySelectorAll("*")].filter((x) => {
    const box = x.getBoundingClientRect();
    const left = box.left < -1 && box.right > 0;  // all of it: for screen readers
    return box.width && (box.right > innerWidth + 1 || left) && !scrolls(x.parentElement);
});
const at = (id) => document.getElementById(decodeURIComponent(id));
const links = [...document.querySelectorAll("a[href^='#']")];
const found = {
    width: innerWidth,
    content: document.documentElement.scrollWidth,
    outside: outside.slice(0, 5).map((x) => x.outerHTML.slice(0, 80)),
    small: [...document.querySelectorAll("body *")].filter((x) =>
        [...x.childNodes].some((y) => y.nodeType === 3 && y.data.trim()) &&
        parseFloat(getComputedStyle(x).fontSize) < 10).length,
    dead: links.filter((x) => !at(x.getAttribute("href").slice(1))).length,
    text: document.body.innerText.length,
};
parent.document.title = JSON.stringify(found);
</script>"""


@pytest.fixture(scope="module")
def browser() -> str:
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is installed")
    return found


def measured(browser: str, page: str, width: int, folder: Path) -> dict:
    """The page in a frame of this width: a browser's own windows are not as narrow as a phone."""
    frame = html.escape(page.replace("</body>", MEASURE + "</body>"))
    file = folder / f"{width}.html"
    file.write_text(
        f"<!DOCTYPE html><meta charset='utf-8'><title></title><body style='margin:0'>"
        f"<iframe style='border:0' width={width} height=800 srcdoc=\"{frame}\"></iframe>",
        encoding="utf8",
    )
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1400,900"]
    profile = f"--user-data-dir={folder / 'profile'}"
    run = subprocess.run(
        [*command, profile, "--virtual-time-budget=10000", "--dump-dom", file.as_uri()],
        capture_output=True,
        encoding="utf8",
        timeout=120,
    )
    title = re.search("<title>(.+?)</title>", run.stdout)
    assert title, run.stderr[-2000:]
    return json.loads(html.unescape(title[1]))


def pages() -> dict[str, str]:
    short = answered(["Who wrote it?", "Where?"], [[(0, 2)], []], [[(0, 2)], [(9, 10)]], WORDS)
    words = [*WORDS, *LONG]
    long = answered([*LONG, "Who?"], [[(11, 12)], []], [[(0, 2)], [(9, 10)]], words)
    labels = Doc(Vocab(), words=words)
    labels.ents = [Span(labels, 0, 1, label=LONG[0]), Span(labels, 2, 3, label=LONG[0])]
    set_relations(labels, [Relation(*labels.ents, LONG[0])])
    given = os.environ.get("SPACY_LUKE_PAGE")
    own = {"own": Path(given).read_text(encoding="utf8")} if given else {}
    as_it_is = render(page_as_it_is([labels], 0, "Labels", "labels.spacy"))
    return {"answers": render(page_of(short, long)), "labels": as_it_is, **own}


@pytest.mark.parametrize("width", [1280, 400])
def test_nothing_is_wider_than_the_window(browser, tmp_path, width):
    for name, page in pages().items():
        found = measured(browser, page, width, tmp_path)
        assert found["width"] == width and found["text"] > 100, name
        assert found["content"] <= width and found["outside"] == [], (name, found)
        assert found["small"] == 0 and found["dead"] == 0, (name, found)


def test_what_is_too_wide_is_seen(browser, tmp_path):
    page = pages()["answers"].replace("</main>", "<div style='width:900px'>x</div></main>")
    found = measured(browser, page, 400, tmp_path)
    assert found["content"] > 400 and found["outside"]
