"""What the knowledge base is compared with: ``InMemoryLookupKB``, and SQLite's trigram index."""

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
from spacy.kb import InMemoryLookupKB
from spacy.vocab import Vocab

from spacy_luke.kb.candidates import CandidateSettings, likeness
from spacy_luke.kb.entity import Entity
from spacy_luke.kb.normalize import normalize_name

_FILE = "aliases.sqlite"
Lookup = Callable[[list[str]], list[list[str]]]
"""Texts to the ids of the candidates of each."""


def lookup_in(kb: InMemoryLookupKB) -> Lookup:
    def lookup(texts: list[str]) -> list[list[str]]:
        known = [
            kb.get_alias_candidates(text) if text in kb.vocab.strings else [] for text in texts
        ]
        return [[x.entity_ for x in sorted(row, key=lambda x: -x.prior_prob)] for row in known]

    return lookup


def lookup_kb(entities: Sequence[Entity], vectors: np.ndarray | None = None) -> InMemoryLookupKB:
    """spaCy's knowledge base with the same aliases; priors are shares of the entities' counts.
    vectors: (n, width) of the entities, each with an id of its own."""
    kb = InMemoryLookupKB(Vocab(), entity_vector_length=1 if vectors is None else vectors.shape[1])
    first = {x.id: x for x in reversed(entities)}
    ids = list(dict.fromkeys(x.id for x in entities))
    rows = [[0.0]] * len(ids) if vectors is None else vectors
    kb.set_entities(ids, [first[x].count for x in ids], rows)
    meanings: dict[str, list[str]] = defaultdict(list)
    for x in ids:
        for alias in first[x].aliases:
            meanings[alias].append(x)
    for alias, members in meanings.items():
        counts = [first[x].count for x in members]
        total = sum(counts)
        shares = [x / total if total else 1 / len(members) for x in counts]
        kb.add_alias(alias, members, [x * 0.9999 for x in shares])  # single precision may exceed 1
    return kb


def build_sqlite(entities: Iterable[Entity], folder: Path) -> None:
    """Write a table of normalised aliases with their entities, and its trigram index."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _FILE).unlink(missing_ok=True)
    with sqlite3.connect(folder / _FILE) as db:
        db.execute("PRAGMA journal_mode = off")
        db.execute("PRAGMA synchronous = off")
        db.execute(
            "CREATE VIRTUAL TABLE aliases USING fts5 (name, id UNINDEXED, "
            "tokenize = 'trigram case_sensitive 1')"
        )
        rows = ((normalize_name(alias, "en"), x.id) for x in entities for alias in x.aliases)
        db.executemany("INSERT INTO aliases VALUES (?, ?)", rows)
        db.execute("INSERT INTO aliases (aliases) VALUES ('optimize')")


class SqliteLookup:
    """Similar aliases: as many rows as our shortlist has, by the rank of the index, and then by
    likeness."""

    def __init__(self, folder: Path):
        path = (folder / _FILE).absolute()
        self._db = sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)

    def __call__(self, texts: list[str]) -> list[list[str]]:
        return [self._ids(normalize_name(text, "en")) for text in texts]

    def _ids(self, name: str) -> list[str]:
        trigrams = dict.fromkeys(name[i : i + 3] for i in range(len(name) - 2))
        query = " OR ".join('"' + x.replace('"', '""') + '"' for x in trigrams)
        rows = self._db.execute(
            "SELECT name, id FROM aliases WHERE aliases MATCH ? ORDER BY rank LIMIT ?",
            (query, CandidateSettings.shortlist),
        ).fetchall()
        scores = likeness(name, [x for x, _ in rows])
        return list(dict.fromkeys(rows[i][1] for i in np.argsort(-scores, kind="stable")))
