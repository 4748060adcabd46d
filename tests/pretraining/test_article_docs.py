"""Articles become documents whose links are entities, with the titles that they lead to as ids."""

import pytest
import spacy
from spacy.tokens import DocBin

from spacy_luke.corpora.conversion_report import Report
from spacy_luke.corpora.options import ConvertOptions
from spacy_luke.errors import StageError
from spacy_luke.pretraining.article_docs import read_article_docs
from spacy_luke.pretraining.articles import read_docs, read_dump
from spacy_luke.pretraining.engine import Engine
from spacy_luke.pretraining.settings import DumpSettings
from tests.conftest import require_data
from tests.pretraining.articles import article, make_articles

OTHERS = [
    ("Selm Isle", "redirect", "Isle of Selm"),
    ("Isle of Selm", "redirect", "Selm"),
    ("Loop", "redirect", "Hoop"),
    ("Hoop", "redirect", "Loop"),
    ("Otto", "disambiguation", None),
    ("The Ottos", "redirect", "Otto"),
]


def convert(folder, lang="en", **options):
    report = Report()
    docs = list(read_article_docs(folder, spacy.blank(lang), ConvertOptions(**options), report))
    packed = DocBin(docs=docs, store_user_data=True).to_bytes()
    docs = list(DocBin().from_bytes(packed).get_docs(spacy.blank(lang).vocab))
    return docs, report, {what: event.count for what, event in report.events.items()}


def links(doc):
    return [(ent.text, ent.label_, ent.kb_id_) for ent in doc.ents]


def test_links_lead_to_titles_with_redirects_resolved(tmp_path):
    text = "From Selm, the island, to Brae and Selm."
    row = article(1, "Ferry", text, [("Selm", "Selm Isle"), ("Brae", "Brae"), ("Selm", "Selm")])
    make_articles(tmp_path / "articles", ([row], OTHERS))
    (doc,), report, events = convert(tmp_path / "articles", spans_key="links")
    assert doc.text == text
    assert links(doc) == [(x.text, x.label_, x.kb_id_) for x in doc.spans["links"]]
    assert links(doc) == [
        ("Selm", "MENTION", "Selm"),
        ("Brae", "MENTION", "Brae"),  # a page that the export lacks
        ("Selm", "MENTION", "Selm"),
    ]
    assert doc.user_data["title"] == "Ferry"
    assert (report.documents, report.links, report.nil) == (1, 3, 0)
    assert not events


def test_nothing_is_known_of_words_outside_the_links(tmp_path):
    row = article(1, "Ferry", "From Selm to Brae", [("Selm", "Selm")])
    make_articles(tmp_path / "articles", ([row], []))
    (doc,), _, _ = convert(tmp_path / "articles")
    assert [token.ent_iob_ for token in doc] == ["", "B", "", ""]


def test_links_that_lead_to_no_article_are_left_out_and_counted(tmp_path):
    targets = ["Loop", "Otto", "The Ottos", "NIL", "Selm"]
    rows = [
        article(1, "Ferry", "a b c d e", list(zip("abcde", targets, strict=True))),
        article(2, "Boat", "a b", [("a", "Otto")]),
        article(3, "Raft", "No links.", []),
    ]
    make_articles(tmp_path / "articles", (rows, OTHERS))
    (doc,), _, events = convert(tmp_path / "articles")
    assert links(doc) == [("e", "MENTION", "Selm")]
    assert events == {
        "links left out: by redirects to no article": 1,
        "links left out: to a disambiguation page": 3,
        "links left out: to an article called NIL": 1,
        "articles without links, left out": 2,
    }


def test_a_link_to_a_part_of_a_word_splits_the_token_unless_asked_otherwise(tmp_path):
    row = article(1, "Ferry", "Selmers left Selm", [("Selm", "Selm"), ("Selm", "Selm")])
    make_articles(tmp_path / "articles", ([row], []))
    (doc,), _, events = convert(tmp_path / "articles")
    assert [token.text for token in doc] == ["Selm", "ers", "left", "Selm"]
    assert events == {"tokens split where a span begins or ends inside": 1}
    (doc,), _, events = convert(tmp_path / "articles", alignment="strict")
    assert links(doc) == [("Selm", "MENTION", "Selm")] and doc.ents[0].start == 2
    assert events == {"spans left out: they cut a token (alignment strict)": 1}


def test_every_part_is_read_in_order(tmp_path):
    rows = [article(i, f"A{i}", f"See Selm {i}", [("Selm", "Selm")]) for i in range(120)]
    make_articles(tmp_path / "articles", (rows[:70], []), (rows[70:], OTHERS), language="de")
    docs, _, _ = convert(tmp_path / "articles", "de")
    assert [doc.user_data["title"] for doc in docs] == [f"A{i}" for i in range(120)]


def test_annotated_documents_come_back_with_their_ids(tmp_path):
    nlp = spacy.blank("en")
    doc = nlp("Ada met Charles in London.")
    doc.ents = [doc.char_span(0, 3, "PER", kb_id="Q7259"), doc.char_span(8, 15, "PER")]
    DocBin(docs=[doc]).to_disk(tmp_path / "docs.spacy")
    engine = Engine(workers=1)
    read_docs([tmp_path / "docs.spacy"], tmp_path / "articles", engine, "en", False)
    (doc,), _, _ = convert(tmp_path / "articles")
    assert links(doc) == [("Ada", "MENTION", "Q7259")]


def test_a_folder_that_is_incomplete_or_damaged_is_refused(tmp_path):
    with pytest.raises(StageError, match=r"manifest.json is missing"):
        convert(tmp_path)
    rows = [article(1, "Ferry", "From Selm", [("Selm", "Selm")])]
    manifest = make_articles(tmp_path / "articles", (rows, []))
    (path,) = manifest.paths("articles.parquet")
    path.chmod(0o644)
    path.write_bytes(b"not Parquet")
    with pytest.raises(StageError, match="is damaged"):
        convert(tmp_path / "articles")


def test_a_published_export_keeps_every_link(data_dir, tmp_path):
    path = data_dir / "wikipedia" / "minidumps" / "de-wiki.xml.bz2"
    require_data(path)
    engine = Engine(workers=1)
    manifest = read_dump(
        [path], tmp_path / "articles", engine, DumpSettings("de"), show_progress=False
    )
    docs, report, events = convert(tmp_path / "articles", "de")
    assert report.links == manifest.counts["links"] > 500
    with_text = manifest.counts["article"] - manifest.counts.get("article without text", 0)
    assert len(docs) + events.get("articles without links, left out", 0) == with_text
    assert sum(len(doc.ents) for doc in docs) == report.links
