"""Cloze: ``configs/cloze.cfg`` beside the same encoder without entity tokens, and beside the most
frequent entity of the passage.

    python -m benchmarks.cloze --encoder DIR --results cloze.jsonl
    python -m benchmarks.cloze --table --results cloze.jsonl

``wikipedia``: a set that ``spacy luke cloze-set`` makes of an English excerpt, split by article.
``wikinews``: queries about places, split by article. A model of ``wikipedia`` is also tested on the
test part of ``wikinews``.

Entities and candidates are given. All rows have the same data, batches, steps and learning rate;
the last weights count. Finished runs are skipped when started again.
"""

import argparse
import hashlib
import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from spacy.util import load_config

from spacy_luke.annotations.queries import (
    Completion,
    candidates_of,
    clear_completions,
    completion_offsets,
    get_queries,
    merge_mentions,
    set_completions,
)
from spacy_luke.corpora.conversion_report import Report
from spacy_luke.corpora.options import ConvertOptions
from spacy_luke.corpora.record import read_record
from spacy_luke.metrics.cloze import cloze_score
from spacy_luke.metrics.squad import score_answer
from spacy_luke.pretraining.articles import read_dump
from spacy_luke.pretraining.cloze_sets import make_cloze_set
from spacy_luke.pretraining.engine import Engine
from spacy_luke.pretraining.settings import ClozeSettings, DumpSettings

from . import results, runtime
from .datasets import default_folder, store
from .differences import gain
from .markdown import markdown, spread
from .training import CONFIGS, fit

KIND = "cloze"
DUMP = "wikipedia/enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2"
WIKINEWS = "cloze-wikinews/cloze-a.json"
SETS = ("wikipedia", "wikinews")
ROWS = {"entities": "spacy-luke.ClozeScorer.v1", "words": "benchmarks.WordClozeScorer.v1"}
FREQUENT = "most frequent"
TEST = 0.3  # of the articles


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    p = runtime.parser("cloze", __doc__, "build/cloze", "cloze.jsonl")
    runtime.add_encoder(p)
    runtime.add_device(p)
    p.add_argument("--data", type=Path, default=default_folder(), help="folder of the data sets")
    p.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    p.add_argument("--rows", nargs="+", choices=list(ROWS), default=list(ROWS))
    p.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    p.add_argument("--words", type=int, default=600_000, help="least words seen in training")
    p.add_argument("--number", type=int, default=2500, help="queries made of the excerpt")
    p.add_argument("--max-words", type=int, default=150, help="of a passage of the excerpt")
    p.add_argument("--dump", default=DUMP, help="in the folder of the data sets")
    p.add_argument("--table", action="store_true", help="print what the results hold")
    return runtime.parsed(p, argv)


def parts(args: argparse.Namespace, name: str) -> dict[str, list[Doc]]:
    """``train`` and ``test``."""
    if name == "wikipedia":
        read_dump(
            [args.data / args.dump],
            args.work / "articles",
            Engine(workers=1),
            DumpSettings(partition_size=1),
            False,
        )
        settings = ClozeSettings(args.number, args.max_words, test=TEST)
        made = make_cloze_set(args.work / "articles", spacy.blank("en"), settings)
        return {part: made.parts[part] for part in ("train", "test")}
    found: dict[str, list[Doc]] = {"train": [], "test": []}
    for doc in read_record(args.data / WIKINEWS, spacy.blank("en"), ConvertOptions(), Report()):
        doc.user_data["title"] = doc.user_data["id"].rpartition("-")[0]  # GeoVirus-3-4
        share = int(hashlib.sha256(doc.user_data["title"].encode()).hexdigest()[:8], 16) / 16**8
        found["test" if share < TEST else "train"].append(doc)
    return found


def prepare(args: argparse.Namespace, name: str) -> dict[str, Path]:
    """The files of the parts, made once a work folder."""
    paths = {part: args.work / name / f"{part}.spacy" for part in ("train", "test")}
    if not all(path.exists() for path in paths.values()):
        for part, docs in parts(args, name).items():
            store(paths[part], docs)
    return paths


def run(args: argparse.Namespace, named: results.Record) -> results.Record:
    name, row, seed = named["data"], named["row"], named["seed"]
    if row == FREQUENT:
        return {
            f"test_{x}": scores(most_frequent(prepare(args, x)["test"]))
            for x in dict.fromkeys((name, "wikinews"))
        }
    paths = prepare(args, name)
    overrides = {
        "paths.train": str(paths["train"]),
        "paths.dev": str(paths["test"]),
        "paths.encoder": args.encoder,
        "system.seed": seed,
        "components.luke_cloze.model.@architectures": ROWS[row],
        "initialize.after_init.words": args.words,
        "initialize.after_init.epochs": 0.0,
    }
    config = load_config(CONFIGS / "cloze.cfg", overrides=overrides)
    config["corpora"]["dev"]["limit"] = 2  # the last weights count
    nlp, found = fit(config, args.gpu_id)
    for other in dict.fromkeys((name, "wikinews")):
        found[f"test_{other}"] = scores(completed(nlp, prepare(args, other)["test"]))
    return found


def completed(nlp: Language, path: Path) -> list[Example]:
    """Gold documents, and the same with the completions of the pipeline."""

    def complete(docs: Iterable[Doc]) -> Iterable[Doc]:
        return nlp.pipe(docs, batch_size=8)

    return _examples(path, nlp, complete)


def most_frequent(path: Path) -> list[Example]:
    """Gold documents, and the same with the entity that has the most mentions; of several the
    first."""

    def complete(docs: Iterable[Doc]) -> Iterable[Doc]:
        for doc in docs:
            found = []
            for query in get_queries(doc):
                spans = candidates_of(doc, query, None)
                best = max(merge_mentions(spans), key=len, default=[])
                mentions = [spans[i] for i in best]
                found.append([Completion(mentions[0].text, tuple(mentions))] if mentions else [])
            set_completions(doc, found)
            yield doc

    return _examples(path, spacy.blank("en"), complete)


def _examples(
    path: Path, nlp: Language, complete: Callable[[Iterable[Doc]], Iterable[Doc]]
) -> list[Example]:
    golds = list(DocBin().from_disk(path).get_docs(nlp.vocab))
    copies = [doc.copy() for doc in golds]
    for doc in copies:
        clear_completions(doc)
    return [Example(one, gold) for one, gold in zip(complete(copies), golds)]


def scores(examples: Sequence[Example]) -> dict[str, Any]:
    """Exact match and F1 in percent, and exact match of each query with the number of its
    article."""
    values = cloze_score(examples)
    each, of_article = [], []
    titles = {eg.reference.user_data["title"]: i for i, eg in enumerate(examples)}
    for eg in examples:
        gold, predicted = completion_offsets(eg.reference), completion_offsets(eg.predicted)
        for right, found in zip(gold, predicted, strict=True):
            text = found[0].text if found else ""
            each.append(100 * score_answer(text, [x.text for x in right]).exact)
            of_article.append(titles[eg.reference.user_data["title"]])
    return {
        "em": 100 * values["cloze_em"],
        "f1": 100 * values["cloze_f1"],
        "queries": values["cloze_queries"],
        "each_em": each,
        "articles": of_article,
    }


def table(records: Sequence[results.Record]) -> str:
    """Exact match and F1; and how much better the row with entities is, of the same seeds."""
    lines = []
    for name, test in product(SETS, SETS):
        runs: dict[str, dict[int, dict[str, Any]]] = {}
        for record in records:
            if record["data"] == name and f"test_{test}" in record:
                runs.setdefault(record["row"], {})[record["seed"]] = record[f"test_{test}"]
        ours = runs.get("entities", {})
        for row, of_seeds in runs.items():
            higher = "-"
            # The most frequent entity depends on no seed.
            other = of_seeds if row != FREQUENT else dict.fromkeys(ours, of_seeds[0])
            both = sorted(set(ours) & set(other))
            if row != "entities" and both:
                values, theirs = ([x[seed]["each_em"] for seed in both] for x in (ours, other))
                higher = gain(values, theirs, [ours[seed]["articles"] for seed in both])
            values = list(of_seeds.values())
            lines.append(
                {
                    "trained on": name,
                    "tested on": test,
                    "queries": f"{values[0]['queries']:,}",
                    "row": row,
                    "seeds": len(values),
                    "exact match": spread([x["em"] for x in values]),
                    "F1": spread([x["f1"] for x in values]),
                    "EM with entities is higher by": higher,
                }
            )
    return markdown(pd.DataFrame(lines))


def identities(args: argparse.Namespace) -> list[results.Record]:
    """The runs that were asked for."""
    made = {"number": args.number, "max_words": args.max_words}
    settings = {**made, "words": args.words, "encoder": Path(args.encoder).name}
    runs = [results.identity(name, FREQUENT, 0, **made) for name in args.sets]
    runs += [
        results.identity(name, row, seed, **settings)
        for seed, name, row in product(args.seeds, args.sets, args.rows)
    ]
    return runs


def main(argv: Sequence[str] | None = None) -> int:
    return results.main(parse(argv), KIND, identities, run, table)


if __name__ == "__main__":
    sys.exit(main())
