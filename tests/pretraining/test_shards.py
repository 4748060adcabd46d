"""Shards: sequences that spell their articles, and articles set aside."""

import os
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import spacy
import srsly
from spacy.tokens import DocBin, Span

from spacy_luke.checkpoint.read import read_checkpoint
from spacy_luke.errors import ConfigError, StageError
from spacy_luke.pretraining.articles import read_docs, read_dump
from spacy_luke.pretraining.engine import Engine
from spacy_luke.pretraining.entities import build_vocabulary
from spacy_luke.pretraining.manifest import read_manifest
from spacy_luke.pretraining.pretrain import LOG, read_log
from spacy_luke.pretraining.samples import Samples
from spacy_luke.pretraining.settings import ShardSettings, VocabSettings
from spacy_luke.pretraining.shards import build_shards, vocabulary
from spacy_luke.pretraining.tables import HELD_OUT, TRAIN
from tests.pretraining.articles import article, make_articles
from tests.pretraining.run_training import run
from tests.pretraining.test_sequences import spell
from tests.pretraining.test_stage import snapshot
from tests.pretraining.world import NAMES, make_rows, make_world

CORPUS = Path(__file__).parents[2] / "project" / "corpus"
KINDS = pytest.mark.parametrize("kind", ["bert_dir", "luke_dir", "xlmr_dir"])


def rows_of(manifest, name: str) -> list[dict]:
    return [row for path in manifest.paths(name) for row in pq.read_table(path).to_pylist()]


@KINDS
def test_sequences_spell_their_articles_and_entities_their_links(kind, request, tmp_path):
    checkpoint, entities, shards = make_world(tmp_path, request.getfixturevalue(kind))
    names = vocabulary(entities).names
    texts: dict[int, str] = {}
    links: dict[int, list[str]] = {}
    for row in [*rows_of(shards, TRAIN.file), *rows_of(shards, HELD_OUT.file)]:
        assert len(row["word_ids"]) <= 38
        text = spell(checkpoint.pieces, row["word_ids"]).replace("▁", "")
        texts[row["page_id"]] = texts.get(row["page_id"], "") + text
        spans = zip(row["entity_starts"], row["entity_ends"], row["entity_ids"])
        for anchor, (a, b, index) in zip(row["entity_anchors"], spans):
            shown = spell(checkpoint.pieces, row["word_ids"][a:b]).replace("▁", "")
            assert shown == anchor.lower() and index == names.get(anchor, names["[UNK]"])
            links.setdefault(row["page_id"], []).append(anchor)
    for page_id, _, text, _, _, targets, _ in make_rows(60):
        assert texts[page_id] == text.replace(" ", "").lower()
        assert links.get(page_id, []) == targets


def test_articles_are_set_aside_whole(bert_dir, tmp_path):
    _, _, shards = make_world(tmp_path, bert_dir)
    sides = [{row["page_id"] for row in rows_of(shards, x.file)} for x in (TRAIN, HELD_OUT)]
    assert not sides[0] & sides[1] and len(sides[0] | sides[1]) == 60
    assert 4 <= len(sides[1]) <= 20
    counts = shards.counts
    assert counts["articles, train"] == len(sides[0])
    assert counts["articles, held out"] == len(sides[1])
    assert counts["links outside the vocabulary"] > 0


@pytest.mark.parametrize("sentences", ["rules", "sentencizer"])
@pytest.mark.parametrize("language", ["ja", "sw", "simple"])
def test_a_language_without_a_tokenizer_in_spacy_has_sentences_too(
    bert_dir, tmp_path, caplog, language, sentences
):
    rows = [article(1, "A", "Tokyo is. It rains in Japan! Yes.", [("Tokyo", "Tokyo")])]
    articles = make_articles(tmp_path / "articles", (rows, []), language=language)
    entities = build_vocabulary([articles], tmp_path / "entities", VocabSettings(), False)
    pieces = read_checkpoint(bert_dir).pieces
    shards = build_shards(
        [articles],
        entities,
        pieces,
        tmp_path / "shards",
        ShardSettings(max_pieces=12, max_mention=5, held_out=0.0, sentences=sentences),
        Engine(workers=1),
        False,
    )
    found = rows_of(shards, TRAIN.file)
    assert len(found) > 1 and spell(pieces, found[0]["word_ids"]).endswith(".")
    told = f"spaCy cannot tokenize {language}: the sentencizer" in caplog.text
    assert told == (sentences == "sentencizer")


def test_damaged_articles_are_named(bert_dir, tmp_path):
    _, entities, _ = make_world(tmp_path, bert_dir)
    articles = make_articles(tmp_path / "other", (make_rows(9), []))
    path = articles.paths("articles.parquet")[0]
    path.write_bytes(path.read_bytes()[:-20])
    pieces = read_checkpoint(bert_dir).pieces
    with pytest.raises(StageError, match="articles.parquet is damaged"):
        build_shards(
            [articles],
            entities,
            pieces,
            tmp_path / "new",
            ShardSettings(),
            Engine(workers=1),
            False,
        )


def test_the_order_of_languages_is_part_of_what_a_folder_is_for(bert_dir, tmp_path):
    both = [
        make_articles(tmp_path / x, (make_rows(9), []), language=x, name="articles")
        for x in ("en", "de")
    ]
    path = tmp_path / "sitelinks.jsonl"
    names = [(f"Q{i}", x, name) for i, name in enumerate(NAMES) for x in ("en", "de")]
    srsly.write_jsonl(path, [dict(zip(("item", "language", "title"), x)) for x in names])
    entities = build_vocabulary(both, tmp_path / "entities", VocabSettings(sitelinks=path), False)
    pieces, settings, alone = read_checkpoint(bert_dir).pieces, ShardSettings(), Engine(workers=1)
    build_shards(both, entities, pieces, tmp_path / "new", settings, alone, False)
    with pytest.raises(ConfigError, match="was started with inputs.articles 0 de = None"):
        build_shards(both[::-1], entities, pieces, tmp_path / "new", settings, alone, False)


def test_articles_given_twice_are_refused(bert_dir, tmp_path):
    _, entities, _ = make_world(tmp_path, bert_dir)
    twice = [read_manifest(tmp_path / "articles", "articles") for _ in range(2)]
    pieces, settings = read_checkpoint(bert_dir).pieces, ShardSettings()
    with pytest.raises(ConfigError, match="articles contains the same articles as .*articles"):
        build_shards(twice, entities, pieces, tmp_path / "new", settings, Engine(workers=1), False)


def test_a_vocabulary_that_was_changed_afterwards_is_named(bert_dir, tmp_path):
    """Its order is what gives the ids in the shards their names."""
    _, entities, _ = make_world(tmp_path, bert_dir)
    articles = read_manifest(tmp_path / "articles", "articles")
    (path,) = entities.paths("entity_vocab.tsv")
    lines = path.read_text("utf8").split("\n")
    path.write_text("\n".join([*lines[:4], lines[5], lines[4], *lines[6:]]), "utf8")
    pieces, settings = read_checkpoint(bert_dir).pieces, ShardSettings()
    with pytest.raises(StageError, match="entity_vocab.tsv is damaged"):
        build_shards(
            [articles], entities, pieces, tmp_path / "new", settings, Engine(workers=1), False
        )
    with pytest.raises(StageError, match="entity_vocab.tsv is damaged"):
        run(tmp_path, bert_dir, tmp_path / "out", {})


def test_another_pipeline_for_sentences_is_another_stage(bert_dir, tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.to_disk(tmp_path / "nlp")
    make_world(tmp_path, bert_dir, sentences=str(tmp_path / "nlp"))
    make_world(tmp_path, bert_dir, sentences=str(tmp_path / "nlp"))  # goes on
    nlp.get_pipe("sentencizer").punct_chars.add(";")
    nlp.to_disk(tmp_path / "nlp")
    with pytest.raises(ConfigError, match="was started with inputs.sentences = "):
        make_world(tmp_path, bert_dir, sentences=str(tmp_path / "nlp"))


def test_names_of_folders_are_neither_patterns_nor_columns(bert_dir, tmp_path):
    """Of several that DuckDB would take one for another, each gives what it holds."""
    make_world(tmp_path / "b1", bert_dir, n=20)
    found = []
    for name in ("plain", "b[1]", "id=7", "language=xx", "entity_ids=3"):
        _, _, shards = make_world(tmp_path / name, bert_dir)
        run(tmp_path / name, bert_dir, tmp_path / name / "model", {"phases": [(1, 1e-3, False)]})
        (baselines,) = (
            x for x in read_log(tmp_path / name / "model" / LOG) if x["kind"] == "baselines"
        )
        found.append((snapshot(shards.folder), baselines))
    assert all(x == found[0] for x in found)


class Elsewhere(Engine):
    """Its worker was started in another directory."""

    def map(self, *args):
        before = Path.cwd()
        os.chdir("/")
        try:
            yield from super().map(*args)
        finally:
            os.chdir(before)


def test_relative_paths_reach_workers_elsewhere(bert_dir, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    nlp, engine = spacy.blank("en"), Elsewhere(workers=1)
    nlp.add_pipe("sentencizer")
    nlp.to_disk("nlp")
    shutil.copyfile(CORPUS / "encyclopedia.xml", "dump.xml")
    doc = nlp("Ada met Charles.")
    doc.ents = [Span(doc, 0, 1, "PER", kb_id="Ada")]
    DocBin(docs=[doc]).to_disk("docs.spacy")
    read_docs([Path("docs.spacy")], Path("docs"), engine, "en", False)
    read_dump([Path("dump.xml")], Path("articles"), engine, show_progress=False)
    articles = [read_manifest(Path(x), "articles") for x in ("docs", "articles")]
    entities = build_vocabulary(articles, Path("entities"), VocabSettings(), False)
    pieces, settings = read_checkpoint(bert_dir).pieces, ShardSettings(40, sentences="nlp")
    shards = build_shards(articles, entities, pieces, Path("out"), settings, engine, False)
    assert len(shards.parts) == 2 and shards.counts["entities, train"] > 100


def test_a_pipeline_that_is_replaced_is_not_kept_by_workers_that_live_on(bert_dir, tmp_path):
    rows = [article(1, "A", "Tokyo rains; it rains; it rains; so it is.", [("Tokyo", "Tokyo")])]
    articles = make_articles(tmp_path / "articles", (rows, []))
    entities = build_vocabulary([articles], tmp_path / "entities", VocabSettings(), False)
    pieces, found = read_checkpoint(bert_dir).pieces, []
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    settings = ShardSettings(12, max_mention=5, held_out=0.0, sentences=str(tmp_path / "nlp"))
    for name in ("before", "after"):  # one worker is this process
        nlp.to_disk(tmp_path / "nlp")
        out, engine = tmp_path / name, Engine(workers=1)
        shards = build_shards([articles], entities, pieces, out, settings, engine, False)
        ends = [spell(pieces, row["word_ids"])[-1] for row in rows_of(shards, TRAIN.file)]
        found.append(ends)
        nlp.get_pipe("sentencizer").punct_chars.add(";")
    assert set(found[1]) == {";", "."} != set(found[0])


def test_a_pipeline_without_sentences_is_told(bert_dir, tmp_path):
    spacy.blank("en").to_disk(tmp_path / "nlp")
    with pytest.raises(ConfigError, match="nlp: it sets no sentence starts"):
        make_world(tmp_path, bert_dir, sentences=str(tmp_path / "nlp"))


def test_neither_workers_nor_partitions_in_flight_change_a_byte(bert_dir, tmp_path):
    _, entities, shards = make_world(tmp_path, bert_dir)
    articles = make_articles(tmp_path / "articles", *[(make_rows(60)[i::3], []) for i in range(3)])
    settings = ShardSettings(max_pieces=40, held_out=0.2)
    pieces = read_checkpoint(bert_dir).pieces
    engines = {"two": Engine(workers=2), "one": Engine(workers=1), "dask": Engine("dask", 2)}
    for name, engine in engines.items():
        build_shards([articles], entities, pieces, tmp_path / name, settings, engine, False)
        assert snapshot(tmp_path / name) == snapshot(shards.folder)


def test_redirects_and_unknown_titles_get_their_ids(bert_dir, tmp_path):
    text = "Tokyo and Edo and Kyoto"
    rows = [article(1, "A", text, [("Tokyo", "Tokyo"), ("Edo", "Edo"), ("Kyoto", "Kyoto")])]
    articles = make_articles(tmp_path / "articles", (rows, [("Edo", "redirect", "Tokyo")]))
    entities = build_vocabulary([articles], tmp_path / "entities", VocabSettings(size=1), False)
    pieces = read_checkpoint(bert_dir).pieces
    settings = ShardSettings(held_out=0.0)
    shards = build_shards(
        [articles], entities, pieces, tmp_path / "s", settings, Engine(workers=1), False
    )
    assert [row["entity_ids"] for row in rows_of(shards, TRAIN.file)] == [[4, 4, 1]]


def test_settings_that_cannot_work_are_refused(bert_dir, tmp_path):
    for message, values in {
        "--max-pieces is 4": {"max_pieces": 4},
        "--held-out is 1.0": {"held_out": 1.0},
        "--max-mention is 30": {"max_pieces": 20},
    }.items():
        with pytest.raises(ConfigError, match=message):
            ShardSettings(**values)
    with pytest.raises(ConfigError, match="--sentences no_such_pipe"):
        make_world(tmp_path, bert_dir, sentences="no_such_pipe")


# Order


def samples(tmp_path: Path, bert_dir: Path, **settings) -> Samples:
    _, _, shards = make_world(tmp_path, bert_dir)
    return Samples(shards.paths(TRAIN.file), **settings)


@pytest.mark.parametrize("groups_at_once", [1, 2, 16])
def test_an_epoch_has_every_sequence_once_in_an_order_of_its_own(
    bert_dir, tmp_path, groups_at_once
):
    found = samples(tmp_path, bert_dir, groups_at_once=groups_at_once)
    orders = [[x.index for x in found.epoch(0, epoch)] for epoch in (0, 1)]
    assert all(sorted(order) == list(range(len(found))) for order in orders)
    assert orders[0] != orders[1] != list(range(len(found)))
    assert [x.index for x in found.epoch(1, 0)] != orders[0]


@pytest.mark.parametrize("groups_at_once", [1, 16])
def test_a_stream_can_be_entered_anywhere(bert_dir, tmp_path, groups_at_once):
    found = samples(tmp_path, bert_dir, groups_at_once=groups_at_once)
    n = 2 * len(found) + 5

    def part(start: int, count: int) -> list[tuple[int, int]]:
        stream = found.stream(0, start)
        return [(x.epoch, x.index) for x, _ in zip(stream, range(count))]

    whole = part(0, n)
    for start in (1, 7, len(found) - 1, len(found), len(found) + 3):
        assert part(start, n - start) == whole[start:]
