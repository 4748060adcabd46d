"""Excerpts of public dumps: nothing raises, no markup is left, every link is accounted for."""

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.wiki_markup import other_anchors
from spacy_luke.pretraining.wiki.export import partitions, read_pages
from spacy_luke.pretraining.wiki.markup import parse
from tests.conftest import require_data

RESIDUE = re.compile(r"\[\[|\]\]|\{\{|\}\}|''|<ref|\|thumb|\|mini")

# file: pages, redirects, links kept
SIZES = {
    "enwiki-pages-articles-sample.xml.bz2": (3, 1, 262),
    "enwiki-table-markup.xml.bz2": (5, 0, 421),
    "tiny_dump.xml.bz2": (70, 64, 2480),
    "minidumps/ar-wiki.xml.bz2": (3, 0, 143),
    "minidumps/de-wiki.xml.bz2": (2, 0, 1661),
    "minidumps/en-wiki.xml.bz2": (27, 2, 4984),
    "minidumps/es-wiki.xml.bz2": (1, 0, 332),
    "minidumps/fr-wiki.xml.bz2": (3, 0, 965),
    "minidumps/ja-wiki.xml.bz2": (1, 0, 522),
    "minidumps/nl-wiki.xml.bz2": (2, 0, 571),
    "minidumps/zh-wiki.xml.bz2": (1, 0, 294),
}
LARGE = {
    "enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2": (206, 100, 22763),
    "itwiki-small-dump.xml.gz": (747, 65, 50766),
}


def check(path: Path, sizes: tuple[int, int, int]) -> None:
    require_data(path)
    found: Counter[str] = Counter()
    residue = []
    (part,) = partitions(path)
    if path.parent.name == "minidumps":  # their siteinfo is that of the English Wikipedia
        part = replace(part, site=replace(part.site, language=path.name[:2], dbname=""))
    for page in read_pages(part):
        found["pages"] += 1
        found["redirects"] += page.redirect is not None
        if page.redirect is not None or page.namespace != 0:
            continue
        parsed = parse(page.text, part.site)
        found["links"] += len(parsed.links)
        residue += RESIDUE.findall(parsed.text)
        dropped = sum(n for kind, n in parsed.dropped.items() if kind.startswith("link "))
        n_open = page.text.count("[[")
        assert n_open == len(parsed.links) + dropped + parsed.dropped["unclosed link"], page.title
        for start, end, _ in parsed.links:
            assert parsed.text[start:end].strip()
        found["other anchors"] += len(other_anchors(page.text, parsed))
    assert (found["pages"], found["redirects"], found["links"]) == sizes
    assert residue == []
    # What a pattern cannot read: templates in anchors, and links within links.
    assert found["other anchors"] <= 6 + found["links"] // 1000


@pytest.mark.parametrize("name", SIZES)
def test_a_small_excerpt(name: str, data_dir: Path) -> None:
    check(data_dir / "wikipedia" / name, SIZES[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_a_large_excerpt(name: str, data_dir: Path) -> None:
    check(data_dir / "wikipedia" / name, LARGE[name])
