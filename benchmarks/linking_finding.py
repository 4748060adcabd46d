"""Finding entities whose names are written differently: ``luke_linker`` on diseases.

    python -m benchmarks.linking_finding --encoder DIR --data FOLDER --results results.jsonl
    python -m benchmarks.linking_finding --table --results results.jsonl

The knowledge base is the Disease Ontology, the mentions are those of the development parts of the
NCBI disease corpus and of BC5CDR; mentions without an entity are "NIL". Rows:

- ``exact``, ``equal``, ``similar``: the first candidate by aliases that are equal as written, also
  when normalised, also similar; "NIL" if there is none. ``exact`` are the candidates of spaCy's
  ``InMemoryLookupKB``;
- ``untrained, aliases``, ``untrained``: ``luke_linker``, with candidates by aliases, and also by
  the nearest vectors of names;
- ``trained``: the latter after four fifths of the training part;
- ``entity_linker``: spaCy's, on the same encoder, steps and candidates by aliases, trained.

Rows ``tuned`` are the same with the settings that ``spacy luke tune`` chooses on the other fifth of
the training part.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import filter_spans

from spacy_luke.kb.build import build_kb
from spacy_luke.kb.candidates import CandidateSettings
from spacy_luke.kb.entity import NIL, Findings
from spacy_luke.kb.knowledge_base import MappedKB
from spacy_luke.pipeline.entity_vectors import make_name_vectors, make_vectors
from spacy_luke.pipeline.thresholds import Goal
from spacy_luke.pipeline.tuning import tune

from . import results, runtime
from .datasets import default_folder
from .differences import gain
from .linking_data import disease_abstracts, disease_entities
from .linking_training import config_of, store_training
from .markdown import markdown, spread
from .training import fit

KIND = "linking_finding"
SETS = ("NCBI", "BC5CDR")
RULES = ("exact", "equal", "similar")
UNTRAINED = ("untrained, aliases", "untrained")
TRAINED = {"trained": "luke_linker", "entity_linker": "entity_linker"}
ROWS = (*RULES, *UNTRAINED, *TRAINED)
Gold = dict[tuple[int, int], frozenset[str]]
LinkedGold = tuple[Doc, Gold]
"""A document with mentions, and the ids that each means: none if it is "NIL"."""


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    p = runtime.parser("linking_finding", __doc__, "build/finding", "linking_finding.jsonl")
    runtime.add_encoder(p)
    runtime.add_device(p)
    p.add_argument("--data", type=Path, default=default_folder(), help="folder of the data sets")
    p.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    p.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    p.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2], help="of training")
    p.add_argument("--words", type=int, default=150_000, help="least words seen in training")
    p.add_argument("--table", action="store_true", help="print what the results hold")
    return runtime.parsed(p, argv)


def make_linker(args: argparse.Namespace) -> Language:
    """A pipeline with a linker, whose knowledge base has vectors of entities and names."""
    nlp = spacy.blank("en")
    encoder = {"@architectures": "spacy-luke.LukeEncoder.v1", "name": args.encoder}
    linker: Any = nlp.add_pipe("luke_linker", config={"model": {"encoder": encoder}})
    folder = args.work / "kb"
    made = folder.exists()
    if not made:
        build_kb(iter(disease_entities(args.data)), folder, "en", findings=Findings())
    linker.set_kb(lambda vocab: MappedKB.open(folder, vocab))
    nlp.initialize()
    if not made:
        make_vectors(nlp, linker.kb, half=True)
        make_name_vectors(nlp, linker.kb, half=True)
        linker.kb.to_disk(folder)
    return nlp


def read_docs(nlp: Language, folder: Path, name: str, part: str) -> list[LinkedGold]:
    """The abstracts of a part; of mentions that share tokens the longest."""
    found = []
    for text, mentions in disease_abstracts(folder, name, part):
        doc, gold = nlp.make_doc(text), {}
        spans = []
        for start, end, ids in mentions:
            span = doc.char_span(start, end, label="DISEASE", alignment_mode="expand")
            assert span is not None
            gold[span.start, span.end] = ids
            spans.append(span)
        doc.set_ents(filter_spans(spans))
        found.append((doc, gold))
    return found


def annotated(doc: Doc, gold: Gold) -> Doc:
    """The document with links. Of several ids of a mention the first is learned."""
    ids = {x: min(gold[x.start, x.end], default=NIL) for x in doc.ents}
    linked = doc.copy()
    linked.set_ents([Span(linked, x.start, x.end, x.label_, kb_id=y) for x, y in ids.items()])
    return linked


def split(docs: Sequence[LinkedGold]) -> tuple[list[LinkedGold], list[LinkedGold]]:
    """Four fifths to train on, and the other to tune on."""
    return [x for i, x in enumerate(docs) if i % 5], [x for i, x in enumerate(docs) if i % 5 == 0]


def train(args: argparse.Namespace, name: str, row: str, seed: int) -> Language:
    nlp = make_linker(args)
    folder = args.work / name
    train_docs, held_out = split(read_docs(nlp, args.data, name, "train"))
    store_training(folder, *([annotated(*x) for x in docs] for docs in (train_docs, held_out)))
    here = argparse.Namespace(**vars(args))
    here.set = [
        ("initialize.after_init.words", str(args.words)),
        ("paths.kb", json.dumps(str(args.work / "kb"))),
    ]
    config = config_of(here, TRAINED[row], "en", folder, seed, fuzzy="fallback")
    return fit(config, args.gpu_id)[0]


def run(args: argparse.Namespace, named: results.Record) -> results.Record:
    row, name = named["row"], named["data"]
    nlp = train(args, name, row, named["seed"]) if row in TRAINED else make_linker(args)
    docs = read_docs(nlp, args.data, name, "develop")
    linker: Any = nlp.get_pipe("luke_linker")  # so named in each row
    if row in RULES:
        return {"outcome": by_rule(linker.kb, docs, row)}
    if row == "untrained, aliases":
        linker.kb.tables.name_vectors = None
    found = {"outcome": predicted(nlp, docs)}
    if row != "entity_linker":
        held_out = split(read_docs(nlp, args.data, name, "train"))[1]
        examples = [Example(doc.copy(), annotated(doc, gold)) for doc, gold in held_out]
        (tuned,) = tune(nlp, examples, Goal(), ["luke_linker"])
        found["tuned"] = {**predicted(nlp, docs), "chosen": tuned.settings["nil_bias"]}
    return found


def by_rule(kb: MappedKB, docs: Sequence[LinkedGold], row: str) -> results.Record:
    settings = CandidateSettings(fuzzy="fallback" if row == "similar" else "never")
    matches = ("exact",) if row == "exact" else ("exact", "normalised", "fuzzy")

    def links(doc: Doc) -> list[list[str]]:
        found = kb.candidates([ent.text for ent in doc.ents], settings)
        return [[x.id for x in own if x.match in matches] for own in found]

    start = time.perf_counter()
    candidates = [links(doc) for doc, _ in docs]
    seconds = time.perf_counter() - start
    first = [[(own or [NIL])[0] for own in of_doc] for of_doc in candidates]
    return outcome(docs, first, candidates, seconds)


def predicted(nlp: Language, docs: Sequence[LinkedGold]) -> results.Record:
    start = time.perf_counter()
    linked = list(nlp.pipe([doc.copy() for doc, _ in docs]))
    seconds = time.perf_counter() - start
    links = [[ent.kb_id_ for ent in doc.ents] for doc in linked]
    candidates = [[[x for x, _ in ent._.candidates or ()] for ent in doc.ents] for doc in linked]
    return outcome(docs, links, candidates, seconds)


def outcome(
    docs: Sequence[LinkedGold],
    links: Sequence[Sequence[str]],
    candidates: Sequence[Sequence[Sequence[str]]],
    seconds: float,
) -> results.Record:
    """Of each mention whether it has an entity, whether the link or "NIL" is right, whether it is
    "NIL", whether one of the first 30 candidates is right, and the number of its document."""
    rows = []
    for number, ((doc, gold), own, found) in enumerate(zip(docs, links, candidates, strict=True)):
        for ent, link, ids in zip(doc.ents, own, found, strict=True):
            right = gold[ent.start, ent.end]
            is_right = link in right if right else link == NIL
            among = bool(right & set(ids[:30]))
            rows.append((bool(right), is_right, link == NIL, among, number))
    names = ("has_id", "right", "nil", "among", "docs")
    columns = np.asarray(rows).astype(int).reshape(-1, len(names)).T.tolist()
    return {"seconds": seconds, **dict(zip(names, columns, strict=True))}


def table(records: Sequence[results.Record]) -> str:
    """Means of seeds; of right links also the standard deviation. The last columns are differences
    of all mentions that are right, and of those that have an entity, with intervals over
    documents."""
    lines = []
    for name in dict.fromkeys(x["data"] for x in records):
        of_row: dict[str, dict[int, results.Record]] = {}
        for record in [x for x in records if x["data"] == name]:
            for key, shown in (("outcome", record["row"]), ("tuned", f"{record['row']}, tuned")):
                if key in record:
                    of_row.setdefault(shown, {})[record["seed"]] = record[key]
        ours = of_row.get("trained, tuned", {})
        for row, runs in of_row.items():
            figures = [_figures(x) for x in runs.values()]
            mean = pd.DataFrame(figures).mean()
            some = next(iter(runs.values()))
            lines.append(
                {
                    "set": f"{name} ({sum(some['has_id'])} + {some['has_id'].count(0)})",
                    "row": row,
                    "seeds": len(runs),
                    "links P / R": f"{mean['p']:.1f} / {mean['r']:.1f}",
                    "F": spread([x["f"] for x in figures]),
                    "recall at 30": f"{mean['among']:.1f}" if mean["among"] else "-",
                    '"NIL" P / R': f"{mean['nil_p']:.1f} / {mean['nil_r']:.1f}",
                    "all right": spread([x["all"] for x in figures]),
                    "ms": f"{mean['ms']:.1f}",
                    "trained and tuned is better by": _difference(ours, runs),
                    "with an entity by": _difference(ours, runs, linked=True),
                }
            )
    return markdown(pd.DataFrame(lines))


def _figures(one: results.Record) -> dict[str, float]:
    has_id, right, nil, among = (np.asarray(one[x]) for x in ("has_id", "right", "nil", "among"))
    n_right = int(right[nil == 0].sum())
    p, r = n_right / max(int((nil == 0).sum()), 1), n_right / int(has_id.sum())
    return {
        "p": 100 * p,
        "r": 100 * r,
        "f": 200 * p * r / max(p + r, 1e-9),
        "all": 100 * float(right.mean()),
        "among": 100 * float(among[has_id == 1].mean()),
        "nil_p": 100 * float(right[nil == 1].mean()) if nil.any() else float("nan"),
        "nil_r": 100 * float(nil[has_id == 0].mean()),
        "ms": 1000 * one["seconds"] / len(right),
    }


def _difference(
    ours: dict[int, results.Record], runs: dict[int, results.Record], linked: bool = False
) -> str:
    """Rows without training are the same for every seed. linked: of mentions with an entity."""
    if not ours or runs is ours:
        return "-"
    theirs = [runs.get(seed, runs[min(runs)]) for seed in ours]

    def column(name: str, found: Iterable[results.Record]) -> list[list[int]]:
        return [[y for y, z in zip(x[name], x["has_id"]) if z or not linked] for x in found]

    right, others = (column("right", x) for x in (ours.values(), theirs))
    return gain(right, others, column("docs", ours.values()), scale=100)


def identities(args: argparse.Namespace) -> list[results.Record]:
    """The runs that were asked for."""
    encoder = Path(args.encoder).name
    return [
        results.identity(
            name, row, seed, encoder=encoder, **({"words": args.words} if row in TRAINED else {})
        )
        for row, name, seed in product(args.rows, args.sets, args.seeds)
        if row in TRAINED or seed == min(args.seeds)
    ]


def main(argv: Sequence[str] | None = None) -> int:
    return results.main(parse(argv), KIND, identities, run, table)


if __name__ == "__main__":
    sys.exit(main())
