"""Links after training: ``configs/linker.cfg`` beside spaCy's ``entity_linker``, and no training.

    python -m benchmarks.linking_training --encoder DIR --data FOLDER --results results.jsonl
    python -m benchmarks.linking_training --table --results results.jsonl

Folds of a set are by article: mentions of one are tested, and the others are trained on. In a wiki
and HIPE they also give the counts of aliases. Both components have the same encoder, candidates (by
equal aliases), batches, steps and learning rate; the last weights count. ``entity_linker`` compares
its vector of a sentence with the entities' vectors, which the encoder made before training, and
trains the encoder; that of ``luke_linker`` is frozen, as in the config. Mentions that are "NIL" are
not linked in the training data of ``entity_linker``, which takes it for an entity.
``luke_linker, initialised`` is not trained; ``initialize`` learned its type biases.

Only *ambiguous* mentions count: with several candidates, the right one among them.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training.initialize import init_nlp
from spacy.util import filter_spans, load_config
from thinc.api import Config

from spacy_luke.kb.build import build_kb
from spacy_luke.kb.candidates import CandidateSettings
from spacy_luke.kb.entity import NIL, Findings
from spacy_luke.kb.knowledge_base import MappedKB
from spacy_luke.pipeline.entity_vectors import make_vectors

from . import results, runtime
from .datasets import default_folder, store
from .differences import gain
from .linking import make_encoder
from .linking_data import LINKED_SETS, LinkedDoc, LinkedSet
from .markdown import markdown, spread
from .training import CONFIGS, train_nlp

KIND = "linking_training"
UNLINKED = "train.without_nil.spacy"
N_FOLDS = 5
ROWS = ("luke_linker", "entity_linker")
BEFORE_TRAINING = {"untrained": "luke_linker, untrained", "initialised": "luke_linker, initialised"}
Array = np.ndarray


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    p = runtime.parser("linking_training", __doc__, "build/linking", "linking_training.jsonl")
    runtime.add_encoder(p)
    runtime.add_device(p)
    p.add_argument("--data", type=Path, default=default_folder(), help="folder of the data sets")
    p.add_argument("--sets", nargs="+", choices=list(LINKED_SETS), default=list(LINKED_SETS))
    p.add_argument("--folds", nargs="+", type=int, default=list(range(N_FOLDS)))
    p.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    p.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    p.add_argument("--set", nargs=2, action="append", default=[], metavar=("NAME", "JSON"))
    p.add_argument("--table", action="store_true", help="print what the results hold")
    p.add_argument("--by-fold", action="store_true", help="with --table, each fold for itself")
    return runtime.parsed(p, argv)


def prepare(args: argparse.Namespace, name: str, fold: int) -> tuple[LinkedSet, Path]:
    """The fold of a set, and the folder with its knowledge base and training data."""
    data: LinkedSet = LINKED_SETS[name](args.data, args.work, fold, N_FOLDS)
    folder = args.work / f"{name}-{fold}"
    write_files(data, args.encoder, folder)
    return data, folder


def write_files(data: LinkedSet, encoder: str, folder: Path) -> None:
    """The knowledge base, with vectors of the encoder, and the training data."""
    if not (folder / "train.spacy").exists():
        nlp = make_encoder(data.lang, encoder)
        build_kb(iter(data.entities), folder / "kb", data.lang, findings=Findings())
        kb = MappedKB.open(folder / "kb", nlp.vocab)
        make_vectors(nlp, kb)
        kb.to_disk(folder / "kb")
        docs = [annotated(nlp, doc, links=True) for doc in data.train]
        store_training(folder, docs, docs)


def store_training(folder: Path, train: Sequence[Doc], dev: Sequence[Doc]) -> None:
    """What the rows are trained on. ``entity_linker`` takes "NIL" for an entity, whose vector is
    zero, and so learns nothing from these mentions that helps: its data has them without a link."""
    store(folder / "dev.spacy", dev)
    store(folder / UNLINKED, map(without_nil, train))
    store(folder / "train.spacy", train)


def without_nil(doc: Doc) -> Doc:
    """A copy in which the mentions of no entity are not linked."""
    copy = doc.copy()
    ids = [(x, "" if x.kb_id_ == NIL else x.kb_id_) for x in doc.ents]
    copy.set_ents([Span(copy, x.start, x.end, x.label_, kb_id=y) for x, y in ids])
    return copy


def annotated(nlp: Language, linked: LinkedDoc, links: bool) -> Doc:
    """Mentions that share tokens: the longest. Its label is the same for all."""
    doc = nlp.make_doc(linked.text)
    spans = [
        doc.char_span(a, b, label="X", kb_id=kb_id if links else "", alignment_mode="expand")
        for a, b, kb_id in linked.mentions
    ]
    doc.set_ents(filter_spans([span for span in spans if span is not None and len(span)]))
    return doc


def config_of(
    args: argparse.Namespace, row: str, lang: str, folder: Path, seed: int, fuzzy: str = "never"
) -> Config:
    """The config of a row. folder: of the knowledge base and the training data. fuzzy: whether
    candidates may have similar aliases (``spacy-luke.alias_candidates.v1``)."""
    overrides = {
        "paths.train": str(folder / (UNLINKED if row == "entity_linker" else "train.spacy")),
        "paths.dev": str(folder / "dev.spacy"),
        "paths.kb": str(folder / "kb"),
        "paths.encoder": args.encoder,
        "system.seed": seed,
        "nlp.lang": lang,
        **{name: json.loads(text) for name, text in args.set},
    }
    config = load_config(CONFIGS / "linker.cfg", overrides=overrides)
    # The last weights count.
    config["corpora"]["dev"]["limit"] = 2
    config["training"]["eval_frequency"] = 1_000_000
    block = config["components"]["luke_linker"]
    block["get_candidates_batch"]["fuzzy"] = fuzzy
    if row == "entity_linker":
        config["components"]["luke_linker"] = {
            "factory": "entity_linker",
            "model": {
                "@architectures": "spacy.EntityLinker.v2",
                "tok2vec": {**block["model"]["encoder"], "learn_rate_factor": 1.0},
            },
            "get_candidates": {"@misc": "spacy-luke.alias_candidates.v1", "fuzzy": fuzzy},
            "generate_empty_kb": block["generate_empty_kb"],
        }
    return config


def run(args: argparse.Namespace, named: results.Record) -> results.Record:
    row, fold = named["row"], named["settings"]["fold"]
    data, folder = prepare(args, named["data"], fold)
    nlp = init_nlp(config_of(args, row, data.lang, folder, named["seed"]), use_gpu=args.gpu_id)
    model = nlp.get_pipe_config("luke_linker")["model"]
    sees_others = model.get("attention") == "full"
    tested = list(ambiguous(nlp, data, folder, others=sees_others))
    found: dict[str, Any] = {}
    if row == "luke_linker":
        linker: Any = nlp.get_pipe("luke_linker")
        learned, linker.type_bias = linker.type_bias, {}
        found["untrained"] = found["initialised"] = rights(nlp, tested)
        if learned:
            linker.type_bias = learned
            found["initialised"] = rights(nlp, tested)
    trained = train_nlp(nlp, args.gpu_id)
    return {**trained, **found, **scored(nlp, tested)}


class TestedDoc(NamedTuple):
    """A document with mentions without links. number: of the document; right: (start, end) -> id
    of the ambiguous ones; prior: for each of these, whether the most probable candidate is
    right."""

    doc: Doc
    number: int
    right: dict[tuple[int, int], str]
    prior: list[bool]


def ambiguous(
    nlp: Language, data: LinkedSet, folder: Path, others: bool = False
) -> Iterator[TestedDoc]:
    """The documents with ambiguous mentions. others: whether the other mentions stay; neither
    linker looks at them, but with ``full`` attention."""
    kb = MappedKB.open(folder / "kb", nlp.vocab)
    settings = CandidateSettings(fuzzy="never")
    for number, linked in enumerate(data.docs):
        doc = annotated(nlp, linked, links=False)
        gold = {(a, b): kb_id for a, b, kb_id in linked.mentions}
        right, prior = {}, []
        for ent, candidates in zip(doc.ents, kb.candidates([x.text for x in doc.ents], settings)):
            kb_id, ids = gold.get((ent.start_char, ent.end_char)), [x.id for x in candidates]
            if len(ids) > 1 and kb_id in ids:
                right[ent.start, ent.end] = kb_id
                prior.append(ids[0] == kb_id)
        if not others:
            doc.set_ents([x for x in doc.ents if (x.start, x.end) in right])
        if right:
            yield TestedDoc(doc, number, right, prior)


def rights(nlp: Language, tested: Sequence[TestedDoc]) -> list[bool]:
    """For each ambiguous mention whether its link is right."""
    predicted = nlp.pipe([x.doc.copy() for x in tested])
    return [
        ent.kb_id_ == of_doc.right[ent.start, ent.end]
        for doc, of_doc in zip(predicted, tested)
        for ent in doc.ents
        if (ent.start, ent.end) in of_doc.right
    ]


def scored(nlp: Language, tested: Sequence[TestedDoc]) -> results.Record:
    """Of each ambiguous mention: whether its link is right, whether its most probable candidate is,
    and the number of its document."""
    return {
        "right": rights(nlp, tested),
        "prior": [x for doc in tested for x in doc.prior],
        "docs": [doc.number for doc in tested for _ in doc.right],
    }


def set_of(record: results.Record) -> list[str]:
    """What was set, but for the length of the training."""
    return [
        f"{name.removeprefix('components.luke_linker.')} {text}"
        for name, text in record["settings"]["set"]
        if not name.startswith("initialize.after_init.")
    ]


def set_name(record: results.Record, by_fold: bool) -> str:
    """The data, what was set and, if asked for, the fold."""
    fold = [f"fold {record['settings']['fold']}"] if by_fold else []
    return ", ".join([record["data"], *fold, *set_of(record)])


def table(
    records: Sequence[results.Record],
    by_fold: bool = False,
    folds: Sequence[int] = tuple(range(N_FOLDS)),
) -> str:
    """Accuracy over all folds: mean and standard deviation of seeds, or the mean alone if some
    seeds were not run on all of them; and the mean difference to luke_linker, with an interval over
    documents. Runs with other settings (``--set``) are another set, and so is each fold if
    ``by_fold``. If settings of the component are among them, the last row is the config's. Other
    folds than ``folds`` are left out."""
    lines = []
    records = [x for x in records if x["settings"]["fold"] in folds]
    names = [set_name(x, by_fold) for x in records]
    for name in dict.fromkeys(names):
        of_set = [x for x, other in zip(records, names) if other == name]
        columns: dict[str, dict[tuple[int, int], Array]] = {}
        docs: dict[int, Array] = {}
        for record in of_set:
            key = record["settings"]["fold"], record["seed"]
            docs[key[0]] = np.asarray(record["docs"])
            columns.setdefault("prior", {})[key] = np.asarray(record["prior"])
            columns.setdefault(f"{record['row']}, trained", {})[key] = np.asarray(record["right"])
            for when, shown in BEFORE_TRAINING.items():
                if when in record:
                    columns.setdefault(shown, {})[key] = np.asarray(record[when])
        ours = columns.get("luke_linker, trained", {})
        of_data = [x for x in of_set[0]["settings"]["set"] if not x[0].startswith("components.")]
        shipped = {
            key: np.asarray(record["right"])
            for record in records
            if record["row"] == "luke_linker" and record["settings"]["set"] == of_data
            if record["data"] == of_set[0]["data"] and record not in of_set
            if (key := (record["settings"]["fold"], record["seed"])) in ours
        }
        if shipped:
            columns["luke_linker, trained by the config"] = shipped
        for row, runs in columns.items():
            both = sorted(set(runs) & set(ours))
            better = "-"
            if row != "luke_linker, trained" and both:
                right, theirs = ([x[key] for key in both] for x in (ours, runs))
                of_doc = [docs[fold] + 100_000 * fold for fold, _ in both]
                better = gain(right, theirs, of_doc, scale=100)
            seeds: dict[int, list[int]] = {}
            for fold, seed in sorted(runs):
                seeds.setdefault(fold, []).append(seed)
            n_seeds = sorted({len(x) for x in seeds.values()})
            lines.append(
                {
                    "set": name,
                    "folds": len(seeds),
                    "mentions": sum(len(docs[fold]) for fold in seeds),
                    "row": row,
                    "seeds": " to ".join(map(str, dict.fromkeys((n_seeds[0], n_seeds[-1])))),
                    "accuracy": _accuracy(runs, seeds),
                    "trained luke_linker is better by": better,
                }
            )
    return markdown(pd.DataFrame(lines))


def _accuracy(runs: dict[tuple[int, int], Array], seeds: dict[int, list[int]]) -> str:
    """Of all mentions. seeds: of each fold."""
    some, *others = seeds.values()
    if all(x == some for x in others):
        right = [np.concatenate([runs[fold, seed] for fold in seeds]) for seed in some]
        return spread([100 * x.mean() for x in right])
    of_fold = [np.mean([runs[fold, seed] for seed in own], 0) for fold, own in seeds.items()]
    return spread([100 * np.concatenate(of_fold).mean()])


def identities(args: argparse.Namespace) -> list[results.Record]:
    """The runs that were asked for."""
    shared = {"encoder": Path(args.encoder).name, "set": args.set}
    return [
        results.identity(name, row, seed, fold=fold, **shared)
        for seed, name, fold, row in product(args.seeds, args.sets, args.folds, args.rows)
    ]


def main(argv: Sequence[str] | None = None) -> int:
    args = parse(argv)
    return results.main(
        args, KIND, identities, run, partial(table, by_fold=args.by_fold, folds=args.folds)
    )


if __name__ == "__main__":
    sys.exit(main())
