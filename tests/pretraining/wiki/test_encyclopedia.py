"""The project's own export, whose text and mentions are written down beside it."""

import json
from pathlib import Path

import pytest

from spacy_luke.pretraining.wiki.export import Page, partitions, read_pages
from spacy_luke.pretraining.wiki.markup import Parsed, parse
from spacy_luke.pretraining.wiki.pages import disambiguation_mark
from spacy_luke.pretraining.wiki.sites import Site

CORPUS = Path(__file__).parents[3] / "project" / "corpus"


@pytest.fixture(scope="module")
def pages() -> dict[str, Page]:
    (part,) = partitions(CORPUS / "encyclopedia.xml")
    return {page.title: page for page in read_pages(part) if page.namespace == 0}


@pytest.fixture(scope="module")
def annotated() -> dict[str, dict]:
    lines = (CORPUS / "annotations.jsonl").read_text(encoding="utf8").splitlines()
    return {row["title"]: row for row in map(json.loads, lines)}


@pytest.fixture(scope="module")
def parsed(pages: dict[str, Page], annotated: dict[str, dict]) -> dict[str, Parsed]:
    return {title: parse(pages[title].text) for title in annotated}


def test_articles_are_told_from_redirects_and_lists_of_meanings(
    pages: dict[str, Page], annotated: dict[str, dict]
) -> None:
    site = Site(language="en")
    articles = {x.title for x in pages.values() if x.redirect is None}
    marked = {x.title for x in pages.values() if disambiguation_mark(x, site)}
    assert articles - marked == set(annotated)


def test_the_text_is_the_annotated_text(
    parsed: dict[str, Parsed], annotated: dict[str, dict]
) -> None:
    for title, row in annotated.items():
        assert parsed[title].text == row["text"]


def test_every_link_is_an_annotated_mention_of_its_target(
    parsed: dict[str, Parsed], annotated: dict[str, dict], pages: dict[str, Page]
) -> None:
    n_links = 0
    for title, row in annotated.items():
        mentions = {(x["start"], x["end"]): x["article"] for x in row["mentions"]}
        for start, end, target in parsed[title].links:
            page = pages.get(target)
            article = None if page is None else page.redirect or target
            assert mentions[start, end] == article
            n_links += 1
    assert n_links == 1595
