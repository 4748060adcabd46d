"""Links counted, redirects followed, entities chosen."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import srsly

from spacy_luke.errors import ConfigError, CorpusError, StageError
from spacy_luke.kb.entity import Findings
from spacy_luke.pretraining.entities import build_vocabulary
from spacy_luke.pretraining.linked_entities import read_articles as linked_entities
from spacy_luke.pretraining.manifest import read_manifest
from spacy_luke.pretraining.settings import VocabSettings
from spacy_luke.vocab.entity_vocab import EntityVocab
from tests.pretraining.articles import article, make_articles

ATLAS = [
    article(
        1,
        "Japan",
        "Tokyo and Edo and Edo, Kyoto, and Mercury.",
        [
            ("Tokyo", "Tokyo"),
            ("Edo", "Edo"),
            ("Edo", "Edo town"),
            ("Kyoto", "Kyoto"),
            ("Mercury", "Mercury"),
        ],
    ),
    article(2, "Tokyo", "In Japan, near Yokohama.", [("Japan", "Japan"), ("Yokohama", "Yokohama")]),
]
OTHERS = [
    ("Edo", "redirect", "Old Tokyo"),
    ("Old Tokyo", "redirect", "Tokyo"),
    ("Edo town", "redirect", "Edo"),
    ("Mercury", "disambiguation", None),
    ("Here", "redirect", "There"),
    ("There", "redirect", "Here"),
    ("Self", "redirect", "Self"),
]
LOOP = [article(3, "Loop", "Here we are.", [("Here", "Here")])]


def vocabulary(tmp_path: Path, *articles, **settings):
    articles = articles or (make_articles(tmp_path / "articles", (ATLAS, OTHERS), (LOOP, [])),)
    return build_vocabulary(articles, tmp_path / "entities", VocabSettings(**settings), False)


def rows(manifest, name: str) -> list[tuple]:
    table = pq.read_table(manifest.paths(name)[0])
    return list(zip(*(column.to_pylist() for column in table.columns)))


def test_redirects_count_for_their_target_and_ties_go_by_name(tmp_path):
    manifest = vocabulary(tmp_path)
    lines = manifest.paths("entity_vocab.tsv")[0].read_text().splitlines()
    assert lines == [
        *("[PAD]\t0", "[UNK]\t0", "[MASK]\t0", "[MASK2]\t0"),
        *("Tokyo\t3", "Japan\t1", "Kyoto\t1", "Yokohama\t1"),
    ]
    assert manifest.counts == {
        "entities": 4,
        "entities left out": 0,
        "links": 8,
        "links by a redirect": 2,
        "links to a disambiguation": 1,
        "links by a redirect to no article": 1,
        "links to an entity": 6,
        "redirects": 3,
        "redirects to no article": 3,
        "redirects to several articles": 0,
        "titles of several articles": 0,
        "white list: beyond --size": 0,
        "white list: not found": 0,
    }


def test_the_vocabulary_is_read_as_a_published_one(tmp_path):
    vocab = EntityVocab.from_file(vocabulary(tmp_path).paths("entity_vocab.tsv")[0])
    assert (vocab.pad_id, vocab.unk_id, vocab.mask_id, vocab.mask2_id) == (0, 1, 2, 3)
    assert vocab.find("Tokyo") == 4 and len(vocab) == 8


def test_every_title_that_leads_to_an_entity_is_a_target(tmp_path):
    assert rows(vocabulary(tmp_path, min_count=1, size=2), "targets.parquet") == [
        ("en", "Edo", 4),
        ("en", "Edo town", 4),
        ("en", "Japan", 5),
        ("en", "Old Tokyo", 4),
        ("en", "Tokyo", 4),
    ]


def test_anchors_are_counted_by_where_they_lead(tmp_path):
    assert rows(vocabulary(tmp_path), "anchors.parquet") == [
        ("en", "Edo", "Tokyo", 2),
        ("en", "Japan", "Japan", 1),
        ("en", "Kyoto", "Kyoto", 1),
        ("en", "Tokyo", "Tokyo", 1),
        ("en", "Yokohama", "Yokohama", 1),
    ]


def test_a_white_list_is_in_whatever_its_count(tmp_path):
    path = tmp_path / "white.txt"
    path.write_text("Yokohama\nen:Kyoto\nAtlantis\n")
    manifest = vocabulary(tmp_path, min_count=2, size=3, white_list=path)
    vocab = EntityVocab.from_file(manifest.paths("entity_vocab.tsv")[0])
    assert [vocab.find(x) for x in ("Tokyo", "Kyoto", "Yokohama", "Japan")] == [4, 5, 6, None]
    assert manifest.counts["white list: not found"] == 1
    assert manifest.counts["white list: beyond --size"] == 0


def test_what_a_white_list_has_beyond_the_size_is_counted(tmp_path):
    path = tmp_path / "white.txt"
    path.write_text("Yokohama\nKyoto\nTokyo\n")
    manifest = vocabulary(tmp_path, size=2, white_list=path)
    assert manifest.counts["white list: beyond --size"] == 1
    path.write_text("Kyoto\nEdo\nTokyo\n")  # two names, one entity
    sitelinks = tmp_path / "sitelinks.jsonl"
    named = (("Q1", "Kyoto"), ("Q1", "Yokohama"), ("Q2", "Tokyo"), ("Q2", "Japan"))
    srsly.write_jsonl(sitelinks, [{"item": x, "language": "en", "title": t} for x, t in named])
    settings = {"white_list": path, "sitelinks": sitelinks}
    manifest = vocabulary(tmp_path / "several", size=1, **settings)
    assert manifest.counts["white list: beyond --size"] == 1


def test_a_white_list_is_a_text_in_utf8(tmp_path):
    path = tmp_path / "white.txt"
    path.write_bytes(b"\xef\xbb\xbfYokohama\r\n")  # as some editors begin and end it
    counts = vocabulary(tmp_path, min_count=9, white_list=path).counts
    assert (counts["entities"], counts["white list: not found"]) == (1, 0)
    path.write_bytes(b"Kyoto\nCaf\xe9\n")
    with pytest.raises(CorpusError, match="white.txt, line 2: byte 3 is not UTF-8"):
        vocabulary(tmp_path / "other", white_list=path)


def test_names_of_folders_are_neither_patterns_nor_columns(tmp_path):
    """DuckDB would read other folders, and take what a folder says for what is in it."""
    names = ("axb", "a*b", "b1", "b[1]", "title=Edo")
    counts = [vocabulary(tmp_path / name).counts for name in names]
    assert all(found == counts[0] for found in counts)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_sitelinks_are_those_of_the_file_that_is_named(tmp_path, kind):
    for name, items in (("s[1]", ["Q1"]), ("s1", ["Q2", "Q3"])):
        path = tmp_path / "language=de" / f"{name}.{kind}"
        path.parent.mkdir(exist_ok=True)
        links = [("Tokyo", x) for x in items]
        if kind == "csv":
            lines = "".join(f"{item},en,{title}\n" for title, item in links)
            path.write_text(f"item,language,title\n{lines}")
        elif kind == "jsonl":
            srsly.write_jsonl(
                path, [{"item": x, "language": "en", "title": title} for title, x in links]
            )
        else:
            columns = {
                "item": items,
                "language": ["en"] * len(items),
                "title": [t for t, _ in links],
            }
            pq.write_table(pa.table(columns), path)
    manifest = vocabulary(tmp_path, sitelinks=tmp_path / "language=de" / f"s[1].{kind}")
    assert manifest.counts["titles in sitelinks, en"] == 1
    vocab = manifest.paths("entity_vocab.jsonl")[0].read_text()
    assert '[["Tokyo","en"]]' in vocab


def test_a_white_list_names_redirects_and_articles_without_links(tmp_path):
    pages = [*OTHERS, ("Nagoya City", "article", None), ("Nagoya", "redirect", "Nagoya City")]
    pages.append(("Merc", "redirect", "Mercury"))
    articles = make_articles(tmp_path / "articles", (ATLAS, pages))
    path = tmp_path / "white.txt"
    path.write_text("Edo_town\nNagoya\nen:Osaka\nSelf\nMercury\nMerc\n")
    manifest = vocabulary(tmp_path, articles, min_count=9, white_list=path)
    vocab = EntityVocab.from_file(manifest.paths("entity_vocab.tsv")[0])
    assert list(vocab.names)[4:] == ["Tokyo", "Nagoya City"]
    assert manifest.counts["white list: not found"] == 4  # Osaka and what leads to no article


def test_a_redirect_to_itself_or_to_no_article_is_no_entity(tmp_path):
    links = [("Self", "Self"), ("Foods", "Foods"), ("Tokyo", "Tokyo")]
    article_ = article(1, "A", "Self, Foods and Tokyo.", links)
    pages = [("Self", "redirect", "Self"), ("Foods", "redirect", None)]
    manifest = vocabulary(tmp_path, make_articles(tmp_path / "articles", ([article_], pages)))
    vocab = EntityVocab.from_file(manifest.paths("entity_vocab.tsv")[0])
    assert list(vocab.names)[4:] == ["Tokyo"]
    assert manifest.counts["links by a redirect to no article"] == 2
    assert manifest.counts["redirects to no article"] == 2


def test_an_item_named_by_a_redirect_is_the_article_there(tmp_path):
    """A title has one id, and the article's own item goes before."""
    links = [
        ("Q1", "en", "Edo"),
        ("Q2", "en", "Tokyo"),
        ("Q3", "en", "Here"),
        ("Q0", "en", "Edo town"),
    ]
    path = tmp_path / "sitelinks.jsonl"
    srsly.write_jsonl(path, [dict(zip(("item", "language", "title"), x)) for x in links])
    manifest = vocabulary(tmp_path, sitelinks=path)
    titles = [title for _, title, _ in rows(manifest, "targets.parquet")]
    assert len(titles) == len(set(titles)) and "Edo" in titles
    vocab = EntityVocab.from_file(manifest.paths("entity_vocab.jsonl")[0])
    assert vocab.find("Tokyo", "en") == 4 and "en:Edo" not in vocab


def test_damaged_articles_are_named(tmp_path):
    articles = make_articles(tmp_path / "articles", (ATLAS, OTHERS))
    path = articles.paths("articles.parquet")[0]
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(StageError, match="articles.parquet is damaged"):
        vocabulary(tmp_path, articles)


def test_too_little_memory_is_said_with_the_place_of_temporary_files(tmp_path):
    with pytest.raises(StageError, match="articles cannot be counted: .*--memory") as caught:
        vocabulary(tmp_path, memory="1KB")
    assert f"Temporary files are written to {tmp_path / 'entities'}." in str(caught.value)


def test_a_command_without_a_limit_of_memory_does_not_advise_to_change_it(tmp_path, monkeypatch):
    monkeypatch.setattr(VocabSettings, "memory", "1KB")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    make_articles(tmp_path / "articles", (ATLAS, OTHERS))
    with pytest.raises(StageError, match="free space, or set TMPDIR to a folder") as caught:
        list(linked_entities(tmp_path / "articles", Findings()))
    assert "--memory" not in str(caught.value)


def test_the_description_of_an_entity_with_several_records_is_the_first(tmp_path):
    texts = ["Tokyo is a city.", "A bay is beside it.", "Another section."]
    parts = [([article(i, "Tokyo", text, [])], []) for i, text in enumerate(texts)]
    make_articles(tmp_path / "articles", *parts)
    (entity,) = linked_entities(tmp_path / "articles", Findings())
    assert entity.description == texts[0]


def test_several_languages_share_entities_through_sitelinks(tmp_path):
    english = make_articles(tmp_path / "en", (ATLAS, OTHERS))
    german = make_articles(
        tmp_path / "de",
        ([article(1, "Japan", "Tokio, Bonn", [("Tokio", "Tokio"), ("Bonn", "Bonn")])], []),
        language="de",
    )
    links = [("Q1490", "en", "Tokyo"), ("Q1490", "de", "Tokio"), ("Q17", "en", "Japan")]
    path = tmp_path / "sitelinks.jsonl"
    srsly.write_jsonl(path, [dict(zip(("item", "language", "title"), x)) for x in links])
    manifest = vocabulary(tmp_path, english, german, sitelinks=path)
    vocab = EntityVocab.from_file(manifest.paths("entity_vocab.jsonl")[0])
    assert vocab.find("Tokyo", "en") == vocab.find("Tokio", "de") == 4
    assert vocab.find("Bonn", "de") is not None and vocab.find("Bonn", "en") is None
    assert ("de", "Tokio", 4) in rows(manifest, "targets.parquet")
    assert ("en", "Edo", 4) in rows(manifest, "targets.parquet")


def two_languages(tmp_path: Path, links: list[tuple[str, str, str]]):
    english = make_articles(tmp_path / "en", (ATLAS, OTHERS))
    row = article(1, "Japan", "New Tokio, Bonn", [("New Tokio", "New Tokio"), ("Bonn", "Bonn")])
    german = make_articles(tmp_path / "de", ([row], []), language="de")
    path = tmp_path / "sitelinks.jsonl"
    srsly.write_jsonl(path, [dict(zip(("item", "language", "title"), x)) for x in links])
    return vocabulary(tmp_path, english, german, sitelinks=path)


def test_sitelinks_may_be_as_the_wikis_write_them(tmp_path):
    links = [("Q1490", "ENWIKI", "Tokyo"), ("Q1490", "dewiki", "New_Tokio"), ("Q1", "frwiki", "U")]
    manifest = two_languages(tmp_path, links)
    vocab = EntityVocab.from_file(manifest.paths("entity_vocab.jsonl")[0])
    assert vocab.find("Tokyo", "en") == vocab.find("New Tokio", "de") == 4
    found = [manifest.counts[f"titles in sitelinks, {x}"] for x in ("en", "de")]
    missing = [manifest.counts[f"titles not in sitelinks, {x}"] for x in ("en", "de")]
    assert (found, missing) == ([1, 1], [3, 1])  # Kyoto, Japan, Yokohama; Bonn


@pytest.mark.parametrize("language", ["de", "en"])
def test_sitelinks_that_leave_out_a_wiki_are_refused(tmp_path, language):
    other, title = {"de": ("en", "Tokyo"), "en": ("de", "New Tokio")}[language]
    message = rf"none of the \d titles that articles in {language} link to.*or {language}wiki"
    with pytest.raises(CorpusError, match=message):
        two_languages(tmp_path, [("Q1490", other, title)])


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_values_of_sitelinks_are_taken_as_they_are_written(tmp_path, kind):
    """DuckDB would take 007 for a number and "no" for a boolean; wikis store text as bytes."""
    row = article(1, "Bond", "007 and 2001", [("007", "007"), ("2001", "2001-01-01")])
    articles = make_articles(tmp_path / "no", ([row], []), language="no")
    found = [(1, "no", "007"), (2, "no", "2001-01-01"), (None, "no", "2001"), (3, "no", None)]
    path = tmp_path / f"sitelinks.{kind}"
    if kind == "csv":
        path.write_text(
            "item,language,title\n"
            + "".join(",".join("" if x is None else str(x) for x in row) + "\n" for row in found)
        )
    elif kind == "jsonl":
        srsly.write_jsonl(path, [dict(zip(("item", "language", "title"), x)) for x in found])
    else:
        items, languages, titles = zip(*found)
        text = [[x.encode() if x else None for x in column] for column in (languages, titles)]
        pq.write_table(pa.table({"item": items, "language": text[0], "title": text[1]}), path)
    manifest = vocabulary(tmp_path, articles, sitelinks=path)
    entries = list(srsly.read_jsonl(manifest.paths("entity_vocab.jsonl")[0]))[4:]
    assert [x["entities"] for x in entries] == [[["007", "no"]], [["2001-01-01", "no"]]]


def test_several_sets_of_articles_of_a_language_count_together(tmp_path):
    more = [article(1, "docs 0", "Kyoto or Kyoto", [("Kyoto", "Kyoto"), ("Kyoto", "Kyoto")])]
    articles = [
        make_articles(tmp_path / "dump", (ATLAS, OTHERS)),
        make_articles(tmp_path / "docs", (more, [])),
    ]
    manifest = vocabulary(tmp_path, *articles)
    lines = manifest.paths("entity_vocab.tsv")[0].read_text("utf8").split("\n")
    assert lines[4:6] == ["Kyoto\t3", "Tokyo\t3"]
    assert set(manifest.inputs) == {"articles 0 en", "articles 1 en"}
    assert manifest.counts["titles of several articles"] == 0


def test_titles_that_are_articles_of_several_sets_are_counted(tmp_path):
    articles = [
        make_articles(tmp_path / "one", (ATLAS, OTHERS)),
        make_articles(tmp_path / "two", (ATLAS[:1], [])),
    ]
    assert vocabulary(tmp_path, *articles).counts["titles of several articles"] == 1


@pytest.mark.parametrize("several", [False, True])
def test_ids_of_users_keep_their_underscores(tmp_path, several):
    """In titles of a white list and of sitelinks, underscores may also be spaces."""
    links = [("Ada", "emp_0017"), ("Bob", "Bob Ray"), ("Ada", "emp_0017")]
    articles = make_articles(
        tmp_path / "a", ([article(1, "1", "Ada, Bob, Ada", links)], []), language="de"
    )
    (tmp_path / "list.txt").write_text("emp_0017\nBob_Ray\nde:emp_0017\n")
    settings: dict = {"white_list": tmp_path / "list.txt"}
    if several:
        items = [("Q1", "emp_0017"), ("Q2", "Bob_Ray"), ("Q3", "Old_one")]
        path = tmp_path / "s.jsonl"
        srsly.write_jsonl(path, [{"item": x, "language": "de", "title": y} for x, y in items])
        settings["sitelinks"] = path
    manifest = vocabulary(tmp_path, articles, min_count=0 if several else 1, **settings)
    assert manifest.counts["white list: not found"] == 0
    names = EntityVocab.from_file(
        [*manifest.paths("entity_vocab.tsv"), *manifest.paths("entity_vocab.jsonl")][0]
    ).names
    titles = ["de:emp_0017", "de:Bob Ray", "de:Old one"] if several else ["emp_0017", "Bob Ray"]
    assert list(names)[4:] == titles


def test_an_article_of_one_set_is_nothing_else_in_another(tmp_path):
    links = [("Edo", "Edo"), ("Mercury", "Mercury")]
    more = [article(1, "Edo", "Edo and Mercury", links), article(2, "Mercury", "A planet.", [])]
    articles = [
        make_articles(tmp_path / "one", (ATLAS, OTHERS)),
        make_articles(tmp_path / "two", (more, [])),
    ]
    manifest = vocabulary(tmp_path, *articles)
    assert manifest.counts["links to a disambiguation"] == 0
    names = EntityVocab.from_file(manifest.paths("entity_vocab.tsv")[0]).names
    assert {"Edo", "Mercury", "Tokyo"} < set(names)


def test_settings_that_cannot_work_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="--size is 0"):
        VocabSettings(size=0)
    articles = [make_articles(tmp_path / x, (ATLAS, []), language=x) for x in ("en", "de")]
    with pytest.raises(ConfigError, match="need --sitelinks"):
        vocabulary(tmp_path, *articles)
    with pytest.raises(ConfigError, match="en contains the same articles as .*en"):
        vocabulary(tmp_path, articles[0], read_manifest(articles[0].folder, "articles"))
    bad = tmp_path / "bad.csv"
    bad.write_text("a,b\n1,2\n")
    with pytest.raises(CorpusError, match="bad.csv has no column item, language, title; it has a"):
        vocabulary(tmp_path, *articles, sitelinks=bad)


def test_a_vocabulary_that_would_be_empty_is_refused(tmp_path):
    with pytest.raises(CorpusError, match=r"no entity has 9 links \(--min-count\)"):
        vocabulary(tmp_path, min_count=9)
    with pytest.raises(CorpusError, match="would be empty"):
        vocabulary(tmp_path / "x", make_articles(tmp_path / "none", ([], [])))
