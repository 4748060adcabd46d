"""Finding entities whose names are written differently: ``luke_linker`` on diseases.

    python -m benchmarks.linking_finding --encoder DIR --data FOLDER --results results.jsonl
    python -m benchmarks.linking_finding --table --results results.jsonl

The knowledge base is the Disease Ontology, the mentions are those of the development part of the
NCBI disease corpus; mentions without an entity are "NIL". Rows are candidates by aliases (equal,
then similar), and also by the nearest vectors of names; without training, and trained on the
corpus's training part, beside spaCy's ``entity_linker`` on the same encoder and steps, with
candidates by aliases. Nothing is tuned.
"""

import argparse
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.util import filter_spans

from spacy_luke.kb.build import build_kb
from spacy_luke.kb.entity import NIL, Findings
from spacy_luke.kb.knowledge_base import MappedKB
from spacy_luke.pipeline.entity_vectors import make_name_vectors, make_vectors

from . import results, runtime
from .datasets import default_folder, store
from .linking_data import disease_references, diseases
from .linking_training import config_of
from .markdown import markdown, spread
from .training import fit

UNTRAINED = ("aliases and nearest names", "aliases")  # the second drops the vectors of names
TRAINED = {
    "aliases and nearest names, trained": "luke_linker",
    "entity_linker, trained": "entity_linker",
}
Gold = Mapping[tuple[int, int], frozenset[str]]


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    p = runtime.parser("linking_finding", __doc__, "build/linking", "linking_finding.jsonl")
    runtime.add_encoder(p)
    runtime.add_device(p)
    p.add_argument("--data", type=Path, default=default_folder(), help="folder of the data sets")
    p.add_argument("--rows", nargs="+", choices=[*UNTRAINED, *TRAINED], default=[*UNTRAINED])
    p.add_argument("--seeds", nargs="+", type=int, default=[0], help="of training")
    p.add_argument("--words", type=int, default=300_000, help="least words seen in training")
    p.add_argument("--table", action="store_true", help="print what the results hold")
    return runtime.parsed(p, argv)


def make_linker(args: argparse.Namespace) -> Language:
    """A pipeline with a linker, whose knowledge base has vectors of entities and names."""
    entities, _ = diseases(args.data, args.work)
    build_kb(iter(entities), args.work / "diseases.kb", "en", findings=Findings())
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    encoder = {"@architectures": "spacy-luke.LukeEncoder.v1", "name": args.encoder}
    linker: Any = nlp.add_pipe("luke_linker", config={"model": {"encoder": encoder}})
    linker.set_kb(lambda vocab: MappedKB.open(args.work / "diseases.kb", vocab))
    nlp.initialize()
    make_vectors(nlp, linker.kb, half=True, component="luke_linker")
    make_name_vectors(nlp, linker.kb, half=True, component="luke_linker")
    return nlp


def read_abstracts(
    nlp: Language, folder: Path, part: str = "develop"
) -> Iterator[tuple[Doc, Gold]]:
    """Abstracts with mentions (of those that share tokens the longest), and the ids that each
    means: none if it is "NIL"."""
    known = disease_references(folder)
    texts: dict[str, str] = {}
    rows: dict[str, list[list[str]]] = {}
    path = folder / "disease-linking" / f"NCBI{part}set_corpus.txt"
    for line in path.read_text("utf8").split("\n"):
        fields = line.split("\t")
        if len(fields) == 6:
            rows.setdefault(fields[0], []).append(fields)
        elif line.count("|") >= 2:
            number, _, text = line.split("|", 2)
            texts[number] = f"{texts[number]} {text}" if number in texts else text
    for number, text in texts.items():
        doc = nlp.make_doc(text)
        gold = {}
        spans = []
        for _, start, end, _, _, names in rows.get(number, ()):
            span = doc.char_span(int(start), int(end), label="DISEASE", alignment_mode="expand")
            assert span is not None
            ids = [x.strip() for x in names.replace("+", "|").split("|")]
            gold[span.start, span.end] = frozenset().union(*(known.get(x, ()) for x in ids))
            spans.append(span)
        doc.set_ents(filter_spans(spans))
        yield doc, gold


def fit_row(args: argparse.Namespace, row: str, seed: int) -> Language:
    """A trained pipeline. Of several ids of a mention the first is learned."""
    folder = args.work / "diseases.train"
    if not (folder / "train.spacy").exists():
        nlp = make_linker(args)
        linker: Any = nlp.get_pipe("luke_linker")
        linker.kb.to_disk(folder / "kb")
        docs = []
        for doc, gold in read_abstracts(nlp, args.data, "train"):
            ids = {x: min(gold[x.start, x.end], default=NIL) for x in doc.ents}
            doc.set_ents([Span(doc, x.start, x.end, x.label_, kb_id=y) for x, y in ids.items()])
            docs.append(doc)
        store(folder / "dev.spacy", docs[:2])
        store(folder / "train.spacy", docs)
    args.set = [("initialize.after_init.words", str(args.words))]
    config = config_of(args, TRAINED[row], "en", folder, seed, fuzzy="fallback")
    return fit(config, args.gpu_id)[0]


def run(nlp: Language, abstracts: Sequence[tuple[Doc, Gold]], row: str) -> results.Record:
    linker: Any = nlp.get_pipe("luke_linker")
    if row == "aliases":
        linker.kb.tables.name_vectors = None
    start = time.perf_counter()
    docs = list(nlp.pipe([doc.copy() for doc, _ in abstracts]))
    seconds = time.perf_counter() - start
    mentions = [
        (ent, gold[ent.start, ent.end])
        for doc, (_, gold) in zip(docs, abstracts)
        for ent in doc.ents
    ]
    with_id = [(ent, ids) for ent, ids in mentions if ids]
    nil = [not ids for ent, ids in mentions if ent.kb_id_ == "NIL"]
    shown = [({x for x, _ in (ent._.candidates or ())[:30]}, ids) for ent, ids in with_id]
    return {
        "mentions": len(with_id),
        "nil_mentions": len(mentions) - len(with_id),
        "right": sum(ent.kb_id_ in ids for ent, ids in with_id),
        "among_30": sum(bool(found & ids) for found, ids in shown),
        "nil": len(nil),
        "nil_right": sum(nil),
        "seconds": seconds,
    }


def table(records: Sequence[results.Record]) -> str:
    """Accuracy (of several seeds: mean and standard deviation); the other figures are sums."""
    lines = []
    for row in dict.fromkeys(x["row"] for x in records):
        runs = pd.DataFrame([x for x in records if x["row"] == row])
        total = runs.sum(numeric_only=True)
        n_all = total["mentions"] + total["nil_mentions"]
        found = total["among_30"]
        lines.append(
            {
                "candidates": row,
                "accuracy": spread((100 * runs["right"] / runs["mentions"]).tolist()),
                "recall at 30": f"{100 * found / total['mentions']:.1f}" if found else "-",
                '"NIL": right of written': f"{total['nil_right']:.0f} of {total['nil']:.0f}",
                "ms a mention": f"{1000 * total['seconds'] / n_all:.0f}",
            }
        )
    return markdown(pd.DataFrame(lines))


def main(argv: Sequence[str] | None = None) -> int:
    args = parse(argv)
    if args.table:
        print(table(results.of_kind(args.results, "linking_finding")))
        return 0
    runtime.start(args.gpu_id, args.threads)
    args.work.mkdir(parents=True, exist_ok=True)
    untrained = make_linker(args) if set(args.rows) & set(UNTRAINED) else None
    for row in [x for x in (*UNTRAINED, *TRAINED) if x in args.rows]:
        for seed in args.seeds if row in TRAINED else [0]:
            nlp = fit_row(args, row, seed) if row in TRAINED else untrained
            assert nlp is not None
            outcome = run(nlp, list(read_abstracts(nlp, args.data)), row)
            record = {"kind": "linking_finding", "row": row, "encoder": Path(args.encoder).name}
            of_training = {"seed": seed, "words": args.words} if row in TRAINED else {}
            results.append(args.results, {**record, **of_training, **outcome})
            print(f"{row}: done", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
