"""Documents of many entities: memory and time of asking about all their pairs, and of learning.

    python -m benchmarks.relation_crowd --encoder DIR --entities 25 50 100 200

A made-up document of so many entities, each named once. Every pair is a candidate, 19,900 of 200
entities, and asked about in both directions at once. Each measurement has a process of its own:
memory is its peak beyond what the pipeline took to answer a document of two entities. Weights are
fresh; what is timed is the network's part, and a training step whose gold relations join
neighbours.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example

from . import results, runtime
from .task_rows import EVERYTHING, RELATION
from .training import base_config, block_of

MODES = ("probe", "markers")


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    p = runtime.parser("relation_crowd", __doc__, "build/crowd", "results.jsonl")
    runtime.add_encoder(p)
    runtime.add_device(p)
    p.add_argument("--modes", nargs="+", choices=MODES, default=["probe"])
    p.add_argument("--entities", nargs="+", type=int, default=[25, 50, 100, 200])
    p.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    return runtime.parsed(p, argv)


def crowd(nlp: Language, n: int) -> Doc:
    """Sentences of two entities each, which are neighbours in a relation."""
    words: list[str] = []
    places = []
    for i in range(n):
        places.append((len(words), len(words) + 2))
        words += [f"Person{i}", "Smith", *(("met", "a", "friend", ",") if i % 2 == 0 else (".",))]
    doc = Doc(nlp.vocab, words=words)
    doc.ents = [Span(doc, start, end, label="PERSON") for start, end in places]
    spans = list(doc.ents)
    doc._.relations = [(spans[i], spans[i + 1], "met") for i in range(0, n - 1, 2)]
    return doc


def build(encoder: str, mode: str) -> Language:
    """``luke_relation`` of the project's config, asked about all pairs."""
    component = block_of(base_config("relation"), "luke_relation")
    component.update(candidates=dict(EVERYTHING), symmetric=[])
    component["model"] = {**component["model"], "mode": mode}
    component["model"]["encoder"] = {**component["model"]["encoder"], "name": encoder}
    nlp = spacy.blank("en")
    nlp.add_pipe(component.pop("factory"), name=RELATION, config=component)
    nlp.initialize(lambda: [Example(given(nlp, 4), crowd(nlp, 4))])
    return nlp


def given(nlp: Language, n: int) -> Doc:
    """The document without its relations."""
    doc = crowd(nlp, n)
    doc._.relations = []
    return doc


def measure(args: argparse.Namespace) -> results.Record:
    """One mode, one number of entities, in this process."""
    runtime.start(args.gpu_id, args.threads)
    (mode,), (n,) = args.modes, args.entities
    nlp = build(args.encoder, mode)
    pipe: Any = nlp.get_pipe(RELATION)
    pipe.predict([given(nlp, 2)])
    doc = given(nlp, n)
    before = runtime.peak_memory(args.gpu_id)
    with runtime.Clock() as predicted:
        asked, scores = pipe.predict([doc])
    after = runtime.peak_memory(args.gpu_id)
    optimizer = nlp.resume_training()
    with runtime.Clock() as learned:
        pipe.update([Example(given(nlp, n), crowd(nlp, n))], sgd=optimizer)
    return {
        "kind": "relation-crowd",
        "mode": mode,
        "n_entities": n,
        "n_words": len(doc),
        "n_pairs": len(scores.rows),
        "predict_seconds": predicted.process if args.gpu_id < 0 else predicted.wall,
        "predict_mib": after - before,
        "update_seconds": learned.process if args.gpu_id < 0 else learned.wall,
        "update_mib": runtime.peak_memory(args.gpu_id) - before,
        "threads": args.threads,
        "device": runtime.device_name(args.gpu_id),
    }


def main(argv: Sequence[str] | None = None) -> int:
    argv = list(sys.argv[1:] if argv is None else argv)
    args = parse(argv)
    if args.one:
        print(json.dumps(measure(args)))
        return 0
    for mode in args.modes:
        for n in args.entities:
            one = ["--one", "--modes", mode, "--entities", str(n)]
            record = runtime.in_fresh_process("relation_crowd", [*argv, *one])
            results.append(args.results, record)
            costs = (
                f"{what} {record[f'{what}_seconds']:.1f} s, {record[f'{what}_mib']:.0f} MiB"
                for what in ("predict", "update")
            )
            print(f"{mode} {n} entities, {record['n_pairs']} pairs:", *costs, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
