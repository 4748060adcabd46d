"""What ``spacy luke tune`` makes of the shipped configs: scores, F1, and a wanted precision.

    python -m benchmarks.calibration --encoder DIR --results results.jsonl
    python -m benchmarks.calibration --table --results results.jsonl

Every pipeline of entities, relations or types is trained with paths alone, tuned on development
data, and scored on test data: by F, and for each precision that is asked for, over all labels and
for each label. Relations and types are those of gold entities. Pipelines in ``--work`` and finished
runs are used again.
"""

import argparse
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import spacy
from spacy.language import Language
from spacy.training import Example
from spacy.util import registry

from spacy_luke.errors import ConfigError
from spacy_luke.files import whole_folder
from spacy_luke.pipeline.thresholds import Goal
from spacy_luke.pipeline.tuning import tune

from . import results, runtime
from .datasets import default_folder
from .markdown import markdown, spread
from .shipped import SHIPPED, Shipped
from .training import fit_best

KIND = "calibration"
MIXED = "best F, mixed"
PRECISIONS = (0.9, 0.95)
FIGURES = ("p", "r", "f", "calibration_error")
BY_CHANCE = "calibration_error_by_chance"


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    p = runtime.parser("calibration", __doc__, "build/calibration", "results.jsonl")
    runtime.add_encoder(p)
    runtime.add_device(p)
    p.add_argument("--data", type=Path, default=default_folder(), help="folder of the corpora")
    p.add_argument("--sets", nargs="+", choices=list(SHIPPED), default=list(SHIPPED))
    p.add_argument("--seeds", nargs="+", type=int, default=[0])
    p.add_argument("--limit", type=int, default=0, help="documents of each file, 0 for all")
    p.add_argument(
        "--train-limit", type=int, default=0, help="of the training data, instead of --limit"
    )
    p.add_argument("--words", type=int, help="of a training, instead of what the config says")
    p.add_argument("--goals", nargs="+", choices=list(goals()), help="what to tune for, if not all")
    p.add_argument("--table", action="store_true", help="print what the results hold")
    return runtime.parsed(p, argv)


def goals() -> dict[str, Goal | None]:
    """What is tuned for, by the names in the results; None: not tuned."""
    found: dict[str, Goal | None] = {"trained": None, "best F": Goal(), MIXED: Goal()}
    for precision in PRECISIONS:
        found[f"precision {precision:g}"] = Goal(precision=precision)
        found[f"precision {precision:g}, each label"] = Goal(precision=precision, each_label=True)
    return found


def run(args: argparse.Namespace, record: results.Record) -> results.Record:
    """Train a pipeline, unless it is there, and score it tuned in every way."""
    settings, shipped = record["settings"], SHIPPED[record["data"]]
    limit, train_limit = settings["limit"], settings.get("train_limit", 0)
    corpora = shipped.prepare(args.data, args.work, limit=limit, train_limit=train_limit)
    limits = f"limit{limit}" + (f".train{train_limit}" if train_limit else "")
    named = f"{settings['encoder']}.{limits}.words{settings['words'] or 0}.{record['seed']}"
    folder = args.work / f"{record['data']}.{named}"
    if not (folder / "model-best").exists():
        config = shipped.made(corpora, args.encoder, record["seed"])
        if settings["words"]:
            config["initialize"]["after_init"]["words"] = settings["words"]
        with whole_folder(folder) as unfinished:  # a killed training has a model-best, too
            fit_best(config, unfinished, args.gpu_id)
    found: results.Record = {"device": runtime.device_name(args.gpu_id)}
    for name, goal in goals().items():
        if name not in settings.get("goals", goals()):
            continue
        if goal is not None and goal.precision and not shipped.has_threshold:
            continue
        nlp = spacy.load(folder / "model-best")
        dev, test = (examples(nlp, path) for path in (corpora.dev, corpora.test))
        if name == MIXED:
            dev, test = [*dev[::2], *test[::2]], [*dev[1::2], *test[1::2]]
        try:
            if goal is not None:
                list(tune(nlp, dev, goal, [shipped.component]))
        except ConfigError as err:
            found[name] = {"unreached": str(err)}
            continue
        found[name] = figures(nlp.evaluate(test), shipped)
    return found


def examples(nlp: Language, path: Path) -> list[Example]:
    """Documents as the pipeline's config reads its development data."""
    config = nlp.config.copy()
    config["paths"]["dev"] = str(path)
    reader = registry.resolve({"dev": config.interpolate()["corpora"]["dev"]})["dev"]
    return list(reader(nlp))


def figures(scores: dict[str, Any], shipped: Shipped) -> results.Record:
    """Percentages of test data."""
    names = dict(zip(FIGURES, shipped.scores))
    names |= {x: f"{shipped.prefix}_{x}" for x in ("calibration_error", BY_CHANCE)}
    by_label = scores[f"{shipped.prefix}_per_type"]
    return {
        **{name: percentage(scores[x]) for name, x in names.items()},
        "p_by_label": {label: percentage(x["p"]) for label, x in by_label.items()},
    }


def percentage(share: float | None) -> float | None:
    """None: of no answers, or of a label that is neither predicted nor annotated."""
    return None if share is None else 100 * share


def table(records: Sequence[results.Record]) -> str:
    """Test figures of every data set and goal, mean and standard deviation over seeds. Runs with
    other limits are other lines, and say so."""
    rows = []
    names = ("limit", "train_limit", "words")
    given = [[record["settings"].get(x) or 0 for x in names] for record in records]
    differ = [len(set(values)) > 1 for values in zip(*given)]
    groups: dict[str, list[results.Record]] = {}
    for record, values in zip(records, given):
        told = [f"{x} {n:,}" for x, n, tell in zip(names, values, differ) if tell and n]
        title = ", ".join([record["data"], *told]).replace("_", " ")
        groups.setdefault(title, []).append(record)
    order = list(SHIPPED)
    for data, of_data in sorted(groups.items(), key=lambda x: order.index(x[1][0]["data"])):
        for name in [x for x in goals() if any(x in record for record in of_data)]:
            found = [x[name] for x in of_data if name in x and "unreached" not in x[name]]
            shown = {
                title: spread(x[figure] or 0.0 for x in found) if found else "not reached on dev"
                for title, figure in zip(("P", "R", "F1", "calibration error"), FIGURES)
            }
            chance = spread(x[BY_CHANCE] or 0.0 for x in found) if found else ""
            rows.append({"data": data, "tuned for": name, **shown, "by chance": chance})
    return markdown(pd.DataFrame(rows))


def identities(args: argparse.Namespace) -> list[results.Record]:
    """The runs that were asked for."""
    settings = {"encoder": Path(args.encoder).name, "limit": args.limit, "words": args.words}
    if args.train_limit:
        settings["train_limit"] = args.train_limit
    if args.goals:
        settings["goals"] = args.goals
    return [
        results.identity(data, "shipped", seed, **settings)
        for data, seed in product(args.sets, args.seeds)
    ]


def main(argv: Sequence[str] | None = None) -> int:
    return results.main(parse(argv), KIND, identities, run, table)


if __name__ == "__main__":
    sys.exit(main())
