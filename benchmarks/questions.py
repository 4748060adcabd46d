"""Answers to questions: ``configs/qa.cfg`` with entities, beside the same without any.

    python -m benchmarks.questions --encoder DIR --results questions.jsonl
    python -m benchmarks.questions --table --results questions.jsonl

``answerable``: trained on 10 of the 12 articles of SQuAD 1.1 at hand, tested on the English XQuAD.
``all``: also trained on 7 of the 11 articles of SQuAD 2.0; two more give the least score of an
answer, and two are tested. XQuAD is then tested without the articles that SQuAD 2.0 has.

Entities are those that ``luke_ner``, trained on Few-NERD by the same command, finds in paragraphs
and questions; the encoder knows none of them, so each is a [MASK]. All rows have the same data,
batches, steps and learning rate; the last weights count. Finished runs are skipped when started
again.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from itertools import islice, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from spacy.util import load_config

from spacy_luke.annotations.questions import (
    answer_offsets,
    clear_answers,
    get_questions,
    set_answer_offsets,
    set_questions,
)
from spacy_luke.corpora.conversion_report import Report
from spacy_luke.corpora.options import ConvertOptions
from spacy_luke.corpora.squad import read_squad
from spacy_luke.metrics.questions import question_score
from spacy_luke.metrics.squad import score_answer

from . import results, runtime
from .datasets import default_folder, read, store
from .differences import gain
from .markdown import markdown, spread
from .training import CONFIGS, fit

Array = np.ndarray

SQUAD, SQUAD2 = "squad/train-v1.1-head.json", "squad2/squad2-11articles.json"
KIND = "questions"
XQUAD = "squad/xquad.en.json"
HELD_OUT = 2  # articles of each of SQuAD (not used here), SQuAD 2.0 dev and SQuAD 2.0 test
SETS = ("answerable", "all")
ROWS = {"entities": "all", "words": "none"}
NER_SENTENCES, NER_WORDS = 3000, 150_000


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    p = runtime.parser("questions", __doc__, "build/questions", "questions.jsonl")
    runtime.add_encoder(p)
    runtime.add_device(p)
    p.add_argument("--data", type=Path, default=default_folder(), help="folder of the data sets")
    p.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    p.add_argument("--rows", nargs="+", choices=list(ROWS), default=list(ROWS))
    p.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    p.add_argument("--words", type=int, default=1_200_000, help="least words seen in training")
    p.add_argument("--limit", type=int, default=0, help="paragraphs of each part; 0: all")
    p.add_argument("--table", action="store_true", help="print what the results hold")
    return runtime.parsed(p, argv)


def articles(path: Path) -> dict[str, list[Doc]]:
    """The paragraphs of each article, in the order of the file."""
    found: dict[str, list[Doc]] = {}
    for doc in read_squad(path, spacy.blank("en"), ConvertOptions(), Report()):
        found.setdefault(doc.user_data["title"], []).append(doc)
    return found


def parts(folder: Path, name: str) -> dict[str, list[Doc]]:
    """``train``, ``test`` (XQuAD), and of ``all`` also ``dev`` and ``test2`` (SQuAD 2.0)."""
    squad = list(articles(folder / SQUAD).values())[:-HELD_OUT]
    xquad = articles(folder / XQUAD)
    if name == "answerable":
        return {"train": flat(squad), "test": flat(xquad.values())}
    squad2 = articles(folder / SQUAD2)
    own = list(squad2.values())
    shared = {doc.text for docs in own for doc in docs}
    others = [x for x in xquad.values() if not any(doc.text in shared for doc in x)]
    titles = {title.replace("_", " ") for title in squad2}
    others = [x for x in others if x[0].user_data["title"].replace("_", " ") not in titles]
    return {
        "train": flat([*squad, *own[: -2 * HELD_OUT]]),
        "dev": flat(own[-2 * HELD_OUT : -HELD_OUT]),
        "test2": flat(own[-HELD_OUT:]),
        "test": flat(others),
    }


def flat(by_article: Any) -> list[Doc]:
    return [doc for docs in by_article for doc in docs]


def entity_finder(args: argparse.Namespace) -> Language:
    """``luke_ner`` trained on Few-NERD, once a work folder."""
    path = args.work / "ner"
    if not path.exists():
        sentences = list(islice(read(args.data / "few-nerd" / "dev.txt"), NER_SENTENCES + 100))
        store(args.work / "ner-train.spacy", sentences[:NER_SENTENCES])
        store(args.work / "ner-dev.spacy", sentences[NER_SENTENCES:])
        overrides = {
            "paths.train": str(args.work / "ner-train.spacy"),
            "paths.dev": str(args.work / "ner-dev.spacy"),
            "paths.encoder": args.encoder,
            "initialize.after_init.words": NER_WORDS,
            "initialize.after_init.epochs": 1.0,
        }
        nlp, _ = fit(load_config(CONFIGS / "ner.cfg", overrides=overrides), args.gpu_id)
        nlp.to_disk(path)
    return spacy.load(path)


def prepare(args: argparse.Namespace, name: str) -> dict[str, Path]:
    """Files of the parts, with entities of paragraphs and questions."""
    folder = args.work / name
    paths: dict[str, Path] = {}
    nlp = None
    for part, docs in parts(args.data, name).items():
        paths[part] = folder / f"{part}.spacy"
        if not paths[part].exists():
            nlp = nlp or entity_finder(args)
            store(paths[part], with_entities(nlp, docs[: args.limit or None]))
    return paths


def with_entities(nlp: Language, docs: Sequence[Doc]) -> Iterator[Doc]:
    for doc in docs:
        texts = [str(x) for x in get_questions(doc)]
        asked, answers = list(nlp.pipe(texts)), answer_offsets(doc)
        (found,) = nlp.pipe([doc.text])
        found.user_data = dict(doc.user_data)
        set_questions(found, asked)
        set_answer_offsets(found, answers)
        yield found


def run(args: argparse.Namespace, named: results.Record) -> results.Record:
    name, row, seed = named["data"], named["row"], named["seed"]
    paths = prepare(args, name)
    overrides = {
        "paths.train": str(paths["train"]),
        "paths.dev": str(paths["test"]),
        "paths.encoder": args.encoder,
        "system.seed": seed,
        "components.luke_qa.model.entities": ROWS[row],
        "components.luke_qa.no_answer": False,
        "training.batcher.elsewhere": 0.0,
        "initialize.after_init.words": args.words,
        "initialize.after_init.epochs": 0.0,
    }
    config = load_config(CONFIGS / "qa.cfg", overrides=overrides)
    config["corpora"]["dev"]["limit"] = 2  # the last weights count
    nlp, found = fit(config, args.gpu_id)
    pipe: Any = nlp.get_pipe("luke_qa")
    least = None
    if "dev" in paths:
        scores = question_score(answered(nlp, paths["dev"]))
        least = found["threshold"] = scores["qa_best_threshold"]
        found["dev"] = plain(scores)
    for part in [x for x in ("test", "test2") if x in paths]:
        if part == "test2" and least is not None:
            pipe.no_answer, pipe.score_threshold = True, least
        examples = answered(nlp, paths[part])
        found[part] = {**plain(question_score(examples)), **by_question(examples)}
    return found


def answered(nlp: Language, path: Path) -> list[Example]:
    """Gold documents, and the same with the answers of the pipeline."""
    golds = list(DocBin().from_disk(path).get_docs(nlp.vocab))
    copies = [doc.copy() for doc in golds]
    for doc in copies:
        clear_answers(doc)
    predicted = nlp.pipe(copies, batch_size=8)
    return [Example(one, gold) for one, gold in zip(predicted, golds)]


def plain(scores: dict[str, Any]) -> dict[str, float]:
    """The scores that are numbers, in percent where they are shares."""
    counts = ("qa_questions", "qa_unanswerable_questions", "qa_best_threshold")
    return {
        name.removeprefix("qa_"): value if name in counts else 100 * value
        for name, value in scores.items()
        if isinstance(value, int | float)
    }


def by_question(examples: Sequence[Example]) -> dict[str, list]:
    """F1 of each question, and the number of its article."""
    scores, of_article = [], []
    titles = {eg.reference.user_data["title"]: i for i, eg in enumerate(examples)}
    for eg in examples:
        gold = answer_offsets(eg.reference)
        for right, found in zip(gold, answer_offsets(eg.predicted)):
            text = next((eg.predicted.text[a:b] for a, b, _ in found.answers), "")
            golds = [eg.reference.text[a:b] for a, b, _ in right.answers]
            scores.append(round(100 * score_answer(text, golds).f1, 2))
            of_article.append(titles[eg.reference.user_data["title"]])
    return {"each_f1": scores, "articles": of_article}


def table(records: Sequence[results.Record]) -> str:
    """Exact match and F1; and how much better the row with entities is, of the same seeds."""
    lines = []
    for name, part in product(SETS, ("test", "test2")):
        runs: dict[str, dict[int, dict[str, Any]]] = {}
        for record in records:
            if record["data"] == name and part in record:
                runs.setdefault(record["row"], {})[record["seed"]] = record[part]
        for row, of_seeds in runs.items():
            ours, higher = runs.get("entities", {}), "-"
            both = sorted(set(ours) & set(of_seeds))
            if row != "entities" and both:
                values, theirs = ([x[seed]["each_f1"] for seed in both] for x in (ours, of_seeds))
                higher = gain(values, theirs, [ours[seed]["articles"] for seed in both])
            values = list(of_seeds.values())
            lines.append(
                {
                    "trained on": name,
                    "tested on": "XQuAD" if part == "test" else "SQuAD 2.0",
                    "questions": f"{values[0]['questions']:,}",
                    "row": row,
                    "seeds": len(values),
                    "exact match": spread([x["em"] for x in values]),
                    "F1": spread([x["f1"] for x in values]),
                    "F1 with entities is higher by": higher,
                }
            )
    return markdown(pd.DataFrame(lines))


def identities(args: argparse.Namespace) -> list[results.Record]:
    """The runs that were asked for."""
    settings = {"words": args.words, "limit": args.limit, "encoder": Path(args.encoder).name}
    return [
        results.identity(name, row, seed, **settings)
        for seed, name, row in product(args.seeds, args.sets, args.rows)
    ]


def main(argv: Sequence[str] | None = None) -> int:
    return results.main(parse(argv), KIND, identities, run, table)


if __name__ == "__main__":
    sys.exit(main())
