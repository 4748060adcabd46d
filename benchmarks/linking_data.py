"""Mentions with ids of public data sets, knowledge bases for them, and invented names."""

import csv
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import spacy
from spacy.tokens import DocBin

from spacy_luke.corpora.conversion_report import Report
from spacy_luke.corpora.hipe import read_hipe
from spacy_luke.corpora.options import ConvertOptions
from spacy_luke.corpora.pubtator import read_abstracts
from spacy_luke.kb.entity import NIL, NOT_GIVEN, Entity, Findings
from spacy_luke.kb.read_records import read_entities

from .state_populations import STATES

N_FOLDS = 10
_N_WORDS = 300_000
_BLOCK = 10_000
_PROJECT = Path(__file__).parent.parent / "project" / "data"
_ALPHABET = "abcdefghijklmnopqrstuvwxyz"


class LinkedMention(NamedTuple):
    """ids: of the entities that the mention means; empty if none of them is in the knowledge
    base."""

    text: str
    ids: frozenset[str]


class LinkedAbstract(NamedTuple):
    """mentions: (start, end, ids), by characters; ids as of :class:`LinkedMention`."""

    text: str
    mentions: list[tuple[int, int, frozenset[str]]]


DISEASE_FILES = {
    ("NCBI", "train"): "disease-linking/NCBItrainset_corpus.txt",
    ("NCBI", "develop"): "disease-linking/NCBIdevelopset_corpus.txt",
    ("BC5CDR", "train"): "bc5cdr/CDR_TrainingSet.PubTator.txt",
    ("BC5CDR", "develop"): "bc5cdr/CDR_DevelopmentSet.PubTator.txt",
}


def disease_abstracts(folder: Path, name: str, part: str) -> list[LinkedAbstract]:
    """Abstracts of the NCBI disease corpus or BC5CDR, and the mentions of diseases. part: ``train``
    or ``develop``. A MeSH or OMIM id stands for all diseases that refer to it, several ids for
    those of each."""
    known = disease_references(folder)
    found = []
    for item in read_abstracts(folder / DISEASE_FILES[name, part]):
        mentions = [
            (x.start, x.end, frozenset().union(*(known.get(y, ()) for y in x.ids)))
            for x in item.mentions
            if x.label != "Chemical"
        ]
        found.append(LinkedAbstract(item.text, mentions))
    return found


def disease_entities(folder: Path) -> list[Entity]:
    """The Disease Ontology."""
    return list(read_entities(folder / "disease-ontology" / "kb.jsonl", Findings()))


def diseases(folder: Path, work: Path) -> tuple[list[Entity], dict[str, list[LinkedMention]]]:
    """The Disease Ontology, and the mentions of the parts of both corpora."""
    parts = {
        f"{name} {part}": [
            LinkedMention(text[start:end], ids)
            for text, mentions in disease_abstracts(folder, name, part)
            for start, end, ids in mentions
        ]
        for name, part in DISEASE_FILES
    }
    return disease_entities(folder), parts


def disease_references(folder: Path) -> dict[str, set[str]]:
    """MeSH or OMIM id -> the diseases of the Disease Ontology that refer to it."""
    by_reference: dict[str, set[str]] = {}
    for record in _records(folder / "disease-ontology" / "kb.jsonl"):
        omim = (f"OMIM:{str(x).removeprefix('OMIM:')}" for x in record["omim"])
        for reference in (*record["mesh"], *omim):
            by_reference.setdefault(reference, set()).add(record["id"])
    return by_reference


def places(folder: Path, work: Path) -> tuple[list[Entity], dict[str, list[LinkedMention]]]:
    """GeoNames entries, counted by population (of states, which have none there, by the census),
    and the places of GeoVirus."""
    path = work / "places.jsonl"
    with path.open("w", encoding="utf8") as file:
        for record in _records(folder / "geovirus-linking" / "kb.jsonl"):
            population = record.pop("population")
            is_state = record["type"] == "state"
            record["count"] = STATES[record["name"]] if is_state else population
            file.write(json.dumps(record) + "\n")
    mentions = [
        LinkedMention(x["text"], frozenset([x["id"]] if x["id"] else []))
        for doc in _records(folder / "geovirus-linking" / "docs-a.jsonl")
        for x in doc["mentions"]
    ]
    return list(read_entities(path, Findings())), {"GeoVirus": mentions}


class LinkedDoc(NamedTuple):
    """mentions: (start, end, id), by characters; those without an id are left out."""

    text: str
    mentions: list[tuple[int, int, str]]


class LinkedSet(NamedTuple):
    """Documents with links, all entities that they may be linked to, and other documents.

    type_order: the types of entities, that which a name usually means first; empty where they have
    none.
    """

    lang: str
    entities: list[Entity]
    docs: list[LinkedDoc]
    train: list[LinkedDoc]
    type_order: tuple[str, ...] = ()


def folds(docs: list[LinkedDoc], fold: int, n: int) -> tuple[list[LinkedDoc], list[LinkedDoc]]:
    """Every n-th document, beginning with number ``fold``, and the others."""
    tested = [doc for i, doc in enumerate(docs) if i % n == fold]
    return tested, [doc for i, doc in enumerate(docs) if i % n != fold]


def geovirus(folder: Path, work: Path, fold: int = 0, n_folds: int = 1) -> LinkedSet:
    """Places in Wikinews, of GeoNames, counted by population."""
    entities, _ = places(folder, work)
    docs = [
        LinkedDoc(
            doc["text"], [(x["start"], x["end"], x["id"]) for x in doc["mentions"] if x["id"]]
        )
        for doc in _records(folder / "geovirus-linking" / "docs-a.jsonl")
    ]
    order = ("country", "state", "populated place")
    return LinkedSet("en", entities, *folds(docs, fold, n_folds), type_order=order)


def emerson(folder: Path, work: Path, fold: int = 0, n_folds: int = 1) -> LinkedSet:
    """Three persons called Emerson."""
    folder = folder / "nel-emerson"
    with (folder / "entities.csv").open(encoding="utf8", newline="") as file:
        entities = [
            Entity(id, name, {"Emerson": NOT_GIVEN}, description)
            for id, name, description in filter(None, csv.reader(file))
        ]
    docs = [
        LinkedDoc(task["text"], [(span["start"], span["end"], task["accept"][0])])
        for task in _records(folder / "emerson_annotated_text.jsonl")
        if task["answer"] == "accept" and task.get("accept")
        for span in task["spans"]
    ]
    return LinkedSet("en", entities, *folds(docs, fold, n_folds))


def italian(folder: Path, work: Path, fold: int = 0, n_folds: int = N_FOLDS) -> LinkedSet:
    """Links of one fold of articles; the entities are the link targets of the others, which are
    their titles, with the texts of the links as aliases, counted once per article. Articles are
    read from the dump once."""
    import pyarrow.parquet as pq

    from spacy_luke.pretraining.articles import read_dump
    from spacy_luke.pretraining.engine import Engine
    from spacy_luke.pretraining.settings import DumpSettings
    from spacy_luke.pretraining.tables import ARTICLES

    articles = work / "italian.articles"
    if not (articles / "manifest.json").exists():
        dump = folder / "wikipedia" / "itwiki-small-dump.xml.gz"
        read_dump([dump], articles, Engine(workers=1), DumpSettings("it"), show_progress=False)
    rows = [
        row
        for path in sorted(articles.rglob(ARTICLES.file))
        for row in pq.read_table(path).to_pylist()
    ]
    aliases: dict[str, Counter[str]] = {}
    docs, train = [], []
    for number, row in enumerate(rows):
        places = zip(row["link_starts"], row["link_ends"], row["link_targets"])
        linked = LinkedDoc(row["text"], list(places))
        if number % n_folds == fold:
            docs.append(linked)
            continue
        train.append(linked)
        for target, anchor in set(zip(row["link_targets"], row["link_anchors"])):
            aliases.setdefault(target, Counter())[anchor] += 1
    entities = [
        Entity(title, title, {title: 0.0, **found}, count=float(found.total()))
        for title, found in sorted(aliases.items())
        if title != NIL
    ]
    return LinkedSet("it", entities, docs, train)


def hipe(folder: Path, work: Path, fold: int = 0, n_folds: int = N_FOLDS) -> LinkedSet:
    """English documents of HIPE, with the errors of character recognition, and Wikidata ids. The
    entities are those of the other folds, each with its most frequent mention as its name; a
    document counts once, however often it repeats it."""
    docs = []
    for path in sorted((folder / "hipe2022-ccby").glob("*-en.tsv")):
        options = ConvertOptions(ignore_spacing=True)
        for doc in read_hipe(path, spacy.blank("en"), options, Report()):
            linked = [x for x in doc.ents if x.kb_id_ not in ("", NIL)]
            spans = [(x.start_char, x.end_char, x.kb_id_) for x in linked]
            docs.append(LinkedDoc(doc.text, spans))
    tested, train = folds(docs, fold, n_folds)
    aliases: dict[str, Counter[str]] = {}
    for text, mentions in train:
        for id, name in {(id, text[start:end]) for start, end, id in mentions}:
            aliases.setdefault(id, Counter())[name] += 1
    entities = [
        Entity(id, found.most_common(1)[0][0], found, count=float(found.total()))
        for id, found in sorted(aliases.items())
    ]
    return LinkedSet("en", entities, tested, train)


def encyclopedia(folder: Path, work: Path, fold: int = 0, n_folds: int = N_FOLDS) -> LinkedSet:
    """The project's own articles, as ``spacy project run kb`` leaves them; all three parts. Names
    are counted in the other folds, once per article. "NIL" is annotated; it counts in training."""
    if not (_PROJECT / "entities.jsonl").exists():
        command = "python -m spacy project run {} ."
        raise FileNotFoundError(
            f"{_PROJECT} has no entities.jsonl. {command.format('prepare')} and "
            f"{command.format('kb')} make it."
        )
    nlp = spacy.blank("en")
    docs = [
        LinkedDoc(doc.text, [(x.start_char, x.end_char, x.kb_id_) for x in doc.ents])
        for part in ("train", "dev", "test")
        for doc in DocBin().from_disk(_PROJECT / f"{part}.spacy").get_docs(nlp.vocab)
    ]
    tested, train = folds(docs, fold, n_folds)
    counted: dict[str, Counter[str]] = {}
    for text, mentions in train:
        for id, name in {(id, text[start:end]) for start, end, id in mentions}:
            counted.setdefault(id, Counter())[name] += 1
    entities = []
    for record in _records(_PROJECT / "entities.jsonl"):
        own = counted.get(record["id"], Counter())
        # The title and redirects. (A redirect with a count is left out: this count is that of the
        # project's training part, and most names that have one are no redirects.)
        aliases = {name: 0.0 for name, n in record["aliases"].items() if not n}
        aliases[record["name"]] = 0.0
        kept = record["id"], record["name"], {**aliases, **own}, record["description"]
        entities.append(Entity(*kept, record["type"], float(own.total())))
    return LinkedSet("en", entities, tested, train)


LINKED_SETS: dict[str, Callable[..., LinkedSet]] = {
    "geovirus": geovirus,
    "emerson": emerson,
    "italian": italian,
    "hipe": hipe,
    "encyclopedia": encyclopedia,
}
OF_OTHER_FOLDS = ("italian", "hipe", "encyclopedia")
"""Sets whose names are counted in the training documents."""


def _records(path: Path) -> Iterator[dict]:
    with path.open(encoding="utf8") as file:
        yield from map(json.loads, file)


def invented(n: int, seed: int = 0) -> Iterator[Entity]:
    """Entities with three aliases each, of words whose frequencies fall as those of a language do:
    the name, its last word, and its initials with the last word."""
    rng = random.Random(seed)
    onsets = [
        "b",
        "d",
        "f",
        "g",
        "k",
        "l",
        "m",
        "n",
        "p",
        "r",
        "s",
        "t",
        "v",
        "br",
        "kl",
        "sh",
        "tr",
    ]
    syllables = [
        "".join(x) for x in product(onsets, ["a", "e", "i", "o", "u", "ai"], ["", "n", "r"])
    ]
    words = ["".join(rng.choices(syllables, k=rng.choice((2, 2, 3, 4)))) for _ in range(_N_WORDS)]
    for i in range(n):
        chosen = [words[int(_N_WORDS * rng.random() ** 3)] for _ in range(rng.choice((2, 2, 3)))]
        name = " ".join(chosen).title()
        last = chosen[-1].title()
        initials = " ".join(f"{x[0].upper()}." for x in chosen[:-1])
        aliases = dict.fromkeys((name, last, f"{initials} {last}"), NOT_GIVEN)
        yield Entity(f"E{i}", name, aliases, f"The thing number {i}.", "thing", float(n // (i + 1)))


def invented_vectors(n: int, width: int, seed: int = 0) -> Iterator[np.ndarray]:
    """Vectors of the entities, in blocks of rows."""
    rng = np.random.default_rng(seed)
    for start in range(0, n, _BLOCK):
        yield rng.standard_normal((min(_BLOCK, n - start), width), dtype=np.float32)


def misspelt(text: str, rng: random.Random) -> str:
    """One letter is another one."""
    at = rng.randrange(len(text))
    return text[:at] + rng.choice(_ALPHABET) + text[at + 1 :]
