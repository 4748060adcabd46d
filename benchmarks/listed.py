"""A list of names and NER: the model alone, the list before or after it, and as its input.

    python -m benchmarks.listed --encoder DIR --sets diseases --sizes 100 1000 --results FILE
    python -m benchmarks.listed --table --results FILE

``diseases``: sentences of BC5CDR's training abstracts, entities ``Disease`` alone, and the names of
the Disease Ontology. ``places``: CrossNER politics, and the places of ``geovirus-linking``. Test
are two thirds of BC5CDR's development abstracts, or the test sentences of CrossNER. ``german``:
GermEval, and the texts of links of an Italian wiki, which says nothing of their labels: a list
before or after the model gives them the most frequent label of listed names in the training data.
``encyclopedia``: the project's documents (``spacy project run prepare .`` and ``kb``; sizes are of
documents), and the names of its articles, whose titles are ids; ``--encoder`` may have rows of them
(``spacy project run pretrain .``).

Rows: ``model``: ``configs/ner.cfg``. ``names, model`` and ``model, names``: the same weights, with
the entities of the list before or after it. ``names alone``. ``known``: trained with the list as
input (setting ``known``); its names, or those of its most frequent label, are then removed. All
have the same data, steps and seeds, and the last weights count.

Lists: ``full``; ``half``: of the names a random half in training, all at prediction; ``shuffled``:
with labels drawn from those of the data; ``ordinary``: 5,000 frequent words of the training data
that are no entities; ``annotations``: the entities of the training data; ``ids`` and ``labels``:
without labels, and without ids.
"""

import argparse
import random
import sys
from collections import Counter
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import spacy
import srsly
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import load_config

from spacy_luke.pipeline.thresholds import Goal
from spacy_luke.pipeline.tuning import tune

from . import results, runtime
from .bootstrap import Counts, count, paired_bootstrap
from .datasets import default_folder, load
from .markdown import markdown, spread
from .name_lists import LISTS, SOURCES, Names, as_annotated, data_of, names_of, unannotated
from .training import CONFIGS, fit

KIND = "listed"
MODEL = "model"
BASELINES = (MODEL, "names alone", "names, model", "model, names")
DEV_DOCS = 4  # the last weights count
DEV_SENTENCES = 800  # that models are tuned on

Items = list[list[Any]]


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    p = runtime.parser("listed", __doc__, "build/listed", "listed.jsonl")
    runtime.add_encoder(p)
    runtime.add_device(p)
    p.add_argument("--data", type=Path, default=default_folder(), help="folder of the corpora")
    p.add_argument("--sets", nargs="+", choices=list(SOURCES), default=list(SOURCES)[:3])
    p.add_argument("--lists", nargs="+", choices=LISTS, default=["full"])
    p.add_argument("--sizes", nargs="+", type=int, default=[100, 300, 1000], help="0: all")
    p.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    p.add_argument("--words", type=int, default=350_000, help="least words seen in training")
    p.add_argument("--tune", action="store_true", help="also tune every model, on the same data")
    p.add_argument("--table", action="store_true", help="print what the results hold")
    return runtime.parsed(p, argv)


def fit_row(
    args: argparse.Namespace, paths: dict[str, Path], lang: str, seed: int, names: Names | None
) -> tuple[Language, results.Record]:
    overrides = {
        "nlp.lang": lang,
        "paths.train": str(paths["train"]),
        "paths.dev": str(paths["dev"]),
        "paths.encoder": args.encoder,
        "system.seed": seed,
        "initialize.after_init.words": args.words,
    }
    config = load_config(CONFIGS / "ner.cfg", overrides=overrides)
    config["corpora"]["dev"]["limit"] = DEV_DOCS
    if names is not None:
        file = args.work / "names.jsonl"
        srsly.write_jsonl(file, names)
        config["nlp"]["pipeline"] = ["sentencizer", "known_names", "luke_ner"]
        config["components"]["known_names"] = {"factory": "known_names"}
        config["components"]["luke_ner"]["known"] = "known_names"
        config["initialize"]["components"]["known_names"] = {"names_path": str(file)}
        config["training"]["annotating_components"].append("known_names")
    nlp, found = fit(config, args.gpu_id)
    if args.tune:
        golds = load(paths["dev"])[:DEV_SENTENCES]
        examples = [Example(doc, gold) for doc, gold in zip(unannotated(nlp, golds), golds)]
        (tuned,) = tune(nlp, examples, Goal())
        found["tuned"] = tuned.settings
    return nlp, found


def predicted(nlp: Language, docs: Sequence[Doc]) -> Items:
    """(document, start, end, label) of every entity."""
    return items(list(nlp.pipe(unannotated(nlp, docs))))


def items(docs: Sequence[Doc]) -> Items:
    return [[i, x.start, x.end, x.label_] for i, doc in enumerate(docs) for x in doc.ents]


def add_names(nlp: Language, names: Names, **place: Any) -> Any:
    pipe: Any = nlp.add_pipe("known_names", config={"annotate_ents": True}, **place)
    pipe.set_names(names)
    return pipe


def baselines(
    args: argparse.Namespace,
    paths: dict[str, Path],
    lang: str,
    seed: int,
    names: Names,
    test: Sequence[Doc],
) -> results.Record:
    """The rows of one trained model."""
    nlp, found = fit_row(args, paths, lang, seed, None)
    found["model"] = predicted(nlp, test)
    add_names(nlp, names)
    found["model, names"] = predicted(nlp, test)
    nlp.remove_pipe("known_names")
    ner: Any = nlp.get_pipe("luke_ner")
    ner.overwrite = False
    add_names(nlp, names, before="luke_ner")
    found["names, model"] = predicted(nlp, test)
    alone = spacy.blank(lang)
    add_names(alone, names)
    found["names alone"] = predicted(alone, test)
    return found


def with_list(
    args: argparse.Namespace,
    paths: dict[str, Path],
    lang: str,
    seed: int,
    names: Names,
    which: str,
    test: Sequence[Doc],
) -> results.Record:
    """The row whose input is the list."""
    seen = random.Random(seed).sample(names, len(names) // 2) if which == "half" else names
    nlp, found = fit_row(args, paths, lang, seed, seen)
    if which == "half":
        found["known, half of the names"] = predicted(nlp, test)
        nlp.get_pipe("known_names").set_names(names)  # type: ignore[attr-defined]
    found["known"] = predicted(nlp, test)
    ((label, _),) = Counter(x["label"] for x in names).most_common(1)
    rest = [x for x in names if x["label"] != label]
    fewer = {f"known, without names of {label}": rest} if rest else {}
    for row, kept in {**fewer, "known, without names": []}.items():
        nlp.get_pipe("known_names").set_names(kept)  # type: ignore[attr-defined]
        found[row] = predicted(nlp, test)
    return found


def run(args: argparse.Namespace, named: results.Record) -> results.Record:
    name, which, seed = named["data"], named["row"], named["seed"]
    paths, lang = data_of(args, name, named["settings"]["size"]), SOURCES[name].lang
    train_docs, test = load(paths["train"]), load(paths["test"])
    if which == "none":
        names = names_of(args, name, "full", train_docs)
        names = as_annotated(names, train_docs, SOURCES[name])
        found = baselines(args, paths, lang, seed, names, test)
    else:
        names = names_of(args, name, which, train_docs)
        found = with_list(args, paths, lang, seed, names, which, test)
    return {**found, "gold": items(test), "n_docs": len(test)}


def f1(record: results.Record, row: str) -> float:
    right = {tuple(x) for x in record["gold"]}
    found = {tuple(x) for x in record[row]}
    return 200.0 * len(right & found) / max(1, len(right) + len(found))


Runs = dict[int, results.Record]


def table(records: Sequence[results.Record]) -> str:
    """F1 of every row, how much it is above the model without a list, and how much the row with
    the list as input is above it."""
    groups: dict[tuple[str, int, bool], dict[tuple[str, str], Runs]] = {}
    for record in records:
        rows = [x for x in record if x in BASELINES or x.startswith("known")]
        for row in rows:
            settings = record["settings"]
            key = (record["data"], settings["size"], settings["tune"])
            of_row = groups.setdefault(key, {})
            of_row.setdefault((row, record["row"]), {})[record["seed"]] = record
    lines = []
    for (data, size, tuned), of_row in sorted(groups.items()):
        ours, model = of_row.get(("known", "full"), {}), of_row.get((MODEL, "none"), {})
        for (row, which), runs in of_row.items():
            lines.append(
                {
                    "data": data,
                    "sentences": f"{size:,}" if size else "all",
                    "tuned": "yes" if tuned else "no",
                    "list": {"none": "full"}.get(which, which),
                    "row": row,
                    "seeds": len(runs),
                    "F1": spread([f1(x, row) for x in runs.values()]),
                    "over the model": "-" if row == MODEL else _gain(runs, row, model, MODEL),
                    "known is higher by": _gain(ours, "known", runs, row)
                    if row in BASELINES
                    else "-",
                }
            )
    return markdown(pd.DataFrame(lines))


def _gain(runs: Runs, row: str, others: Runs, other: str) -> str:
    """Of a row over another one, with the seeds that both have."""
    seeds = sorted(set(runs) & set(others))
    if not seeds:
        return "-"
    return str(paired_bootstrap(_counts(others, seeds, other), _counts(runs, seeds, row)))


def _counts(runs: Runs, seeds: Sequence[int], row: str) -> Counts:
    first = runs[seeds[0]]
    found = [[tuple(x) for x in runs[seed][row]] for seed in seeds]
    return count(found, [tuple(x) for x in first["gold"]], first["n_docs"])


def identities(args: argparse.Namespace) -> list[results.Record]:
    """The runs that were asked for."""
    lists = ("none", *args.lists)
    return [
        results.identity(name, which, seed, size=size, words=args.words, tune=args.tune)
        for seed, name, size, which in product(args.seeds, args.sets, args.sizes, lists)
    ]


def main(argv: Sequence[str] | None = None) -> int:
    return results.main(parse(argv), KIND, identities, run, table)


if __name__ == "__main__":
    sys.exit(main())
