"""Lists of names and the data that :mod:`.listed` compares them on."""

import argparse
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import spacy
import srsly
from spacy.language import Language
from spacy.tokens import Doc

from spacy_luke.errors import ConfigError

from .datasets import load, prepare, store
from .linking_data import italian

LISTS = ("full", "half", "shuffled", "ordinary", "annotations", "ids", "labels")
N_ORDINARY = 5_000
UNLABELLED = "name"

Names = list[dict[str, str]]


class Source(NamedTuple):
    """data: of :data:`.datasets.DATA_SETS`. keep: its labels that are used; empty: all. names: a
    file of the list, or a MediaWiki export, below ``--data``. label: of names without one. lang: of
    the data, by whose rules names are compared."""

    data: str
    keep: tuple[str, ...]
    names: str
    label: str
    lang: str = "en"


SOURCES = {
    "diseases": Source("bc5cdr", ("Disease",), "disease-ontology/kb.jsonl", "Disease"),
    "places": Source("politics", (), "geovirus-linking/kb.jsonl", "location"),
    "german": Source("germeval", (), "wikipedia/itwiki-small-dump.xml.gz", UNLABELLED, "de"),
    "encyclopedia": Source("", (), "", UNLABELLED),
}
PROJECT = Path("project/data")


def data_of(args: argparse.Namespace, name: str, size: int) -> dict[str, Path]:
    """Files of the parts, with the labels that are used."""
    source, folder = SOURCES[name], args.work / f"{name}-{size}"
    paths = {part: folder / f"{part}.spacy" for part in ("train", "dev", "test")}
    if not all(path.exists() for path in paths.values()):
        for part, path in paths.items():
            docs = _docs_of(args, source, part, size)
            for doc in docs if source.keep else ():
                doc.ents = [x for x in doc.ents if x.label_ in source.keep]
            store(path, docs)
    return paths


def _docs_of(args: argparse.Namespace, source: Source, part: str, size: int) -> list[Doc]:
    if source.data:
        return prepare(source.data, args.data, args.work, train_limit=size).docs(part)
    docs = load(PROJECT / f"{part}.spacy")
    return docs[: size or None] if part == "train" else docs


def names_of(args: argparse.Namespace, name: str, which: str, train: Sequence[Doc]) -> Names:
    """The names of a list. ``half`` is the whole list, as at prediction."""
    source = SOURCES[name]
    labels = sorted({x.label_ for doc in train for x in doc.ents})
    if which == "annotations":
        found = {(x.text, x.label_) for doc in train for x in doc.ents}
        return [{"name": text, "label": label} for text, label in sorted(found)]
    if which == "ordinary":
        words = Counter(x.lower_ for doc in train for x in doc if x.is_alpha and not x.ent_type)
        return [{"name": x, "label": source.label} for x, _ in words.most_common(N_ORDINARY)]
    names = [
        {"name": text, "label": record.get("type") or source.label, "id": record.get("id", "")}
        for record in _records(args, source)
        for text in dict.fromkeys([record["name"], *record.get("aliases", [])])
    ]
    if source.data or which == "labels":  # the encoder has no rows of their ids
        names = [{**x, "id": ""} for x in names]
    if which == "ids":
        names = [{**x, "label": UNLABELLED} for x in names]
    if which == "shuffled":
        if len(labels) < 2:
            raise ConfigError(f"{name} has one label: the list 'shuffled' would be 'full'.")
        rng = random.Random(0)
        names = [{**x, "label": rng.choice(labels)} for x in names]
    return names


def _records(args: argparse.Namespace, source: Source) -> Iterable[dict[str, Any]]:
    if not source.names:
        return srsly.read_jsonl(PROJECT / "entities.jsonl")
    if source.names.endswith(".jsonl"):
        return srsly.read_jsonl(args.data / source.names)
    entities = italian(args.data, args.work, fold=-1).entities
    # Texts that begin with a small letter are words of the wiki's language.
    texts = (x for entity in entities for x in entity.aliases if len(x) > 2 and x[0].isupper())
    return ({"name": x} for x in dict.fromkeys(texts))


def as_annotated(names: Names, train: Sequence[Doc], source: Source) -> Names:
    """Names for a list that annotates by itself: if it has no labels, the label that most of its
    names have in the training data."""
    if source.label != UNLABELLED:
        return names
    nlp = spacy.blank(source.lang)
    pipe: Any = nlp.add_pipe("known_names")
    pipe.set_names(names)
    gold = Counter[str]()
    for doc in train:
        labels = {(x.start, x.end): x.label_ for x in doc.ents}
        listed = nlp(unannotated(nlp, [doc])[0])
        for span in listed.spans["known_names"]:
            gold.update(filter(None, [labels.get((span.start, span.end))]))
    (label, _), *_ = gold.most_common(1) or [(UNLABELLED, 0)]
    return [{**x, "label": label if x["label"] == UNLABELLED else x["label"]} for x in names]


def unannotated(nlp: Language, docs: Sequence[Doc]) -> list[Doc]:
    return [
        Doc(nlp.vocab, [x.text for x in doc], [bool(x.whitespace_) for x in doc]) for doc in docs
    ]
