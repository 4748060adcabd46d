"""Two corpora that annotate different things, one pipeline: relations beside entities.

    python -m benchmarks.mixed_annotation --encoder DIR --seeds 0 1 2 --results results.jsonl
    python -m benchmarks.mixed_annotation --table --results results.jsonl

KnowledgeNet has relations, and says of each passage which labels were judged; CrossNER (politics)
has entities. Row ``both`` trains ``luke_ner`` and ``luke_relation`` on one encoder with both
corpora, read by ``spacy-luke.JoinedCorpora.v1``; ``entities`` and ``relations`` train one component
on one corpus. Every row passes over its data ``--epochs`` times. Relations are scored with gold
mentions, for the judged labels.
"""

import argparse
import json
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Corpus, Example
from spacy.util import registry
from thinc.api import Config

from spacy_luke.annotations.annotated import set_annotated
from spacy_luke.annotations.relations import Relation, set_relations

from . import datasets, experiment, results, runtime
from .datasets import Corpora, load, store
from .experiment import Experiment
from .markdown import markdown, spread
from .training import RunSettings, base_config, fit, override, schedule

DATA, ROWS = "knowledgenet+politics", ("both", "entities", "relations")
MENTIONS = "mentions"
BATCH_WORDS = 300
COMPONENTS = {"both": ["luke_ner", "luke_relation"], "entities": ["luke_ner"]}
COMPONENTS["relations"] = ["luke_relation"]


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    p = experiment.parser("mixed_annotation", __doc__, "build/mixed", [DATA], ROWS)
    p.set_defaults(learn_rate=[2e-4])
    p.add_argument("--epochs", type=int, default=10)
    p.add_argument("--passages", type=int, default=600, help="of KnowledgeNet to train on")
    p.add_argument("--table", action="store_true", help="print what the results hold")
    return runtime.parsed(p, argv)


@dataclass(frozen=True)
class MixedSettings(RunSettings):
    epochs: int = 10
    passages: int = 600


def knowledgenet(folder: Path, folds: Sequence[int]) -> list[Doc]:
    """Passages with facts: their arguments as a spans group, relations, and the judged labels.
    Facts whose arguments are no whole tokens are left out."""
    nlp, docs = spacy.blank("en"), []
    file = folder / "knowledgenet" / "passages-folds123.jsonl"
    for line in file.read_text("utf8").splitlines():
        passage = json.loads(line)
        if passage["fold"] not in folds or not passage["facts"]:
            continue
        doc = nlp.make_doc(passage["text"])
        facts: list[tuple[Span, Span, str]] = []
        for fact in passage["facts"]:
            head, tail = (doc.char_span(*fact[side]) for side in ("subject", "object"))
            if head is not None and tail is not None:
                facts.append((head, tail, fact["property"]))
        places = {(x.start, x.end) for fact in facts for x in fact[:2]}
        doc.spans[MENTIONS] = [Span(doc, a, b, label="MENTION") for a, b in sorted(places)]
        set_relations(doc, [Relation(*fact, 1.0) for fact in facts])
        set_annotated(doc, "relations", passage["annotated"])
        set_annotated(doc, "ents", False)
        docs.append(doc)
    return docs


def prepare(args: argparse.Namespace) -> tuple[Corpora, Corpora]:
    """The files of CrossNER and of KnowledgeNet: folds 1 and 2 to train on, of fold 3 every fifth
    passage for development, the others for test."""
    entities = datasets.prepare("politics", args.data, args.work, limit=args.limit)
    work = args.work / "corpora" / f"knowledgenet.{args.passages}.limit{args.limit}"
    paths = {part: work / f"{part}.spacy" for part in ("train", "dev", "test")}
    if not all(path.exists() for path in paths.values()):
        held = knowledgenet(args.data, [3])
        parts = {
            "train": knowledgenet(args.data, [1, 2])[: args.passages],
            "dev": held[::5],
            "test": [doc for i, doc in enumerate(held) if i % 5],
        }
        for part, docs in parts.items():
            store(paths[part], docs[: args.limit or None])
    return entities, Corpora(**paths, n_train=len(load(paths["train"])))


def config_of(row: str, entities: Corpora, relations: Corpora, settings: MixedSettings) -> Config:
    """``configs/joint.cfg`` with the components and corpora of a row."""
    config = base_config("joint")
    kept = ["sentencizer", "luke", *COMPONENTS[row]]
    config["components"] = {name: config["components"][name] for name in kept}
    config["nlp"]["pipeline"] = kept
    config["components"]["luke"]["model"]["name"] = settings.encoder
    if "luke_relation" in kept:
        config["components"]["luke_relation"]["spans_key"] = MENTIONS
    corpora = {
        "entities": {**config["corpora"]["dev"], "path": str(entities.train)},
        "relations": {
            "@readers": "spacy-luke.PresetEntsCorpus.v1",
            "path": str(relations.train),
            "spans_key": MENTIONS,
        },
    }
    layers = {"entities": ["ents"], "relations": ["relations"]}
    names = list(corpora) if row == "both" else [row]
    config["corpora"]["train"] = {
        "@readers": "spacy-luke.JoinedCorpora.v1",
        "corpora": {name: corpora[name] for name in names},
        "annotates": {name: layers[name] for name in names},
    }
    config["corpora"]["dev"] = {**corpora[names[-1]], "limit": 4}  # the last weights count
    docs = [doc for name in names for doc in load(Path(corpora[name]["path"]))]
    steps = math.ceil(settings.epochs * sum(map(len, docs)) / BATCH_WORDS)
    training = config["training"]
    score = "ents_f" if row == "entities" else "rels_f"
    training.update(
        max_steps=steps,
        eval_frequency=steps,
        batcher={**training["batcher"]["batcher"]["batcher"], "size": BATCH_WORDS},
        logger={"@loggers": "spacy.ConsoleLogger.v1", "progress_bar": False},
        score_weights={score: 1.0},
    )
    training["optimizer"]["learn_rate"] = schedule(settings.learn_rate, steps)
    config["initialize"].update(vectors=None, init_tok2vec=None, after_init=None)
    return override(config, settings.overrides)


class MixedExperiment(Experiment[MixedSettings]):
    kind = "mixed"

    def settings(self) -> MixedSettings:
        args = self.args
        return MixedSettings(**experiment.common(args), epochs=args.epochs, passages=args.passages)

    def measure(self, settings: MixedSettings, seed: int, save: bool) -> results.Record:
        entities, relations = prepare(self.args)
        config = config_of(self.row, entities, relations, settings)
        config["training"]["seed"] = config["system"]["seed"] = seed
        config["training"]["gpu_allocator"] = "pytorch" if self.args.gpu_id >= 0 else None
        nlp, trained = fit(config, self.args.gpu_id)
        record: results.Record = {"steps": config["training"]["max_steps"], **trained}
        reader = registry.readers.get("spacy-luke.PresetEntsCorpus.v1")
        for part in ("dev", "test"):
            found: dict[str, float] = {}
            if self.row != "relations":
                examples: list[Example] = list(Corpus(getattr(entities, part))(nlp))
                found["ents_f"] = 100 * nlp.evaluate(examples)["ents_f"]
            if self.row != "entities":
                corpus: Any = reader(path=getattr(relations, part), spans_key=MENTIONS)
                found["rels_f"] = 100 * nlp.evaluate(list(corpus(nlp)))["rels_f"]
            record[part] = {"f": sum(found.values()) / len(found), **found}
        return {**record, **self.device()}


def table(records: Sequence[results.Record]) -> str:
    """Test F1 of each row, mean and standard deviation over seeds."""
    lines = []
    for row in ROWS:
        runs = [x for x in records if x["row"] == row]
        if runs:
            lines.append(
                {
                    "trained on": row,
                    "steps": f"{runs[0]['steps']:,}",
                    "seeds": str(len(runs)),
                    "entities, F1": spread(x["test"].get("ents_f", math.nan) for x in runs),
                    "relations, F1": spread(x["test"].get("rels_f", math.nan) for x in runs),
                }
            )
    return markdown(pd.DataFrame(lines))


def main(argv: Sequence[str] | None = None) -> int:
    args = parse(argv)
    if args.table:
        print(table(results.of_kind(args.results, "mixed")))
        return 0
    return experiment.run(MixedExperiment, args)


if __name__ == "__main__":
    sys.exit(main())
