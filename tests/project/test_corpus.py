"""The encyclopedia in project/corpus: its size, its annotation and its wikitext."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

CORPUS = Path(__file__).resolve().parents[2] / "project" / "corpus"
NAMESPACE = "{http://www.mediawiki.org/xml/export-0.11/}"
SPLITS = ("train", "dev", "test")
TYPES = ("PERSON", "PLACE", "ORG", "EVENT", "WORK", "VESSEL", "SPECIES")
SYMMETRIC = ("spouse_of", "sibling_of", "borders")
SIGNATURES: dict[str, tuple[set[str], set[str]]] = {
    "born_in": ({"PERSON"}, {"PLACE"}),
    "located_in": ({"PLACE", "ORG"}, {"PLACE"}),
    "works_for": ({"PERSON"}, {"ORG"}),
    "author_of": ({"PERSON"}, {"WORK"}),
    "founded": ({"PERSON", "ORG"}, {"ORG", "EVENT"}),
    "takes_place_in": ({"EVENT"}, {"PLACE"}),
    "owns": ({"PERSON", "ORG"}, {"VESSEL", "ORG", "PLACE", "WORK"}),
    "feeds_on": ({"SPECIES"}, {"SPECIES"}),
    "spouse_of": ({"PERSON"}, {"PERSON"}),
    "sibling_of": ({"PERSON"}, {"PERSON"}),
    "borders": ({"PLACE"}, {"PLACE"}),
}
LINK = re.compile(r"\[\[(?!File:|Category:)([^\[\]|]+)(?:\|([^\[\]]*))?\]\]([a-z]*)")

Article = dict[str, Any]


class Page(NamedTuple):
    title: str
    namespace: int
    redirect: str | None
    text: str


def read_articles() -> list[Article]:
    lines = (CORPUS / "annotations.jsonl").read_text(encoding="utf8").splitlines()
    return [json.loads(line) for line in lines]


def read_pages() -> list[Page]:
    root = ElementTree.parse(CORPUS / "encyclopedia.xml").getroot()
    pages = []
    for page in root.iter(NAMESPACE + "page"):
        redirect = page.find(NAMESPACE + "redirect")
        pages.append(
            Page(
                title=page.findtext(NAMESPACE + "title", ""),
                namespace=int(page.findtext(NAMESPACE + "ns", "")),
                redirect=None if redirect is None else redirect.get("title"),
                text=page.findtext(f"{NAMESPACE}revision/{NAMESPACE}text", ""),
            )
        )
    return pages


ARTICLES = read_articles()
PAGES = read_pages()
WIKITEXT = {page.title: page.text for page in PAGES}
REDIRECTS = {page.title: page.redirect for page in PAGES if page.redirect is not None}
TITLES = {article["title"] for article in ARTICLES}


def resolve(target: str) -> str:
    """The title that a link's target means: section dropped, redirects followed."""
    title = target.split("#")[0].strip()
    title = title[:1].upper() + title[1:]
    return REDIRECTS.get(title) or title


def running_text(wikitext: str) -> str:
    """The wikitext without tables, templates, files, comments and footnotes."""
    text = re.sub(r"<!--.*?-->|<ref>.*?</ref>", "", wikitext, flags=re.DOTALL)
    text = re.sub(r"^\{\|.*?^\|\}", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"\{\{.*?\}\}", "", text, flags=re.DOTALL)
    return re.sub(r"\[\[File:(?:\[\[[^\]]*\]\]|[^\]])*\]\]", "", text)


def links_of(article: Article) -> int:
    return len(LINK.findall(WIKITEXT[article["title"]]))


def count(articles: list[Article], name: str) -> int:
    """The number that a row of the README's table of counts states."""
    mentions = [mention for article in articles for mention in article["mentions"]]
    relations = [relation for article in articles for relation in article["relations"]]
    questions = [question for article in articles for question in article["questions"]]
    values = {
        "articles": len(articles),
        "words": sum(len(article["text"].split()) for article in articles),
        "links": sum(links_of(article) for article in articles),
        "mentions": len(mentions),
        "mentions without an article": sum(mention["article"] is None for mention in mentions),
        "relations": len(relations),
        "questions": len(questions),
        "questions with an answer": sum(bool(question["answers"]) for question in questions),
        "questions without an answer": sum(not question["answers"] for question in questions),
    }
    for label in TYPES:
        values[f"mentions {label}"] = sum(mention["type"] == label for mention in mentions)
    for label in SIGNATURES:
        values[f"relations {label}"] = sum(relation["label"] == label for relation in relations)
    return values[name]


def surfaces() -> Iterator[tuple[Article, str | None, str]]:
    """Of each mention: the article that has it, the title that it means, its text."""
    for article in ARTICLES:
        for mention in article["mentions"]:
            yield article, mention["article"], article["text"][mention["start"] : mention["end"]]


def ambiguous_names() -> dict[str, dict[str, Counter[str]]]:
    """Name -> title -> splits of the mentions of that name that mean it; at least two titles."""
    names: dict[str, dict[str, Counter[str]]] = {}
    for article, title, name in surfaces():
        if title is not None:
            names.setdefault(name, {}).setdefault(title, Counter())[article["split"]] += 1
    return {name: titles for name, titles in names.items() if len(titles) > 1}


def shared_names() -> int:
    """How many mentions without an article have a name that means an article elsewhere."""
    linked = {name for _, title, name in surfaces() if title is not None}
    return sum(title is None and name in linked for _, title, name in surfaces())


def right_by_prior() -> tuple[int, int]:
    """How many ambiguous mentions in dev and test mean the title that their name means most often
    in train, and how many there are. All of the titles in a tie count: however it is broken, no
    more mentions are right."""
    right = total = 0
    for titles in ambiguous_names().values():
        most = max(splits["train"] for splits in titles.values())
        for splits in titles.values():
            total += splits["dev"] + splits["test"]
            if splits["train"] == most > 0:
                right += splits["dev"] + splits["test"]
    return right, total


def table_rows(first_cell: str) -> list[list[str]]:
    """The rows below the header of the README's table whose header starts with first_cell."""
    lines = (CORPUS / "README.md").read_text(encoding="utf8").splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(f"| {first_cell} |"))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip().strip("`") for cell in line.strip("|").split("|")])
    return rows


article_cases = pytest.mark.parametrize("article", ARTICLES, ids=lambda article: article["title"])


@pytest.mark.parametrize(
    ("name", "minimum"),
    [
        ("articles", 60),
        ("words", 7000),
        ("links", 800),
        ("relations", 250),
        ("questions", 100),
        ("questions without an answer", 15),
        ("mentions without an article", 160),
    ],
)
def test_minimum_size(name: str, minimum: int) -> None:
    assert count(ARTICLES, name) >= minimum


@pytest.mark.parametrize("label", TYPES)
def test_every_type_is_frequent(label: str) -> None:
    assert count(ARTICLES, f"mentions {label}") >= 40


@pytest.mark.parametrize("label", SIGNATURES)
def test_every_relation_is_frequent(label: str) -> None:
    assert count(ARTICLES, f"relations {label}") >= 12


def test_fine_types() -> None:
    for article in ARTICLES:
        assert 1 <= len(article["types"]) <= 3
        assert all(re.fullmatch(r"(/[a-z]+)+", path) for path in article["types"])
    assert len({path for article in ARTICLES for path in article["types"]}) >= 20


def test_siteinfo() -> None:
    root = ElementTree.parse(CORPUS / "encyclopedia.xml").getroot()
    assert root.tag == NAMESPACE + "mediawiki"
    assert root.get("version") == "0.11"
    site = root.find(NAMESPACE + "siteinfo")
    assert site is not None
    assert site.findtext(NAMESPACE + "sitename")
    assert site.findtext(NAMESPACE + "dbname")
    assert ".example/" in site.findtext(NAMESPACE + "base", "")
    keys = {element.get("key"): element.text for element in site.iter(NAMESPACE + "namespace")}
    assert keys["6"] == "File"
    assert keys["10"] == "Template"
    assert keys["14"] == "Category"
    assert keys["0"] is None


def test_pages_and_articles_agree() -> None:
    assert len(WIKITEXT) == len(PAGES)
    assert len(TITLES) == len(ARTICLES)
    plain = {page.title for page in PAGES if page.namespace == 0 and page.redirect is None}
    meanings = {title for title in plain if "{{Disambiguation}}" in WIKITEXT[title]}
    assert plain - meanings == TITLES
    assert meanings


def test_redirects() -> None:
    assert len(REDIRECTS) >= 15
    for title, target in REDIRECTS.items():
        assert target in TITLES
        assert WIKITEXT[title] == f"#REDIRECT [[{target}]]"


def test_templates_exist_and_are_used() -> None:
    templates = {page.title.removeprefix("Template:") for page in PAGES if page.namespace == 10}
    assert len(templates) >= 3
    calls = Counter(
        name[:1].upper() + name[1:]
        for page in PAGES
        if page.namespace == 0
        for name in re.findall(r"\{\{(\w+)", page.text)
    )
    assert set(calls) == templates


@pytest.mark.parametrize(
    ("pattern", "minimum"),
    [
        pytest.param(r"^[*#] .*\[\[", 10, id="lists with links"),
        pytest.param(r"^\{\| class=\"wikitable\"[^}]*\[\[", 4, id="tables with links"),
        pytest.param(r"^== .* ==$", 10, id="headings"),
        pytest.param(r"\[\[[^\[\]|]+\|[^\[\]]+\]\]", 30, id="piped links"),
        pytest.param(r"\[\[[^\[\]]+\]\][a-z]", 8, id="link trails"),
        pytest.param(r"\[\[[^\[\]|#]+#[^\[\]|]+\|", 2, id="section links"),
        pytest.param(r"<ref>.*</ref>", 2, id="footnotes"),
        pytest.param(r"<!--.*-->", 2, id="comments"),
        pytest.param(r"\[\[File:[^\[\]]*\|thumb\|[^\[\]]*\[\[", 1, id="file captions"),
        pytest.param(r"(?<!')''(?!').*(?<!')''(?!')", 40, id="italics"),
    ],
)
def test_articles_with_feature(pattern: str, minimum: int) -> None:
    found = [title for title in TITLES if re.search(pattern, WIKITEXT[title], re.MULTILINE)]
    assert len(found) >= minimum


def test_section_links_have_their_section() -> None:
    targets = [link[0] for title in TITLES for link in LINK.findall(WIKITEXT[title])]
    for target in targets:
        if "#" in target:
            assert f"== {target.split('#')[1]} ==" in WIKITEXT[resolve(target)]


def test_links_through_redirects_and_to_missing_pages() -> None:
    targets = {link[0] for title in TITLES for link in LINK.findall(WIKITEXT[title])}
    assert targets & set(REDIRECTS)
    assert any(resolve(target) not in WIKITEXT for target in targets)


def test_titles_are_varied() -> None:
    assert any("'" in title for title in TITLES)
    assert any("-" in title for title in TITLES)
    assert any(title.endswith("(ship)") for title in TITLES)
    assert {"é", "ö", "ñ"} <= set("".join(TITLES))


@article_cases
def test_wikitext_of_article(article: Article) -> None:
    text = WIKITEXT[article["title"]]
    assert "'''" in text
    assert re.search(r"\n\[\[Category:[^\]]+\]\]$", text)
    assert not re.search(r"\[\[|\]\]|\{|\}|''|<|\||==", article["text"])


@article_cases
def test_mentions(article: Article) -> None:
    text = article["text"]
    end = 0
    for number, mention in enumerate(article["mentions"]):
        assert set(mention) == {"id", "start", "end", "type", "article"}
        assert mention["id"] == number
        assert end <= mention["start"] < mention["end"] <= len(text)
        surface = text[mention["start"] : mention["end"]]
        assert surface == surface.strip()
        assert mention["type"] in TYPES
        assert mention["article"] is None or mention["article"] in TITLES
        end = mention["end"]


def test_an_article_has_one_type() -> None:
    types: dict[str, set[str]] = {title: set() for title in TITLES}
    for article in ARTICLES:
        for mention in article["mentions"]:
            if mention["article"] is not None:
                types[mention["article"]].add(mention["type"])
    assert {title: found for title, found in types.items() if len(found) != 1} == {}


@article_cases
def test_relations(article: Article) -> None:
    mentions = article["mentions"]
    seen = set()
    for relation in article["relations"]:
        assert set(relation) == {"head", "tail", "label"}
        head, tail = relation["head"], relation["tail"]
        assert 0 <= head < len(mentions)
        assert 0 <= tail < len(mentions)
        assert head != tail
        heads, tails = SIGNATURES[relation["label"]]
        assert mentions[head]["type"] in heads
        assert mentions[tail]["type"] in tails
        if relation["label"] in SYMMETRIC:
            assert head < tail
        key = (head, tail, relation["label"])
        assert key not in seen
        seen.add(key)


@article_cases
def test_questions(article: Article) -> None:
    for question in article["questions"]:
        assert set(question) == {"id", "question", "answers"}
        assert question["question"].endswith("?")
        for answer in question["answers"]:
            start = answer["start"]
            assert answer["text"]
            assert article["text"][start : start + len(answer["text"])] == answer["text"]


def test_question_ids_are_unique() -> None:
    ids = [question["id"] for article in ARTICLES for question in article["questions"]]
    assert len(set(ids)) == len(ids)


def test_names_that_mean_several_articles() -> None:
    names = ambiguous_names()
    assert len(names) >= 40
    assert all(2 <= len(titles) <= 4 for titles in names.values())
    places = {(name, article["title"]) for article, title, name in surfaces() if title is not None}
    articles = Counter(name for name, _ in places)
    assert {name: articles[name] for name in names if articles[name] < 3} == {}


@pytest.mark.parametrize("split", SPLITS)
def test_a_split_has_ambiguous_mentions(split: str) -> None:
    counts = [splits[split] for titles in ambiguous_names().values() for splits in titles.values()]
    assert sum(counts) >= 80


def test_the_prior_of_train_is_wrong_for_almost_every_other_ambiguous_mention() -> None:
    right, total = right_by_prior()
    assert right / total <= 0.55


def test_a_name_of_an_article_may_also_mean_none() -> None:
    assert shared_names() >= 14


def test_splits() -> None:
    assert {article["split"] for article in ARTICLES} == set(SPLITS)
    for split in SPLITS:
        articles = [article for article in ARTICLES if article["split"] == split]
        types = {mention["type"] for article in articles for mention in article["mentions"]}
        labels = {relation["label"] for article in articles for relation in article["relations"]}
        assert types == set(TYPES)
        assert labels == set(SIGNATURES)
    shares = Counter(article["split"] for article in ARTICLES)
    assert shares["train"] / len(ARTICLES) == pytest.approx(0.7, abs=0.03)
    assert shares["dev"] / len(ARTICLES) == pytest.approx(0.1, abs=0.03)


@article_cases
def test_every_link_is_a_mention(article: Article) -> None:
    text = article["text"]
    mentions: Counter[tuple[str, str | None]] = Counter(
        (text[mention["start"] : mention["end"]], mention["article"])
        for mention in article["mentions"]
    )
    links: Counter[tuple[str, str | None]] = Counter()
    for target, anchor, trail in LINK.findall(running_text(WIKITEXT[article["title"]])):
        title = resolve(target)
        links[(anchor or target) + trail, title if title in TITLES else None] += 1
    assert links
    assert links - mentions == Counter()


def test_readme_states_the_pages() -> None:
    stated = {name: int(number) for name, number in table_rows("pages")}
    meanings = sum("{{Disambiguation}}" in page.text for page in PAGES)
    assert stated == {
        "all pages": len(PAGES),
        "articles": len(ARTICLES),
        "pages of meanings": meanings,
        "redirects": len(REDIRECTS),
        "templates": sum(page.namespace == 10 for page in PAGES),
    }


def test_readme_states_the_counts() -> None:
    rows = table_rows("count")
    assert len(rows) == 9 + len(TYPES) + len(SIGNATURES)
    for name, *stated in rows:
        found = [
            count([article for article in ARTICLES if article["split"] == split], name)
            for split in SPLITS
        ]
        assert [int(number) for number in stated] == [*found, count(ARTICLES, name)], name


def test_readme_states_labels_and_kinds() -> None:
    assert [row[0] for row in table_rows("label")] == list(TYPES)
    kinds = {
        row[0]: (set(row[1].split(", ")), set(row[2].split(", "))) for row in table_rows("kind")
    }
    assert kinds == SIGNATURES
    assert {row[0] for row in table_rows("kind") if row[3] == "yes"} == set(SYMMETRIC)


def test_readme_states_the_ambiguous_names() -> None:
    stated = {row[0]: sorted(row[1].split(", ")) for row in table_rows("name")}
    names = ambiguous_names()
    assert stated == {name: sorted(titles) for name, titles in names.items()}
    right, total = right_by_prior()
    readme = " ".join((CORPUS / "README.md").read_text(encoding="utf8").split())
    assert f"of the {total} mentions of these names in dev and test, at most {right} mean" in readme
    assert f"{shared_names()} of the mentions without an article" in readme
