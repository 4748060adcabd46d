"""spaCy's defaults against the shipped recipe: ``spacy init config``, and a loop of ten lines.

    python -m benchmarks.defaults --encoder DIR --results results.jsonl
    python -m benchmarks.defaults --table --results results.jsonl

``init-config`` is what ``spacy init config --pipeline luke_ner`` writes, with paths, encoder, word
shapes and ``max_steps`` filled in; ``loop`` is the one in docs/luke_ner.md, for as many steps;
``shipped`` is configs/ner.cfg with paths alone. The first has spaCy's constant rate of 0.001, the
loop a falling one. Of a config the best weights by development data count, of the loop the last.
Finished runs are skipped when started again.
"""

import argparse
import random
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import spacy
from spacy.cli.init_config import init_config
from spacy.language import Language
from spacy.training import Corpus
from spacy.util import fix_random_seed
from thinc.api import Config

from . import results, runtime
from .datasets import DATA_SETS, Corpora, default_folder, prepare
from .markdown import markdown, spread
from .shipped import SHIPPED
from .training import fit_best

KIND = "defaults"
ROWS = ("shipped", "init-config", "loop")
SHAPES = "components.luke_ner.model.encoder.word_shapes"


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    p = runtime.parser("defaults", __doc__, "build/defaults", "results.jsonl")
    runtime.add_encoder(p)
    runtime.add_device(p)
    p.add_argument("--data", type=Path, default=default_folder(), help="folder of the corpora")
    p.add_argument("--sets", nargs="+", choices=list(DATA_SETS), default=["wnut17", "politics"])
    p.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    p.add_argument("--seeds", nargs="+", type=int, default=[0])
    p.add_argument("--steps", type=int, default=1500, help="of init-config and the loop")
    p.add_argument("--limit", type=int, default=0, help="documents of each file, 0 for all")
    p.add_argument("--table", action="store_true", help="print what the results hold")
    return runtime.parsed(p, argv)


def config_of(data: str, row: str, corpora: Corpora, encoder: str, steps: int, seed: int) -> Config:
    """The config that a user of ``row`` trains with."""
    if row == "shipped":
        return SHIPPED[data].made(corpora, encoder, seed)
    written = init_config(lang="en", pipeline=["luke_ner"], silent=True).to_str()
    filled = {
        "paths.train": str(corpora.train),
        "paths.dev": str(corpora.dev),
        "system.seed": seed,
        "components.luke_ner.model.encoder.name": encoder,
        SHAPES: True,
        "training.max_steps": steps,
    }
    return Config().from_str(written, overrides=filled)


def train_loop(corpora: Corpora, encoder: str, steps: int, seed: int) -> tuple[Language, int]:
    """The loop in docs/luke_ner.md."""
    fix_random_seed(seed)
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("luke_ner", config={"model": {"encoder": {"name": encoder, "word_shapes": True}}})
    examples = list(Corpus(corpora.train)(nlp))
    optimizer = nlp.initialize(lambda: examples)
    for step in range(steps):
        optimizer.learn_rate = 2e-4 * (1 - step / steps)
        batch = random.sample(examples, min(8, len(examples)))
        nlp.update(batch, sgd=optimizer, drop=0.1, annotates=["sentencizer"])
    return nlp, steps


def run(args: argparse.Namespace, record: results.Record) -> results.Record:
    """Train one row and score it on the test data."""
    settings, row = record["settings"], record["row"]
    corpora = prepare(record["data"], args.data, args.work, limit=settings["limit"])
    with runtime.Clock() as clock:
        if row == "loop":
            nlp, steps = train_loop(corpora, args.encoder, args.steps, record["seed"])
        else:
            config = config_of(
                record["data"], row, corpora, args.encoder, args.steps, record["seed"]
            )
            folder = args.work / f"{record['data']}.{row}.{record['seed']}"
            nlp, steps = fit_best(config, folder, args.gpu_id)
    found: results.Record = {
        "steps": steps,
        "train_seconds": clock.wall,
        "train_cpu_seconds": clock.process,
        "device": runtime.device_name(args.gpu_id),
    }
    for part in ("dev", "test"):
        scores = nlp.evaluate(list(Corpus(getattr(corpora, part))(nlp)))
        found[part] = {x: 100 * scores[f"ents_{x}"] for x in "fpr"}
    return found


def table(records: Sequence[results.Record]) -> str:
    """Test F1 of each data set and row, mean and standard deviation over seeds."""
    rows: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for record in records:
        rows.setdefault((record["data"], record["row"]), []).append(record)
    order = {name: i for i, name in enumerate((*DATA_SETS, *ROWS))}
    return markdown(
        pd.DataFrame(
            {
                "data": data,
                "trained by": row,
                "steps": f"{found[0]['steps']:,}",
                "seeds": str(len(found)),
                "test F1": spread(x["test"]["f"] for x in found),
            }
            for (data, row), found in sorted(
                rows.items(), key=lambda item: [order[name] for name in item[0]]
            )
        )
    )


def identities(args: argparse.Namespace) -> list[results.Record]:
    """The runs that were asked for."""
    settings = {"encoder": Path(args.encoder).name, "steps": args.steps, "limit": args.limit}
    return [
        results.identity(data, row, seed, **settings)
        for seed, data, row in product(args.seeds, args.sets, args.rows)
    ]


def main(argv: Sequence[str] | None = None) -> int:
    return results.main(parse(argv), KIND, identities, run, table)


if __name__ == "__main__":
    sys.exit(main())
