"""Relation and typing corpora to ``.spacy`` files, with splits that are written down here."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import spacy
import srsly
from spacy.tokens import Doc, Span

from spacy_luke.annotations.relations import Relation
from spacy_luke.corpora.conversion_report import Report
from spacy_luke.corpora.docred import read_docred
from spacy_luke.corpora.options import ConvertOptions
from spacy_luke.corpora.preset import add_types_from_labels
from spacy_luke.corpora.semeval import read_semeval

from .datasets import Corpora, load, read, store

SPLIT_SEED = 0
SEMEVAL_DEV = 800
REDOCRED_TRAIN, REDOCRED_DEV = 350, 50
DOMAINS = ("politics", "ai", "literature")
"""Of CrossNER, and of CrossRE, which annotates relations in its sentences."""
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


def crossre(domain: str) -> Callable[[Path], Parts]:
    """A domain of CrossRE: 350 to 400 sentences, published as dev, to train on, and as dev the 100
    for training, from which relations could hardly be learned."""

    def parts(folder: Path) -> Parts:
        files = {"train": "dev", "dev": "train", "test": "test"}
        return {
            part: list(_crossre_docs(folder / "crossre" / f"{domain}-{file}.json"))
            for part, file in files.items()
        }

    return parts


def _crossre_docs(path: Path) -> Iterator[Doc]:
    """Words, entities as (first, last, label), relations as (first, last, first, last, label, ...),
    words counted in the sentence. No entities overlap."""
    vocab = spacy.blank("en").vocab
    for item in srsly.read_jsonl(path):
        words = item["sentence"]
        doc = Doc(vocab, words=words, sent_starts=[i == 0 for i in range(len(words))])
        doc.set_ents([Span(doc, first, last + 1, label) for first, last, label in item["ner"]])
        entities = {(entity.start, entity.end - 1): entity for entity in doc.ents}
        doc._.relations = [
            Relation(entities[h1, h2], entities[t1, t2], label)
            for h1, h2, t1, t2, label, *_ in item["relations"]
        ]
        yield doc


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
    **{f"crossre-{name}": TaskSet(crossre(name), epochs=10) for name in DOMAINS},
}
TYPING_SETS = {name: TaskSet(crossner(name), epochs=10) for name in DOMAINS}


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
