"""Relation and typing corpora to ``.spacy`` files, with splits that are written down here."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import spacy
from spacy.tokens import Doc

from spacy_luke.corpora.conversion_report import Report
from spacy_luke.corpora.docred import read_docred
from spacy_luke.corpora.options import ConvertOptions
from spacy_luke.corpora.preset import add_types_from_labels
from spacy_luke.corpora.semeval import read_semeval

from .datasets import Corpora, load, read, store

SPLIT_SEED = 0
SEMEVAL_DEV = 800
REDOCRED_TRAIN, REDOCRED_DEV = 350, 50
Parts = dict[str, list[Doc]]


@dataclass(frozen=True)
class TaskSet:
    """read: the data folder -> documents of ``train``, ``dev`` and ``test``. epochs: passes over
    the training data. batch_size: documents."""

    read: Callable[[Path], Parts]
    epochs: int
    batch_size: int = 16


def shuffled(docs: list[Doc]) -> list[Doc]:
    """In an order of our own, the same everywhere."""
    docs = list(docs)
    random.Random(SPLIT_SEED).shuffle(docs)
    return docs


def semeval(folder: Path) -> Parts:
    """SemEval-2010 Task 8: of its 8,000 training sentences 800 are held out as dev."""

    def part(name: str) -> list[Doc]:
        path = folder / "semeval2010-task8" / name
        return list(read_semeval(path, spacy.blank("en"), ConvertOptions(), Report()))

    train = shuffled(part("TRAIN_FILE.TXT"))
    return {
        "train": train[SEMEVAL_DEV:],
        "dev": train[:SEMEVAL_DEV],
        "test": part("TEST_FILE_FULL.TXT"),
    }


def redocred(folder: Path) -> Parts:
    """The 500 revised development documents of Re-DocRED, split 350 / 50 / 100."""
    path = folder / "redocred" / "dev_revised.json"
    docs = shuffled(list(read_docred(path, spacy.blank("en"), ConvertOptions(), Report())))
    dev = REDOCRED_TRAIN + REDOCRED_DEV
    return {
        "train": docs[:REDOCRED_TRAIN],
        "dev": docs[REDOCRED_TRAIN:dev],
        "test": docs[dev:],
    }


def crossner(domain: str) -> Callable[[Path], Parts]:
    """A CrossNER domain, each entity's label being its type."""

    def parts(folder: Path) -> Parts:
        names = ("train", "dev", "test")
        found = {x: list(read(folder / "crossner" / domain / f"{x}.txt")) for x in names}
        for docs in found.values():
            for doc in docs:
                add_types_from_labels(doc, None)
        return found

    return parts


RELATION_SETS = {
    "semeval": TaskSet(semeval, epochs=3),
    "redocred": TaskSet(redocred, epochs=10, batch_size=4),
}
TYPING_SETS = {
    name: TaskSet(crossner(name), epochs=10) for name in ("politics", "ai", "literature")
}


def prepare(
    name: str, source: TaskSet, folder: Path, work: Path, limit: int = 0, train_limit: int = 0
) -> Corpora:
    """Convert a data set. limit: documents kept of each part, 0 for all; train_limit: of the
    training data."""
    target = work / "corpora" / f"{name}.limit{limit}.train{train_limit}"
    paths = {part: target / f"{part}.spacy" for part in ("train", "dev", "test")}
    if not all(path.exists() for path in paths.values()):
        for part, docs in source.read(folder).items():
            most = (train_limit if part == "train" else 0) or limit
            store(paths[part], docs[: most or None])
    return Corpora(**paths, n_train=len(load(paths["train"])))
