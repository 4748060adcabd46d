"""Mentions with ids of public data sets, knowledge bases for them, and invented names."""

import json
import random
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple

from spacy_luke.kb.entity import NOT_GIVEN, Entity, Findings
from spacy_luke.kb.read_records import read_entities

_N_WORDS = 300_000
_ALPHABET = "abcdefghijklmnopqrstuvwxyz"


class LinkedMention(NamedTuple):
    """ids: of the entities that the mention means; empty if none of them is in the knowledge
    base."""

    text: str
    ids: frozenset[str]


def diseases(folder: Path, work: Path) -> tuple[list[Entity], dict[str, list[LinkedMention]]]:
    """The Disease Ontology, and the mentions of two parts of the NCBI disease corpus. A MeSH or
    OMIM id stands for all diseases that refer to it."""
    path = folder / "disease-ontology" / "kb.jsonl"
    by_reference: dict[str, set[str]] = {}
    for record in _records(path):
        references = [
            *record["mesh"],
            *(f"OMIM:{str(x).removeprefix('OMIM:')}" for x in record["omim"]),
        ]
        for reference in references:
            by_reference.setdefault(reference, set()).add(record["id"])
    parts = {}
    for part in ("develop", "train"):
        file = folder / "disease-linking" / f"NCBI{part}set_corpus.txt"
        mentions = []
        for line in file.read_text("utf8").split("\n"):
            fields = line.split("\t")
            if len(fields) == 6:  # document, start, end, text, type, ids
                ids = [x.strip() for x in fields[5].replace("+", "|").split("|")]
                known = frozenset().union(*(by_reference.get(x, ()) for x in ids))
                mentions.append(LinkedMention(fields[3], known))
        parts[f"NCBI {part}"] = mentions
    return list(read_entities(path, Findings())), parts


def places(folder: Path, work: Path) -> tuple[list[Entity], dict[str, list[LinkedMention]]]:
    """GeoNames entries, counted by population, and the places of GeoVirus."""
    path = work / "places.jsonl"
    with path.open("w", encoding="utf8") as file:
        for record in _records(folder / "geovirus-linking" / "kb.jsonl"):
            record["count"] = record.pop("population")
            file.write(json.dumps(record) + "\n")
    mentions = [
        LinkedMention(x["text"], frozenset([x["id"]] if x["id"] else []))
        for doc in _records(folder / "geovirus-linking" / "docs-a.jsonl")
        for x in doc["mentions"]
    ]
    return list(read_entities(path, Findings())), {"GeoVirus": mentions}


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


def misspelt(text: str, rng: random.Random) -> str:
    """One letter is another one."""
    at = rng.randrange(len(text))
    return text[:at] + rng.choice(_ALPHABET) + text[at + 1 :]
