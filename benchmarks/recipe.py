"""``spacy train configs/ner.cfg`` with paths alone, against one context alone, and against other
components in its place.

    python -m benchmarks.recipe --encoder DIR --sizes 100 1000 --results results.jsonl
    python -m benchmarks.recipe --table --results results.jsonl
    python -m benchmarks.recipe --paired --results results.jsonl

The data is the development part of Few-NERD, without repeated sentences: up to 9,800 sentences to
train on, 700 for development, the others for test. It is given as sentences, or as documents of 20
neighbouring ones, which are not of one text, and every row is tested on both. Data sets whose files
have documents (``--sets bc5cdr``) are given as these or as their sentences. All rows make the steps
that the callback of the config chooses, and the last weights count. Predictions of ``luke_ner``
read each sentence alone, as the config says (``predict_layout``), but those of the row
``documents``, which never saw one; those of the baselines, which have no such setting, read
documents as they are. ``probe`` asks about all spans; ``token``, ``ner`` and ``spancat`` are the
baselines of ``ner_modes``, trained as the config trains ``luke_ner``: the same encoder, contexts,
varied case, batches, dropout and schedule. ``luke_ner`` is also scored after it was tuned on the
development data (``spacy luke tune``). ``--paired`` compares the row ``shipped`` with every other
row with as many training sentences, on the same test sentences, each tuned if it can be (older
records, which do not say what each sentence has, are left out). Finished runs are skipped when
started again.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Corpus, Example
from spacy.util import load_config, minibatch
from thinc.api import Config

from spacy_luke.corpora.parts import join
from spacy_luke.pipeline.thresholds import Goal
from spacy_luke.pipeline.tuning import tune

from . import results, runtime
from .baselines import SPANS_AS_ENTS
from .bootstrap import Counts, bootstrap, paired_bootstrap
from .datasets import DATA_SETS, default_folder, documents, load, read, store
from .forms import OF_DOCUMENT, forms, predicted, prf, score
from .markdown import markdown, spread
from .rows import Settings, component_of, rate_factor
from .training import CONFIGS, block_of, fit

JOINED = "few-nerd"
"""The set whose documents are sentences that were joined."""
SETS = (JOINED, *(name for name, source in DATA_SETS.items() if source.format != "columns"))
MOST, DEV = 9800, 700
KIND = "recipe"
GIVEN = ("sentences", "documents")
BATCHER = "training.batcher."
CONTEXTS: dict[str, dict[str, Any]] = {
    "shipped": {},
    "sentences": {
        f"{BATCHER}sentence": 1.0,
        f"{BATCHER}neighbours": 0.0,
        f"{BATCHER}document": 0.0,
    },
    "documents": {
        f"{BATCHER}sentence": 0.0,
        f"{BATCHER}neighbours": 0.0,
        f"{BATCHER}document": 1.0,
        f"{BATCHER}join_sentences": False,
        "components.luke_ner.model.predict_layout": None,
    },
}
"""Overrides of the config."""
OTHERS = ("probe", "token", "ner", "spancat")
ROWS = (*CONTEXTS, *OTHERS)


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    p = runtime.parser("recipe", __doc__, "build/recipe", "results.jsonl")
    runtime.add_encoder(p)
    runtime.add_device(p)
    p.add_argument("--data", type=Path, default=default_folder(), help="folder of the corpora")
    p.add_argument("--sets", nargs="+", choices=SETS, default=[JOINED])
    p.add_argument("--sizes", nargs="+", type=int, default=[100, 1000, 3000, MOST])
    p.add_argument("--given", nargs="+", choices=GIVEN, default=list(GIVEN))
    p.add_argument("--rows", nargs="+", choices=ROWS, default=list(CONTEXTS))
    p.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    p.add_argument("--set", nargs=2, action="append", default=[], metavar=("NAME", "JSON"))
    p.add_argument("--forms", action="store_true", help="also test in lower and upper case etc.")
    p.add_argument("--table", action="store_true", help="print what the results hold")
    p.add_argument("--paired", action="store_true", help="print how the rows differ")
    return runtime.parsed(p, argv)


def prepare(name: str, folder: Path, work: Path, size: int) -> dict[str, Path]:
    """Files of a data set by part and form, such as ``dev-sentences``; ``size`` training
    sentences."""
    parts = [f"train-{size}", "dev", "test"]
    paths = {
        f"{part}-{given}": work / "data" / name / f"{part}-{given}.spacy"
        for part, given in product(parts, GIVEN)
    }
    if not all(path.exists() for path in paths.values()):
        docs = _joined(folder) if name == JOINED else _given(name, folder)
        train = docs.pop("train")
        n_sentences = sum(map(len, train))
        if size > n_sentences:
            raise ValueError(f"{name} has {n_sentences:,} training sentences, not {size:,}.")
        docs[parts[0]] = list(_first(train, size))
        for part in parts:
            sentences = [sentence for doc in docs[part] for sentence in doc]
            store(paths[f"{part}-sentences"], sentences)
            store(paths[f"{part}-documents"], [join(doc) for doc in docs[part]])
    return paths


def _given(name: str, folder: Path) -> dict[str, list[list[Doc]]]:
    """Documents of each part, as lists of sentences."""
    return {part: documents(name, part, folder) for part in ("train", "dev", "test")}


def _joined(folder: Path) -> dict[str, list[list[Doc]]]:
    """The same, of neighbouring sentences."""
    unique: dict[str, Doc] = {}
    for doc in read(folder / "few-nerd" / "dev.txt"):
        unique.setdefault(doc.text, doc)
    docs = list(unique.values())
    parts = {"train": docs[:MOST], "dev": docs[MOST : MOST + DEV], "test": docs[MOST + DEV :]}
    return {name: list(minibatch(part, OF_DOCUMENT)) for name, part in parts.items()}


def _first(docs: Iterable[list[Doc]], size: int) -> Iterator[list[Doc]]:
    """The first ``size`` sentences. The last document may lose its end."""
    for doc in docs:
        if size > 0:
            yield doc[:size]
        size -= len(doc)


def run(args: argparse.Namespace, record: results.Record) -> results.Record:
    """Train one row and score it on both forms of the test data."""
    settings = record["settings"]
    paths = prepare(record["data"], args.data, args.work, settings["size"])
    given, row = settings["given"], record["row"]
    overrides = {
        "paths.train": str(paths[f"train-{settings['size']}-{given}"]),
        "paths.dev": str(paths[f"dev-{given}"]),
        "paths.encoder": args.encoder,
        "system.seed": record["seed"],
        **CONTEXTS.get(row, {}),
        **{name: json.loads(text) for name, text in settings["set"]},
    }
    config = load_config(CONFIGS / "ner.cfg", overrides=overrides)
    config["corpora"]["dev"]["limit"] = 4  # the last weights count
    if row in OTHERS:
        own = [name for name, _ in settings["set"] if name.startswith("components.luke_ner.")]
        if own and row != "probe":
            raise ValueError(f"--set {own[0]} is for luke_ner, and the row {row} has none.")
        replace_component(config, row, args.encoder)
    nlp, found = fit(config, args.gpu_id)
    if row == "spancat":
        nlp.add_pipe(SPANS_AS_ENTS)
    for form in GIVEN:
        found[f"dev_{form}"] = score(nlp, load(paths[f"dev-{form}"]))
    found.update(_tested(nlp, paths))
    if args.forms:
        test = forms(load(paths[f"test-{given}"]))
        found["forms"] = {form: score(nlp, docs) for form, docs in test.items()}
    if row not in OTHERS or row == "probe":
        list(tune(nlp, list(Corpus(paths[f"dev-{given}"])(nlp)), Goal(), ["luke_ner"]))
        found["tuned"] = _tested(nlp, paths)
    return found


def _tested(nlp: Language, paths: dict[str, Path]) -> dict[str, Any]:
    """F1 on both forms of the test data, and what is right, predicted and gold in each sentence."""
    found = {form: predicted(nlp, load(paths[f"test-{form}"])) for form in GIVEN}
    return {
        **{f"test_{form}": prf(examples) for form, examples in found.items()},
        "test_counts": [_counted(example) for example in found["sentences"]],
    }


def _counted(example: Example) -> tuple[int, int, int]:
    predicted, gold = (
        {(ent.start_char, ent.end_char, ent.label_) for ent in doc.ents}
        for doc in (example.predicted, example.reference)
    )
    return len(predicted & gold), len(predicted), len(gold)


def replace_component(config: Config, row: str, encoder: str) -> None:
    """Put a row's component in the place of ``luke_ner``. Fresh weights keep their rate."""
    block = block_of(config, "luke_ner")
    if row == "probe":
        block["model"]["mode"] = row
    else:
        own = {
            key: block["model"]["encoder"][key] for key in ("max_learn_rate", "word_shape_dropout")
        }
        block = component_of(row, block, Settings(encoder=encoder))
        block["model"]["tok2vec"].update(own)
    config["components"]["luke_ner"] = block
    config["training"]["optimizer"]["learn_rate"]["initial_rate"] *= rate_factor(row)


def table(records: Sequence[results.Record]) -> str:
    """Test F1, mean and standard deviation over seeds."""
    rows: dict[tuple, dict[str, Any]] = {}
    for record in records:
        settings = record["settings"]
        # Runs with other overrides are another line: they make another number of steps.
        made = (settings["size"], settings["given"], record["row"], json.dumps(settings["set"]))
        key = (record["data"], *made)
        rows.setdefault(key, {"steps": record["steps"], "runs": []})["runs"].append(record)
    order = {name: i for i, name in enumerate((*GIVEN, *ROWS))}
    lines = []
    for (data, size, given, row, changes), found in sorted(
        rows.items(),
        key=lambda item: (*item[0][:2], order[item[0][2]], order[item[0][3]], item[0][4]),
    ):
        test = {form: [x[f"test_{form}"]["f"] for x in found["runs"]] for form in GIVEN}
        all_tuned = all("tuned" in x for x in found["runs"])
        tuned = {
            form: spread(x["tuned"][f"test_{form}"]["f"] for x in found["runs"])
            if all_tuned
            else None
            for form in GIVEN
        }
        lines.append(
            {
                "set": data,
                "sentences": f"{size:,}",
                "given as": given,
                "trained on": _named(row, json.loads(changes)),
                "steps": f"{found['steps']:,}",
                "seeds": str(len(found["runs"])),
                **{f"F1 on {form}": spread(values) for form, values in test.items()},
                **{f"{form}, tuned": x for form, x in tuned.items()},
            }
        )
    return markdown(pd.DataFrame(lines))


def differences(records: Sequence[results.Record]) -> str:
    """F1 on sentences of ``shipped`` over that of other rows of as many training sentences, of the
    seeds that both have."""
    cells: dict[tuple[str, int, str], dict[tuple[str, str, str], dict[int, results.Record]]] = {}
    for record in records:
        settings = record["settings"]
        trained = (record["row"], json.dumps(settings["set"]), settings["given"])
        if "test_counts" in record.get("tuned", record):
            same = (record["data"], settings["size"], settings["encoder"])
            cell = cells.setdefault(same, {})
            cell.setdefault(trained, {})[record["seed"]] = record
    lines = []
    for (data, size, _), cell in sorted(cells.items()):
        mine = [x for x in cell if x[:2] == ("shipped", "[]")]
        for ours, theirs in product(mine, [x for x in cell if x not in mine]):
            if seeds := sorted(cell[ours].keys() & cell[theirs].keys()):
                one, other = (_counts([cell[x][seed] for seed in seeds]) for x in (ours, theirs))
                row, changes, given = theirs
                lines.append(
                    {
                        "set": data,
                        "sentences": f"{size:,}",
                        "seeds": str(len(seeds)),
                        "shipped, given": ours[-1],
                        "F1": f"{bootstrap(one).value:.1f}",
                        "other": _named(row, json.loads(changes)),
                        "given": given,
                        "its steps": f"{cell[theirs][seeds[0]]['steps']:,}",
                        "its F1": f"{bootstrap(other).value:.1f}",
                        "shipped is higher by": str(paired_bootstrap(other, one)),
                    }
                )
    return markdown(pd.DataFrame(lines))


def _counts(runs: Sequence[results.Record]) -> Counts:
    """For the bootstrap: the counts of seeds, tuned where the row was."""
    found = [run.get("tuned", run)["test_counts"] for run in runs]
    table = np.array(found, dtype=float)[..., None]  # (n_seeds, n_docs, 3, 1)
    return Counts(table[:, :, 0], table[:, :, 1], table[:, :, 2])


def _named(row: str, changes: Iterable[tuple[str, str]]) -> str:
    """A row and what was changed, but for the length of the training, which the steps tell."""
    told = [
        f"{name.removeprefix('components.luke_ner.')} {value}"
        for name, value in changes
        if not name.startswith("initialize.after_init.")
    ]
    return ", ".join([row, *told])


def identities(args: argparse.Namespace) -> list[results.Record]:
    """The runs that were asked for."""
    shared = {"encoder": Path(args.encoder).name, "set": args.set}
    return [
        results.identity(data, row, seed, given=given, size=size, **shared)
        for data, seed, size, given, row in product(
            args.sets, args.seeds, args.sizes, args.given, args.rows
        )
    ]


def main(argv: Sequence[str] | None = None) -> int:
    args = parse(argv)
    shown = differences if args.paired else table
    args.table |= args.paired
    return results.main(args, KIND, identities, run, shown)


if __name__ == "__main__":
    sys.exit(main())
