"""Pretraining on a wiki, then links in articles that it did not see, by what was learned.

    python -m benchmarks.linking_chain --encoder DIR --data FOLDER --results results.jsonl
    python -m benchmarks.linking_chain --table --results results.jsonl

An encoder is pretrained on the articles of all folds but one of an Italian wiki, with the entities
that are linked there. Links of the other fold are then chosen by ``luke_linker`` without further
training. Aliases and their counts are those of the training articles.

Rows: ``prior``; ``titles, before`` (of pretraining) and ``titles``: vectors of titles; ``rows``:
with the entity rows and the masked-entity head as well; ``rows, full``: in the attention of
pretraining; ``rows alone``: in it, without prior and titles. Only *ambiguous* mentions count:
with several candidates, the right one among them.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from spacy.training.initialize import init_nlp

from . import results, runtime
from .datasets import default_folder
from .differences import gain
from .linking_data import LinkedDoc, LinkedSet
from .linking_training import N_FOLDS, ambiguous, config_of, prepare, scored, write_files
from .markdown import markdown, spread

KIND = "linking_chain"
SET = "italian"
BEFORE = "titles, before"
ROWS: dict[str, dict[str, Any]] = {
    BEFORE: {"rows": False},
    "titles": {"rows": False},
    "rows": {"rows": True},
    "rows, full": {"rows": True, "attention": "full"},
    "rows alone": {"rows": "only", "attention": "full"},
}


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    p = runtime.parser("linking_chain", __doc__, "build/chain", "linking_chain.jsonl")
    runtime.add_encoder(p)
    runtime.add_device(p)
    p.add_argument("--data", type=Path, default=default_folder(), help="folder of the data sets")
    p.add_argument("--folds", nargs="+", type=int, default=[0], help=f"0 to {N_FOLDS - 1}")
    p.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    p.add_argument("--entity-steps", type=int, default=50, help="of entity parameters alone")
    p.add_argument("--steps", type=int, default=700, help="of all parameters")
    p.add_argument("--batch-size", type=int, default=16, help="sequences of 256 pieces")
    p.add_argument("--table", action="store_true", help="print what the results hold")
    return runtime.parsed(p, argv)


def write_articles(docs: Sequence[LinkedDoc], path: Path) -> None:
    """Linked text for ``spacy luke articles``. The titles of these articles are not known here;
    those of what they link to are."""
    with path.open("w", encoding="utf8") as file:
        for number, doc in enumerate(docs):
            links = [{"start": a, "end": b, "target": title} for a, b, title in doc.mentions]
            record = {"title": f"Articolo n. {number}", "text": doc.text, "links": links}
            file.write(json.dumps(record) + "\n")


def pretrained(args: argparse.Namespace, data: LinkedSet, folder: Path, seed: int) -> Path:
    """The encoder of a fold and seed. A run that was interrupted goes on."""
    texts, articles, entities = folder / "texts.jsonl", folder / "articles", folder / "entities"
    if not texts.exists():
        folder.mkdir(parents=True, exist_ok=True)
        write_articles(data.train, texts)
    _luke("articles", texts, "--lang", data.lang, "--output", articles, "--workers", 1)
    _luke("entities", articles, "--min-count", 2, "--output", entities)
    cut = ("--encoder", args.encoder, "--max-pieces", 256, "--held-out", 0.02, "--workers", 1)
    _luke("shards", articles, "--entities", entities, *cut, "--output", folder / "shards")
    size = ("--batch-size", args.batch_size, "--micro-batch", args.batch_size)
    rates = ("--entity-rate", 1e-3, "--rate", 2e-4, "--warmup", 0.1, "--precision", "bf16")
    often = ("--masked-entities", 0.5, "--evaluate-every", 100, "--save-every", 100)
    steps = ("--entity-steps", args.entity_steps, "--steps", args.steps, "--seed", seed)
    model = folder / f"model-{args.steps}-{seed}"
    what = ("--entities", entities, "--encoder", args.encoder, "--output", model)
    _luke("pretrain", folder / "shards", *what, *size, *rates, *often, *steps)
    return model / "model"


def _luke(*command: Any) -> None:
    subprocess.run([sys.executable, "-m", "spacy", "luke", *map(str, command)], check=True)


def run(args: argparse.Namespace, named: results.Record) -> results.Record:
    fold, seed, row = named["settings"]["fold"], named["seed"], named["row"]
    data, folder = prepare(args, SET, fold)
    here = argparse.Namespace(**vars(args))
    if row != BEFORE:
        here.encoder = str(pretrained(args, data, args.work / f"pretrained-{fold}", seed))
        folder = args.work / f"vectors-{args.steps}-{seed}" / folder.name
        write_files(data, here.encoder, folder)
    here.set = [(f"components.luke_linker.model.{x}", json.dumps(y)) for x, y in ROWS[row].items()]
    config = config_of(here, "luke_linker", data.lang, folder, seed)
    nlp = init_nlp(config, use_gpu=args.gpu_id)
    return scored(nlp, list(ambiguous(nlp, data, folder, others=True)))


def table(records: Sequence[results.Record]) -> str:
    """Accuracy of each row, and how much it is above the prior and above titles, with an interval
    over articles."""
    lines = []
    for steps in sorted({x["settings"]["steps"] for x in records}):
        of_row: dict[str, dict[tuple[int, int], results.Record]] = {}
        for record in [x for x in records if x["settings"]["steps"] == steps]:
            key = record["settings"]["fold"], record["seed"]
            of_row.setdefault("prior", {})[key] = {**record, "right": record["prior"]}
            of_row.setdefault(record["row"], {})[key] = record
        for row, runs in of_row.items():
            n = sum(len(x["right"]) for x in {key[0]: x for key, x in runs.items()}.values())
            accuracies = [100 * float(np.mean(x["right"])) for x in runs.values()]
            line = {"steps": steps, "row": row, "mentions": n, "runs": len(runs)}
            line["accuracy"] = spread(accuracies)
            for other in ("prior", "titles"):
                line[f"above {other}"] = _difference(runs, of_row.get(other, {}))
            lines.append(line)
    return markdown(pd.DataFrame(lines))


def _difference(
    runs: dict[tuple[int, int], results.Record], others: dict[tuple[int, int], results.Record]
) -> str:
    both = sorted(set(runs) & set(others))
    right, theirs = ([x[key]["right"] for key in both] for x in (runs, others))
    if right == theirs:
        return "-"
    docs = [[x + 100_000 * key[0] for x in runs[key]["docs"]] for key in both]
    return gain(right, theirs, docs, scale=100)


def identities(args: argparse.Namespace) -> list[results.Record]:
    """The runs that were asked for."""
    shared = {
        "steps": args.steps,
        "entity_steps": args.entity_steps,
        "batch_size": args.batch_size,
        "encoder": Path(args.encoder).name,
    }
    return [
        results.identity(SET, row, seed, fold=fold, **shared)
        for fold, seed, row in product(args.folds, args.seeds, ROWS)
    ]


def main(argv: Sequence[str] | None = None) -> int:
    return results.main(parse(argv), KIND, identities, run, table)


if __name__ == "__main__":
    sys.exit(main())
