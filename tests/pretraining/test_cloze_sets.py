"""Cloze sets from articles: the sentence, the passage, the answer, the split."""

import pytest
import spacy
import srsly
from spacy.tokens import DocBin
from typer.testing import CliRunner

from spacy_luke.annotations.queries import get_completions
from spacy_luke.cli import app
from spacy_luke.corpora.conversion_report import Report
from spacy_luke.corpora.options import ConvertOptions
from spacy_luke.corpora.record import read_record
from spacy_luke.errors import ConfigError
from spacy_luke.pretraining.articles import read_dump
from spacy_luke.pretraining.cloze_sets import make_cloze_set, part_of
from spacy_luke.pretraining.engine import Engine
from spacy_luke.pretraining.settings import ClozeSettings
from tests.pretraining.articles import article, make_articles

FERRY = "The old ferry goes from Selm to Brae."
ISLAND = "Nobody on the islands has ever lived on Selm in winter."
TEXT = f"{FERRY} It is red.\n\n{ISLAND}"
LINKS = [("Selm", "Selm"), ("Brae", "Brae"), ("Selm", "Selm")]


def make(folder, *rows, **settings):
    if rows:
        make_articles(folder, (list(rows), []))
    return make_cloze_set(folder, spacy.blank("en"), ClozeSettings(**settings))


def described(doc):
    (query,), (completions,) = doc._.queries, doc._.completions
    return (
        query.text,
        doc.text.strip(),
        [(x.text, x.kb_id_) for x in doc.ents],
        [x.text for x in completions.candidates],
    )


def test_a_link_is_hidden_that_another_sentence_has(tmp_path):
    made = make(tmp_path / "a", article(1, "Ferry", TEXT, LINKS))
    # Of the other sentence nothing can be made: its passage would have one entity only.
    assert made.counts["links"] == 3
    assert made.counts["links to an entity that another sentence links"] == 2
    assert made.counts["queries"] == 1
    (doc,) = made.parts["train"]
    query, text, ents, right = described(doc)
    assert query == ISLAND.replace("Selm", "@placeholder")
    assert text == f"{FERRY} It is red."
    assert ents == [("Selm", "Selm"), ("Brae", "Brae")] and right == ["Selm"]
    assert doc.user_data["title"] == "Ferry"
    assert not doc.has_annotation("ENT_IOB", require_complete=True)


@pytest.mark.parametrize(
    "sentence,links",
    [
        ("Selm is far.", 1),  # too short
        (f"Selm {'very ' * 60}far.", 1),  # too long
        ("People from Selm say that Selm is far.", 1),  # the rest says what is hidden
        ("People from Selm say that Selm is far.", 2),
        ("Say @placeholder in Selm to everyone there.", 1),
        ("People from Selm say that Se\u0301lm is far.", 1),
        ("People from Selm say that \uff33\uff45\uff4c\uff4d is far.", 1),  # full width
        ("People from Selm say that Sel\u00adm is far.", 1),
    ],
)
def test_other_sentences_are_no_queries(tmp_path, sentence, links):
    row = article(1, "Ferry", f"{FERRY}\n{sentence}", [*LINKS[:2], *[("Selm", "Selm")] * links])
    assert make(tmp_path / "a", row).counts["queries"] == 0


def long_article(number, title):
    """Every sentence links Selm and one other place."""
    text = " ".join(f"In year {i} the ferry went from Selm to Port{i} twice." for i in range(30))
    links = [x for i in range(30) for x in (("Selm", "Selm"), (f"Port{i}", f"Port {i}"))]
    return article(number, title, text, links)


def test_a_passage_is_capped_and_the_answer_anywhere_in_it(tmp_path):
    made = make(tmp_path / "a", long_article(1, "Ferry"), max_words=40)
    docs = made.parts["train"]
    assert len(docs) == 30 and all(20 < len(doc) <= 40 for doc in docs)
    assert len({doc.text[:12] for doc in docs}) > 10
    for doc in docs:
        assert "Selm" in doc.text and "Selm" not in doc._.queries[0].text
        assert doc._.queries[0].text.replace("@placeholder", "Selm") not in doc.text
    assert make(tmp_path / "a", max_words=3).counts["queries"] == 0


def test_the_answer_has_all_mentions_and_texts(tmp_path):
    text = f"{FERRY} They call it Sel. {ISLAND}"
    row = article(1, "F", text, [*LINKS[:2], ("Sel", "Selm"), LINKS[2]])
    made = make(tmp_path / "a", row)
    (doc,) = [x for x in made.parts["train"] if x._.queries[0].text.startswith("Nobody")]
    (completions,) = get_completions(doc)
    assert [(x.text, len(x.mentions)) for x in completions.candidates] == [("Selm", 1), ("Sel", 1)]


def test_articles_are_split_and_queries_drawn_by_seed(tmp_path):
    rows = [long_article(i, f"Ferry {i}") for i in range(20)]
    whole = make(tmp_path / "a", *rows, dev=0.2, test=0.2)
    titles = {
        part: {x.user_data["title"] for x in docs} for part, docs in whole.parts.items() if docs
    }
    assert len(titles) == 3 and sum(map(len, titles.values())) == 20
    settings = ClozeSettings(dev=0.2, test=0.2)
    assert all(part_of(x, settings) == part for part, found in titles.items() for x in found)
    some = [make(tmp_path / "a", dev=0.2, test=0.2, limit=25, seed=x) for x in (0, 0, 1)]
    texts = [[[described(x) for x in docs] for docs in y.parts.values()] for y in some]
    assert texts[0] == texts[1] != texts[2]
    assert sum(map(len, texts[0])) == 25


@pytest.mark.parametrize(
    "settings", [{"limit": -1}, {"max_words": 0}, {"dev": -0.1}, {"dev": 0.5, "test": 0.5}]
)
def test_invalid_settings_are_errors(settings):
    with pytest.raises(ConfigError, match="use"):
        ClozeSettings(**settings)


def run(*arguments):
    return CliRunner().invoke(app, ["cloze-set", *map(str, arguments)])


def test_the_command_writes_both_formats(tmp_path):
    folder = tmp_path / "articles"
    make_articles(folder, ([article(1, "Ferry", TEXT, LINKS)], []))
    result = run(folder, tmp_path / "cloze.spacy")
    assert result.exit_code == 0 and "66.7% of the links" in result.output, result.output
    assert run(folder, tmp_path / "cloze.json").exit_code == 0
    (saved,) = DocBin().from_disk(tmp_path / "cloze.spacy").get_docs(spacy.blank("en").vocab)
    nlp, report = spacy.blank("en"), Report()
    (read,) = read_record(tmp_path / "cloze.json", nlp, ConvertOptions(), report)
    (one, *_), (two, *_) = described(saved), described(read)
    assert one == two and not report.events
    assert [(x.text, x.start_char) for x in saved.ents] == [
        (x.text, x.start_char) for x in read.ents
    ]
    assert described(saved)[3] == described(read)[3] == ["Selm"]


def test_the_command_splits_and_repeats_itself(tmp_path):
    folder = tmp_path / "articles"
    make_articles(folder, ([long_article(i, f"Ferry {i}") for i in range(12)], []))
    for name in ("one", "two"):
        options = ["--dev", "0.3", "--test", "0.2", "--limit", "40", "--json"]
        assert run(folder, tmp_path / name, *options).exit_code == 0
    files = {x.name: x.read_bytes() for x in (tmp_path / "one").iterdir()}
    assert sorted(files) == ["dev.json", "test.json", "train.json"]
    assert files == {x.name: x.read_bytes() for x in (tmp_path / "two").iterdir()}
    assert sum(len(srsly.json_loads(x)["data"]) for x in files.values()) == 40
    # Articles of the former test data are in other parts of this split.
    result = run(folder, tmp_path / "one", "--dev", "0.5", "--json", "--force")
    assert result.exit_code == 0 and "was removed" in " ".join(result.output.split())
    assert sorted(x.name for x in (tmp_path / "one").iterdir()) == ["dev.json", "train.json"]


def test_wrong_arguments_are_errors(tmp_path):
    folder = tmp_path / "articles"
    make_articles(folder, ([article(1, "Ferry", FERRY, LINKS[:2])], []))
    for arguments, says in (
        ((folder, tmp_path / "out.txt"), "must end in"),
        ((folder, tmp_path / "out.json", "--dev", "0.1"), "must be a folder"),
        ((folder, tmp_path / "out.json", "--json"), "--json is for a folder"),
        ((folder, tmp_path / "out.json"), "no query can be made"),
        ((tmp_path / "absent", tmp_path / "out.json"), "absent"),
    ):
        result = run(*arguments)
        assert result.exit_code == 1 and says in " ".join(result.output.split()), result.output


@pytest.mark.parametrize(
    "name,least,most",
    [
        ("enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2", 0.25, 0.28),
        ("itwiki-small-dump.xml.gz", 0.29, 0.32),
    ],
)
@pytest.mark.slow
def test_real_wikis(data_dir, tmp_path, name, least, most):
    read_dump([data_dir / "wikipedia" / name], tmp_path / "a", Engine(workers=1))
    counts = make(tmp_path / "a", limit=200).counts
    share = counts["links to an entity that another sentence links"] / counts["links"]
    assert least < share < most and counts["queries"] > 5000
