"""The HTML of a page: colours, contrast, legend, filter, contents; no framework, no network."""

import colorsys
import re
from pathlib import Path

import pytest
import spacy
from spacy.tokens import Doc, Span

import spacy_luke.cli.pages.render as rendering
from spacy_luke.cli.pages.page import page_as_it_is
from spacy_luke.cli.pages.render import MAX_TYPES, hue, render
from tests.cli.pages.page_data import FAMILY, read, related
from tests.cli.test_page import page_of

CSS = (Path(rendering.__file__).with_name("templates") / "page.css").read_text(encoding="utf8")
ENOUGH, ENOUGH_OF_LINES = 4.5, 3.0
"""The contrast of text and of lines that WCAG 2 (AA) asks for."""


def schemes():
    """The colours of light and dark pages."""
    light, dark = (
        dict(re.findall(r"--([\w-]+): ([^;]+);", block))
        for block in re.findall(r":root \{(.*?)\}", CSS, re.DOTALL)
    )
    assert set(light) - set(dark) == {"spot", "sans"} and set(dark) <= set(light)
    return {"light": light, "dark": {**light, **dark}}


def rgb(colour, hue=0):
    if colour.startswith("#"):
        digits = colour[1:] if len(colour) == 7 else "".join(x * 2 for x in colour[1:])
        return [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    saturation, lightness = (float(x.strip("%")) / 100 for x in colour.split())
    return colorsys.hls_to_rgb(hue / 360, lightness, saturation)


def contrast(one, two):
    def luminance(colour):
        linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in colour]
        return sum(weight * x for weight, x in zip((0.2126, 0.7152, 0.0722), linear))

    high, low = sorted((luminance(one), luminance(two)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_can_be_read(scheme):
    colours = schemes()[scheme]
    for ground in ("paper", "ground"):
        for ink in ("ink", "soft", "good", "bad", "answer", "missed"):
            assert contrast(rgb(colours[ink]), rgb(colours[ground])) >= ENOUGH, (ink, ground)
    for ground in ("good", "bad", "answer"):
        assert contrast(rgb(colours["on"]), rgb(colours[ground])) >= ENOUGH, ground
    for any_hue in range(360):
        fill, name, edge = (rgb(colours[x], any_hue) for x in ("fill", "name", "edge"))
        assert contrast(rgb(colours["ink"]), fill) >= ENOUGH, any_hue
        assert contrast(name, rgb(colours["paper"])) >= ENOUGH, any_hue
        assert contrast(edge, rgb(colours["paper"])) >= ENOUGH_OF_LINES, any_hue


def test_colours_are_those_of_the_scheme():
    rest = re.sub(r":root \{.*?\}", "", CSS, flags=re.DOTALL)
    assert re.findall(r" #[0-9a-f]{3,6};", rest) == [" #fff;"]  # of printed pages
    assert not re.search(r"hsl\(var\(--\w+\) \d", rest)


def test_a_label_has_one_colour_on_all_pages():
    def colour_of(label, *others):
        doc = Doc(spacy.blank("en").vocab, words=["a"] * (1 + len(others)))
        doc.ents = [Span(doc, i, i + 1, x) for i, x in enumerate((label, *others))]
        html = render(page_as_it_is([doc], 0, "Test", "x"))
        (name,) = re.findall(rf'<span class="tag plain (c\d+)">{label}</span>', html)
        (value,) = re.findall(rf"\.{name} {{ --hue: (\d+); }}", html)
        return int(value)

    assert colour_of("PER") == colour_of("PER", "LOC", "ORG", "A", "B") == hue("PER") == 81
    common = [hue(x) for x in ("PER", "LOC", "ORG", "MISC")]
    gaps = [abs(a - b) for i, a in enumerate(common) for b in common[:i]]
    assert min(min(x, 360 - x) for x in gaps) > 30


def test_at_most_five_types_are_shown_and_the_others_are_behind_a_button():
    many = {f"/{i}": 1.0 for i in range(MAX_TYPES + 3)}
    html = render(page_of([(related([], types={"Ada": many}), related([]))]))
    before, after = html.split("<details")
    assert before.split('id="documents"')[1].count('<span class="type') == MAX_TYPES
    assert after.count('<span class="type') == 3 and ">+3</summary>" in after
    few = {f"/{i}": 1.0 for i in range(MAX_TYPES)}
    assert "<details" not in render(page_of([(related([], types={"Ada": few}), related([]))]))


def test_contents_count_the_errors_that_can_be_stepped_through():
    relations = [("Ada", "Byron", "child"), ("Ada", "Babbage", "knows")]
    predicted = related(relations[:1], types={"Ada": {"poet": 0.5}})
    gold = related(relations[1:], types={"Ada": {"countess": 1.0}})
    gold.ents = [ent for ent in gold.ents if ent.text != "London"]
    sang = FAMILY.replace("wrote", "sang")
    page = page_of([(predicted, gold), (related([], sang), related([], sang))])
    first, second = page.documents
    assert first.errors == {"entities": 1, "types": 2, "relations": 2} and second.errors == {}
    html = render(page)
    assert "differs: 1 entity, 2 types, 2 relations" in read(html)
    toc = html.split('<ol class="toc">')[1].split("</ol>")[0]
    assert re.findall(r'href="#([\w-]+)"', toc) == ["document-1", "document-2"]
    assert re.findall(r'class="count"[^>]*>(\d+)<', toc) == ["5"]
    documents = html.split('id="documents"')[1]
    assert documents.count('<article class="card wrong"') == 1
    marks = r'class="(?:tag|type|arc|link) (?:spurious|missed)[ "]'  # as in page.js
    assert len(re.findall(marks, documents)) == 5


def test_a_compared_page_has_a_filter_and_steps_for_keyboard_and_mouse():
    html = render(page_of([(related([("Ada", "Byron", "child")]), related([]))]))
    for name, key in (("only", "e"), ("previous", "p"), ("next", "n")):
        assert re.search(rf'<button type="button" id="{name}"[^>]*aria-keyshortcuts="{key}"', html)
    script = html.split("<script>")[1]
    assert all(f'"#{name}"' in script for name in ("only", "previous", "next", "at"))
    assert 'href="#documents"' in html and 'id="documents"' in html


def test_relations_can_be_heard():
    html = render(page_of([(related([("Ada", "Byron", "child", 0.5)]), related([]))]))
    assert 'aria-label="Ada, child, Byron"' in html and '<div aria-hidden="true"' in html


def test_a_long_label_is_cut_at_its_arc_and_whole_below():
    label = "located in the administrative territorial entity"
    page = page_of([(related([("Ada", "Byron", label, 0.5)]), related([]))])
    html = render(page)
    (arc,) = re.findall(r"<bdi[^>]*>(.*?)</bdi>", html)
    assert arc == "located in the administrative\N{HORIZONTAL ELLIPSIS} 0.50"
    assert f"{label} 0.50" in read(html)
