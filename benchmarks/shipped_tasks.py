"""``configs/relation.cfg`` and ``configs/entity_typing.cfg`` with paths alone.

    python -m benchmarks.shipped_tasks --encoder DIR --results results.jsonl
    python -m benchmarks.shipped_tasks --results results.jsonl --table records.jsonl ...

They are trained as they stand, but for what a user has to say of the data (such as whether a pair
may have several relations), and scored as in ``relation_modes`` and ``typing_modes``; the last
weights count. The table has them beside the rows of these commands' records, at the best rate and
number of epochs there, and beside runs of this command with other settings (``--set``), if these
are in a file of their own; differences are over the seeds that both have. Finished runs are
skipped when started again.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from spacy.language import Language
from thinc.api import Config

from . import experiment, results, runtime
from .bootstrap import paired_bootstrap
from .chosen import chosen_runs, counts, with_shared_seeds
from .markdown import markdown, spread
from .relation_modes import RelationExperiment
from .shipped import relations, types
from .task_data import RELATION_SETS, TYPING_SETS
from .task_rows import RELATION, RelationSettings
from .training import EpochSettings, override
from .typing_modes import TypingExperiment

SHIPPED = "shipped"
KINDS = ("relation", "typing")
OTHERS = ("probe", "markers", "baseline")
SETS = [*RELATION_SETS, *TYPING_SETS]
Made = RelationExperiment | TypingExperiment


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    p = experiment.parser("shipped_tasks", __doc__, "build/shipped", SETS, [SHIPPED])
    p.set_defaults(learn_rate=[0.0], epochs=0, batch_size=0, pairs=0, score_docs=0)
    p.add_argument("--table", nargs="*", type=Path, metavar="FILE", help="print, with such records")
    return runtime.parsed(p, argv)


def with_options(config: Config, args: argparse.Namespace) -> Config:
    """With what ``--set`` says."""
    return override(config, {name: json.loads(value) for name, value in args.set})


class ShippedRelations(RelationExperiment):
    def config(self, settings: RelationSettings, seed: int) -> Config:
        made = relations(self.data).made(self.corpora, self.args.encoder, seed)
        made["components"][RELATION]["threshold"] = self.task["threshold"]
        return with_options(made, self.args)

    def inspect(self, nlp: Language, found: results.Record) -> results.Record:
        return {**super().inspect(nlp, found), **chosen_steps(nlp)}


class ShippedTypes(TypingExperiment):
    def config(self, settings: EpochSettings, seed: int) -> Config:
        made = types(self.data).made(self.corpora, self.args.encoder, seed)
        return with_options(made, self.args)

    def inspect(self, nlp: Language, found: results.Record) -> results.Record:
        return {**super().inspect(nlp, found), **chosen_steps(nlp)}


def chosen_steps(nlp: Language) -> results.Record:
    return {"steps": nlp.config["training"]["max_steps"]}


def make(args: argparse.Namespace, data: str, row: str) -> Made:
    return (ShippedRelations if data in RELATION_SETS else ShippedTypes)(args, data, row)


def with_settings(record: results.Record) -> results.Record:
    """A run of a shipped config is named by what ``--set`` said; others stay."""
    if record["row"] != SHIPPED:
        return record
    said = record["settings"]["overrides"].items()
    settings = ", ".join(f"{name.rpartition('.')[2]} {value}" for name, value in said)
    return {**record, "row": f"{SHIPPED}, {settings}"}


def table(records: Sequence[results.Record], others: Sequence[results.Record]) -> str:
    """Test F1 over seeds, and how much the shipped config is better (paired bootstrap). others: of
    other rows, and of the shipped configs with other settings."""
    rows = []
    beside = [with_settings(x) for x in others if x["kind"] in KINDS]
    named = sorted({x["row"] for x in beside} - set(OTHERS))
    for kind in KINDS:
        for data, found in chosen_runs([*records, *beside], kind).items():
            shown = (SHIPPED, *named, *OTHERS) if SHIPPED in found else ()
            for row in [x for x in shown if x in found]:
                runs, gain = found[row], "-"
                theirs, ours = with_shared_seeds(runs, found[SHIPPED])
                if row != SHIPPED and ours:
                    n_docs = min(x["n_docs"] for x in (*theirs, *ours))
                    gain = str(paired_bootstrap(counts(theirs, n_docs), counts(ours, n_docs)))
                rows.append(
                    {
                        "data": data,
                        "row": row,
                        "steps": f"{runs[0]['steps']:,}",
                        "seeds": str(len(runs)),
                        "test F1": spread(x["test"]["f"] for x in runs),
                        "test micro F1": micro(runs),
                        "dev F1": spread(x["dev"]["f"] for x in runs),
                        "shipped is better by": gain,
                    }
                )
    return markdown(pd.DataFrame(rows))


def micro(runs: Sequence[results.Record]) -> str:
    """Of relations whose F1 is an average over labels."""
    if runs[0].get("average") != "macro":
        return "-"
    return spread(x["test_micro"]["f"] for x in runs)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse(argv)
    if args.table is None:
        return experiment.run(make, args)
    print(table(results.read([args.results]), results.read(args.table)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
