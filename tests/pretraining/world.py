"""A small world for training: articles, vocabulary, shards and a starting point."""

from pathlib import Path
from typing import Any

import numpy as np

from spacy_luke.checkpoint.read import Checkpoint, read_checkpoint
from spacy_luke.pretraining.engine import Engine
from spacy_luke.pretraining.entities import build_vocabulary
from spacy_luke.pretraining.manifest import Manifest
from spacy_luke.pretraining.settings import ShardSettings, VocabSettings
from spacy_luke.pretraining.shards import build_shards
from tests.pretraining.articles import article, make_articles

NAMES = ("Tokyo", "Japan", "London", "Paris", "Kyoto", "France", "Germany")
WORDS = ("is", "the", "capital", "of", "and", "its", "largest", "city", "met", "in", "worked")
ALONE = Engine(workers=1)


def make_rows(n: int, seed: int = 0, faithful: bool = False, linked: int = 1) -> list[tuple]:
    """Articles of random words and links. faithful: each links to one name only. linked: every so
    many articles one has links."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        words, links = [], []
        own = NAMES[int(rng.integers(len(NAMES)))]
        for k in range(int(rng.integers(6, 40))):
            if k % 4 == 0 and i % linked == 0:
                name = own if faithful else NAMES[int(rng.integers(len(NAMES)))]
                words.append(name)
                links.append((name, name))
            else:
                words.append(WORDS[int(rng.integers(len(WORDS)))] + "." * (k % 7 == 6))
        rows.append(article(i, f"Page {i}", " ".join(words), links))
    return rows


def make_world(
    folder: Path,
    encoder: Path,
    n: int = 60,
    faithful: bool = False,
    linked: int = 1,
    vocabulary_of: tuple[list, list] | None = None,
    **settings: Any,
) -> tuple[Checkpoint, Manifest, Manifest]:
    """(starting point, vocabulary, shards) of ``n`` articles in three partitions. vocabulary_of:
    other articles, which the vocabulary is taken from."""
    rows = make_rows(n, faithful=faithful, linked=linked)
    parts = [(rows[i::3], []) for i in range(3)]
    articles = make_articles(folder / "articles", *parts)
    linking = make_articles(folder / "linking", vocabulary_of) if vocabulary_of else articles
    entities = build_vocabulary([linking], folder / "entities", VocabSettings(size=6), False)
    checkpoint = read_checkpoint(encoder)
    values = {"max_pieces": 40, "held_out": 0.2, **settings}
    shards = build_shards(
        [articles],
        entities,
        checkpoint.pieces,
        folder / "shards",
        ShardSettings(**values),
        ALONE,
        False,
    )
    return checkpoint, entities, shards
