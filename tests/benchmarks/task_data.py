"""Toy corpora in the published formats, where the benchmarks look for them."""

import json
from pathlib import Path

SEMEVAL = [
    ("<e1>Ada Lovelace</e1> was born in <e2>London</e2>.", "Entity-Origin(e1,e2)"),
    ("<e1>London</e1> is where <e2>Ada Lovelace</e2> was born.", "Entity-Origin(e2,e1)"),
    ("<e1>Tokyo</e1> is the capital of <e2>Japan</e2>.", "Component-Whole(e1,e2)"),
    ("<e1>Kyoto</e1> disagreed with non<e2>-France</e2>.", "Other"),
]
TEXT = "Ada was born in London . London is in France ."
TAGS = "Ada/B-person was/O born/O in/O London/B-place ,/O Tokyo/B-place met/O Beyoncé/B-person"


def write_semeval(folder: Path, copies: int) -> None:
    """The toy sentences ``copies`` times as training data, twice as test data."""
    target = folder / "semeval2010-task8"
    target.mkdir(parents=True, exist_ok=True)
    for name, times in (("TRAIN_FILE.TXT", copies), ("TEST_FILE_FULL.TXT", 2)):
        lines = [
            f'{i}\t"{text}"\n{relation}\nComment:\n'
            for i, (text, relation) in enumerate(SEMEVAL * times)
        ]
        (target / name).write_text("\n".join(lines), encoding="utf8")


def write_redocred(folder: Path, n_docs: int) -> None:
    """Documents of two sentences: London has two mentions."""
    mentions = [[(0, 0, 1)], [(0, 4, 5), (1, 0, 1)], [(1, 3, 4)]]
    record = {
        "title": "Ada",
        "sents": [TEXT.split()[:6], TEXT.split()[6:]],
        "vertexSet": [
            [{"sent_id": s, "pos": [a, b], "type": "X", "name": ""} for s, a, b in entity]
            for entity in mentions
        ],
        "labels": [{"h": 0, "t": 1, "r": "P19"}, {"h": 1, "t": 2, "r": "P17"}],
    }
    path = folder / "redocred" / "dev_revised.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([record] * n_docs), encoding="utf8")


def write_crossner(folder: Path, domain: str) -> None:
    text = TAGS.replace(" ", "\n").replace("/", "\t")
    target = folder / "crossner" / domain
    target.mkdir(parents=True, exist_ok=True)
    for part in ("train", "dev", "test"):
        (target / f"{part}.txt").write_text("\n\n".join([text] * 6) + "\n", encoding="utf8")


def write_crossre(folder: Path, domain: str) -> None:
    """One sentence a part, named in its last word."""
    for part in ("train", "dev", "test"):
        record = {
            "doc_key": part,
            "sentence": ["Ada", "saw", "the", "old", "town", "hall", "of", part],
            "ner": [[0, 0, "person"], [3, 5, "building"], [7, 7, "place"]],
            "relations": [
                [3, 5, 7, 7, "in", "", False, False],
                [0, 0, 3, 5, "saw", "", False, False],
            ],
        }
        path = folder / "crossre" / f"{domain}-{part}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(record) + "\n", encoding="utf8")
