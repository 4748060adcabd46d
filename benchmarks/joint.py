"""Several tasks on one shared encoder, beside a pipeline for each.

    python -m benchmarks.joint --encoder DIR --seeds 0 1 2 --results results.jsonl

Row ``joint`` trains ``configs/joint.cfg`` (entities, relations, types) or, of the data set
``encyclopedia-all``, ``configs/all.cfg`` (also links and answers); ``separate`` trains each of its
task components alone, with an encoder of its own, the same data, steps and settings. Scores are end
to end and, under ``gold_`` names, with gold entities; end to end the separate pipelines run one
after the other. ``--measure`` then compares size,
memory and speed of the pipelines that were saved.
"""

import argparse
import copy
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.training import Example
from thinc.api import Config

from spacy_luke.cli.evaluate import evaluate
from spacy_luke.cli.loading import load_examples
from spacy_luke.pipeline.thresholds import Goal
from spacy_luke.pipeline.tuning import tune

from . import experiment, joint_cost, results, runtime
from .experiment import Experiment
from .joint_cost import CONFIGS, tasks
from .training import RunSettings, base_config, fit, override, schedule

ROWS = ("joint", "separate")
END_TO_END = ("ents_f", "nel_end_to_end_f", "rels_f", "types_micro_f", "qa_f1")
GOLD = ("gold_nel_micro_f", "gold_rels_f", "gold_types_micro_f", "gold_qa_f1")
Pipelines = dict[str, Language]


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    p = experiment.parser("joint", __doc__, "build/joint", list(CONFIGS), ROWS)
    p.set_defaults(
        data=Path("project/data"), data_sets=["encyclopedia"], learn_rate=[2e-4], save=True
    )
    p.add_argument("--steps", type=int, default=480, help="of every training")
    p.add_argument("--measure", action="store_true", help="only size, memory and speed")
    p.add_argument("--docs", type=int, default=0, help="test documents to measure on; 0: all")
    p.add_argument("--rounds", type=int, default=5, help="of timing")
    p.add_argument("--memory-of", choices=[*ROWS, "nothing"], help=argparse.SUPPRESS)
    return runtime.parsed(p, argv)


@dataclass(frozen=True)
class JointSettings(RunSettings):
    """steps: of each training, of about 300 words."""

    steps: int = 480


def joint_config(args: argparse.Namespace, data: str, settings: JointSettings, seed: int) -> Config:
    """The shipped config with the settings of a run; the last weights are used."""
    config = base_config(CONFIGS[data])
    config["components"]["luke"]["model"].update(
        name=settings.encoder, mixed_precision=settings.mixed_precision
    )
    for part, limit in (("train", settings.limit), ("dev", 4)):
        config["corpora"][part].update(path=str(args.data / f"{part}.spacy"), limit=limit)
    training = config["training"]
    training.update(
        seed=seed,
        gpu_allocator="pytorch" if args.gpu_id >= 0 else None,
        max_steps=settings.steps,
        eval_frequency=settings.steps + 1,
        logger={"@loggers": "spacy.ConsoleLogger.v1", "progress_bar": False},
    )
    training["optimizer"]["learn_rate"] = schedule(settings.learn_rate, settings.steps)
    config["initialize"].update(vectors=None, init_tok2vec=None)
    return override(config, settings.overrides)


def alone(config: Config, task: str) -> Config:
    """One task of a joint config, with an encoder of its own."""
    config = Config(copy.deepcopy(dict(config)))
    components = config["components"]
    encoder = components["luke"]["model"]
    components[task]["model"]["encoder"] = encoder
    kept = ("sentencizer", task)
    config["components"] = {name: components[name] for name in kept}
    config["nlp"]["pipeline"] = list(kept)
    initialize = config["initialize"]["components"]
    config["initialize"]["components"] = {x: initialize[x] for x in kept if x in initialize}
    return config


class JointExperiment(Experiment[JointSettings]):
    """Either row. Thresholds and the NIL bias are chosen on dev, as by ``spacy luke tune``."""

    kind = "joint"

    def settings(self) -> JointSettings:
        return JointSettings(**experiment.common(self.args), steps=self.args.steps)

    def measure(self, settings: JointSettings, seed: int, save: bool) -> results.Record:
        config = joint_config(self.args, self.data, settings, seed)
        configs = {"joint": config}
        if self.row == "separate":
            configs = {task: alone(config, task) for task in tasks(config)}
        pipelines, trained = {}, {}
        for name, one in configs.items():
            pipelines[name], trained[name] = fit(one, self.args.gpu_id)
        dev, test = self._examples("dev", pipelines), self._examples("test", pipelines)
        if save:
            for name, nlp in pipelines.items():
                path = joint_cost.folder(self.args, self.data, self.row, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                nlp.to_disk(path)
        nlp = assembled(pipelines)
        tuned = {x.component: x.settings for x in tune(nlp, dev, Goal())}
        scores = {part: shown(evaluate(nlp, x)) for part, x in (("dev", dev), ("test", test))}
        return {
            **{part: {"f": mean_end_to_end(found), **found} for part, found in scores.items()},
            "tuned": tuned,
            "n_docs": len(test),
            "steps": settings.steps,
            "train_seconds": sum(x["train_seconds"] for x in trained.values()),
            "train_cpu_seconds": sum(x["train_cpu_seconds"] for x in trained.values()),
            "by_pipeline": trained,
            **self.device(),
        }

    def _examples(self, part: str, pipelines: Pipelines) -> list[Example]:
        path = self.args.data / f"{part}.spacy"
        return load_examples(path, next(iter(pipelines.values())))[: self.args.limit or None]


def shown(scores: dict[str, Any]) -> dict[str, float]:
    """The scores of the pipeline's tasks, in percent."""
    names = [name for name in (*END_TO_END, *GOLD) if name in scores]
    return {name: 100.0 * (scores[name] or 0.0) for name in names}


def mean_end_to_end(scores: dict[str, float]) -> float:
    found = [scores[name] for name in END_TO_END if name in scores]
    return sum(found) / len(found)


def assembled(pipelines: Pipelines) -> Language:
    """Several pipelines as one: the task components one after the other."""
    first, *others = pipelines.values()
    for nlp in others:
        first.add_pipe(nlp.pipe_names[-1], source=nlp)
    return first


def main(argv: Sequence[str] | None = None) -> int:
    argv = list(sys.argv[1:] if argv is None else argv)
    args = parse(argv)
    if args.memory_of or args.measure:
        runtime.start(args.gpu_id, args.threads)
        if args.memory_of:
            joint_cost.print_memory(args)
        else:
            joint_cost.measure(args, argv)
        return 0
    return experiment.run(JointExperiment, args)


if __name__ == "__main__":
    sys.exit(main())
