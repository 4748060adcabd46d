"""How often linked texts occur, and link tables made from it."""

from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from spacy_luke.errors import ConfigError, StageError
from spacy_luke.kb.link_table import LinkedText, LinkTable
from spacy_luke.pretraining import occurrences
from spacy_luke.pretraining.articles import read_dump
from spacy_luke.pretraining.engine import Engine
from spacy_luke.pretraining.entities import build_vocabulary
from spacy_luke.pretraining.link_probabilities import build_link_table
from spacy_luke.pretraining.occurrences import count_occurrences
from spacy_luke.pretraining.settings import DumpSettings, LinkTableSettings, VocabSettings
from tests.conftest import require_data
from tests.pretraining.articles import article, make_articles

ENCYCLOPEDIA = Path(__file__).parents[2] / "project" / "corpus" / "encyclopedia.xml"
ALONE = Engine(workers=1)
ATLAS = [
    article(
        1,
        "Japan",
        "Tokyo, TOKYO  and\nEdo and Edo-period. Tokyoites in New York\nCity, not New\nYork.",
        [("Tokyo", "Tokyo"), ("Edo", "Edo"), ("Edo", "Kyoto"), ("Tokyo", "Tokyo")],
    ),
    article(
        2,
        "York",
        "unyork, New  York and new york city",
        [("york", "York"), ("New  York", "New York City")],
    ),
]
OTHERS = [("Edo", "redirect", "Tokyo"), ("Mercury", "disambiguation", None)]
MORE = [
    article(3, "Mercury story", "Edo\nBay and Mercury", [("Edo\nBay", "X"), ("Mercury", "Mercury")])
]


def count(folder: Path, *articles, engine: Engine = ALONE):
    entities = build_vocabulary(articles, folder / "entities", VocabSettings(), False)
    return count_occurrences(articles, entities, folder / "occurrences", engine, "1GB", False)


def atlas(folder: Path, **options):
    return make_articles(folder / "articles", (ATLAS, OTHERS), (MORE, []), **options)


def rows(manifest) -> list[tuple]:
    (path,) = manifest.paths("occurrences.parquet")
    return [tuple(row.values()) for row in pq.read_table(path).to_pylist()]


def files(folder: Path) -> dict[str, bytes]:
    return {str(x.relative_to(folder)): x.read_bytes() for x in folder.rglob("*") if x.is_file()}


def test_texts_are_counted_linked_or_not(tmp_path):
    manifest = count(tmp_path, atlas(tmp_path))
    assert rows(manifest) == [
        ("en", "edo", "Kyoto", 1, 3),
        ("en", "edo", "Tokyo", 1, 3),  # by a redirect
        ("en", "edo bay", "X", 1, 1),  # a link that extends over lines
        ("en", "new york", "New York City", 1, 3),
        ("en", "tokyo", "Tokyo", 2, 3),  # Tokyo|ites is linked
        ("en", "york", "York", 1, 5),  # un|york is linked
    ]
    assert manifest.counts == {"links": 7, "occurrences": 15, "texts": 5}


def test_texts_that_cannot_be_mentions_are_left_out_and_counted(tmp_path):
    long = "x" * 251
    nul = "b\0c"  # a trie knows it as "b"
    links = [(long, "B"), ("  ", "B"), ("b", "B"), (nul, "C")]
    row = article(1, "A", f"a {long}   b, {nul}", links)
    manifest = count(tmp_path, make_articles(tmp_path / "articles", ([row], [])))
    assert rows(manifest) == [("en", "b", "B", 1, 2)]
    assert manifest.counts["links left out: text with the character NUL"] == 1
    assert manifest.counts["links left out: empty text"] == 1
    assert manifest.counts["links left out: text of over 250 characters"] == 1


def test_languages_are_counted_apart(tmp_path):
    folders = []
    for language, text in (("en", "Bonn and bonn"), ("de", "Bonn, Bonn, Bonn")):
        row = article(1, "A", text, [("Bonn", "Bonn")])
        folders.append(make_articles(tmp_path / language, ([row], []), language=language))
    (tmp_path / "items.csv").write_text("item,language,title\nQ1,en,Bonn\nQ1,de,Bonn\n")
    settings = VocabSettings(sitelinks=tmp_path / "items.csv")
    entities = build_vocabulary(folders, tmp_path / "entities", settings, False)
    manifest = count_occurrences(folders, entities, tmp_path / "out", ALONE, "1GB", False)
    assert rows(manifest) == [("de", "bonn", "Bonn", 1, 3), ("en", "bonn", "Bonn", 1, 2)]
    with pytest.raises(ConfigError, match="set --lang to one of en, de"):
        build_link_table(manifest, tmp_path / "links", LinkTableSettings())
    with pytest.raises(ConfigError, match="--lang is 'fr'"):
        build_link_table(manifest, tmp_path / "links", LinkTableSettings(), "fr")
    build_link_table(manifest, tmp_path / "links", LinkTableSettings(), "de")
    assert LinkTable.open(tmp_path / "links").get("bonn").probability == pytest.approx(1 / 3)


def test_workers_change_no_byte_and_nothing_is_left(tmp_path):
    articles = atlas(tmp_path)
    count(tmp_path / "one", articles)
    count(tmp_path / "two", articles, engine=Engine(workers=2))
    assert files(tmp_path / "one" / "occurrences") == files(tmp_path / "two" / "occurrences")
    assert {x.name for x in (tmp_path / "one" / "occurrences").iterdir()} == {
        *(".lock", "stage.json", "manifest.json", "part-00000")
    }


def test_an_interrupted_run_is_resumed(tmp_path, monkeypatch):
    articles, counted = atlas(tmp_path), []
    count_file = occurrences._count

    def fail_on_the_second(partition, *args, **kwargs):
        counted.append(partition.file.path)
        if len(counted) == 2:
            raise OSError("interrupted")
        return count_file(partition, *args, **kwargs)

    monkeypatch.setattr(occurrences, "_count", fail_on_the_second)
    with pytest.raises(OSError, match="interrupted"):
        count(tmp_path, articles)
    first = rows(count(tmp_path, articles))
    assert [Path(x).parent.name for x in counted] == ["part-00000", "part-00001", "part-00001"]
    assert rows(count(tmp_path, articles)) == first and len(counted) == 3  # finished
    assert first == rows(count(tmp_path / "anew", articles))


def test_other_articles_than_those_of_the_entities_are_refused(tmp_path):
    articles = atlas(tmp_path)
    others = make_articles(tmp_path / "others", (MORE, []))
    entities = build_vocabulary([articles], tmp_path / "entities", VocabSettings(), False)
    for given in ([others], [articles, others], []):
        with pytest.raises(ConfigError, match="was not made from these articles"):
            count_occurrences(given, entities, tmp_path / "out", ALONE, "1GB", False)


def test_damaged_articles_are_named(tmp_path):
    articles = atlas(tmp_path)
    entities = build_vocabulary([articles], tmp_path / "entities", VocabSettings(), False)
    articles.paths("articles.parquet")[1].write_bytes(b"damaged")
    with pytest.raises(StageError, match=r"part-00001/articles.parquet is damaged"):
        count_occurrences([articles], entities, tmp_path / "out", ALONE, "1GB", False)


# -- Independent counts on real wikis: every place of a text in a line is looked at.


def joined(before: str, after: str) -> bool:
    return bool(before) and bool(after) and before.isalnum() and after.isalnum()


def naive_count(text: str, lines: list[str]) -> int:
    n = 0
    for line in lines:
        at = line.find(text)
        while at >= 0:
            end = at + len(text)
            n += not joined(line[at - 1 : at], text[0]) and not joined(
                text[-1], line[end : end + 1]
            )
            at = line.find(text, at + 1)
    return n


def naive(articles) -> tuple[list[str], Counter[str]]:
    """Lines in lower case; links, by text, that begin or end inside a word."""
    lines: list[str] = []
    inside: Counter[str] = Counter()
    for path in articles.paths("articles.parquet"):
        for row in pq.read_table(path).to_pylist():
            text = row["text"]
            lines += [" ".join(line.lower().split()) for line in text.split("\n")]
            for start, end in zip(row["link_starts"], row["link_ends"]):
                if joined(text[start - 1 : start], text[start]) or joined(
                    text[end - 1], text[end : end + 1]
                ):
                    inside[" ".join(text[start:end].lower().split())] += 1
    return lines, inside


@pytest.mark.parametrize(
    "name, language, step",
    [
        (ENCYCLOPEDIA, "en", 1),
        ("enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2", "en", 400),
        ("itwiki-small-dump.xml.gz", "it", 700),
        ("minidumps/ar-wiki.xml.bz2", "ar", 5),
    ],
)
def test_counts_are_those_of_an_independent_count(data_dir, tmp_path, name, language, step):
    path = data_dir / "wikipedia" / name
    require_data(path)
    articles = read_dump([path], tmp_path / "articles", ALONE, DumpSettings(language), False)
    manifest = count(tmp_path, articles)
    counted = {text: n for _, text, _, _, n in rows(manifest)}
    links: Counter[str] = Counter()
    for _, text, _, n, _ in rows(manifest):
        links[text] += n
    assert all(links[text] <= n for text, n in counted.items())
    lines, inside = naive(articles)
    frequent = sorted(counted, key=lambda text: (-counted[text], text))[:10]
    for text in {*frequent, *sorted(counted)[::step], *sorted(inside)[:5]} & set(counted):
        assert counted[text] == naive_count(text, lines) + inside[text], text


@pytest.mark.parametrize("language", ["ja", "zh"])
def test_texts_occur_anywhere_in_scripts_without_spaces(data_dir, tmp_path, language):
    path = data_dir / "wikipedia" / "minidumps" / f"{language}-wiki.xml.bz2"
    require_data(path)
    articles = read_dump([path], tmp_path / "articles", ALONE, DumpSettings(language), False)
    counted = {text: n for _, text, _, _, n in rows(count(tmp_path, articles))}
    lines, _ = naive(articles)
    han = [text for text in counted if all("\u4e00" <= x <= "\u9fff" for x in text)]
    assert len(han) > 20
    for text in han:
        assert counted[text] == sum(
            line.startswith(text, i) for line in lines for i in range(len(line))
        )


# -- Link tables


def table(folder: Path, manifest, **settings):
    counts = build_link_table(manifest, folder / "links", LinkTableSettings(**settings))
    return LinkTable.open(folder / "links"), counts


def test_texts_of_several_titles_are_dropped(tmp_path):
    links, counts = table(tmp_path, count(tmp_path, atlas(tmp_path)))
    assert links.get("edo") is None
    assert links.get("tokyo") == LinkedText("tokyo", "Tokyo", pytest.approx(2 / 3))
    assert links.get("new york").title == "New York City" and len(links) == 4
    assert counts == {
        "left out: linked to several titles": 1,
        "links": 7,
        "links of texts kept": 5,
        "texts": 5,
        "texts kept": 4,
    }
    assert links.store.meta["counts"] == counts and links.store.meta["min_probability"] == 0.01


def meanings(tmp_path, **settings):
    """Edo: 9 times Tokyo, once Kyoto, and 10 times without a link."""
    links = [("Edo", "Tokyo")] * 9 + [("Edo", "Kyoto"), ("a", "A")]
    text = "Edo " * 20 + "a " * 200
    rows = [article(1, "Japan", text, links)]
    return table(tmp_path, count(tmp_path, make_articles(tmp_path / "a", (rows, []))), **settings)


@pytest.mark.parametrize(
    "settings, kept",
    [
        ({}, []),
        ({"min_share": 0.9}, ["edo"]),
        ({"min_share": 0.91}, []),
        ({"min_count": 2}, ["edo"]),
        ({"min_count": 10}, []),
        ({"min_probability": 0.005}, ["a"]),
        ({"min_share": 0.9, "min_probability": 0.5}, ["edo"]),
        ({"min_share": 0.9, "min_probability": 0.51}, []),
    ],
)
def test_settings_of_a_table(tmp_path, settings, kept):
    links, counts = meanings(tmp_path, **settings)
    assert sorted(links.texts.keys()) == kept
    assert counts["texts"] == 2 and counts["texts kept"] == len(kept)
    assert sum(n for reason, n in counts.items() if reason.startswith("left out")) == 2 - len(kept)
    if "edo" in kept:
        assert links.get("edo") == LinkedText("edo", "Tokyo", 0.5)


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"min_probability": 1.1}, "--min-probability is 1.1"),
        ({"min_count": 0}, "--min-count is 0"),
        ({"min_share": 0.5}, "--min-share is 0.5"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(ConfigError, match=message):
        LinkTableSettings(**settings)


def test_the_id_of_no_entity_is_no_title(tmp_path):
    rows = [article(1, "A", "nothing", [("nothing", "NIL")])]
    manifest = count(tmp_path, make_articles(tmp_path / "articles", (rows, [])))
    links, counts = table(tmp_path, manifest)
    assert len(links) == 0 and counts["left out: linked to an article called NIL"] == 1
