"""Random documents through six pipelines: the same answers in any company, and flat memory.

    python -m benchmarks.many_documents --docs 20000 --seed 1
    python -m benchmarks.many_documents --long
    python -m benchmarks.many_documents --plot docs/many_documents.svg

Tiny networks, made on the spot. Every document is predicted five times: one at a time, in batches
of 16 and 64, in another order, and with a random half of the documents removed. Scores have to
agree within 1e-5. Each pipeline has a process of its own; a chunk of documents is one
``nlp.memory_zone()``, after which the memory of the process is measured; at the end also what
remains when the allocator has given back what is free. ``--long`` compares the
time per word of one document of 30,000 words and of several in one batch.
"""

import argparse
import json
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import spacy
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from thinc.api import Adam, fix_random_seed

from . import results, runtime
from .fabricated import fabricate
from .random_documents import random_documents

PIPELINES = ("two-stage", "probe", "nested", "relation", "typing", "joint")
PRECISION = 1e-5
THRESHOLD = 0.3
_CHUNK = 500
_LONG = (1, 2, 4, 8)
_TRAINING = (
    ("Ada Lovelace was born in London .", ((0, 2, "PER"), (5, 6, "LOC"))),
    ("Tokyo is the capital of Japan .", ((0, 1, "LOC"), (5, 6, "LOC"))),
    ("The University of Tokyo lives with Charles Babbage .", ((1, 4, "ORG"), (6, 8, "PER"))),
    ("nothing here at all .", ()),
)
Answers = dict[tuple, float]


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    p = runtime.parser("many_documents", __doc__, "build/many", "many.jsonl")
    runtime.add_device(p)
    p.add_argument("--docs", type=int, default=20_000)
    p.add_argument("--seed", type=int, default=0, help="of the documents")
    p.add_argument("--pipelines", nargs="+", choices=PIPELINES, default=list(PIPELINES))
    p.add_argument("--long", action="store_true", help="time per word of long documents")
    p.add_argument("--words", type=int, default=30_000, help="of a long document")
    p.add_argument("--rounds", type=int, default=3, help="of long documents")
    p.add_argument("--plot", type=Path, help="draw the memory that the results hold, and end")
    p.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    return runtime.parsed(p, argv)


def build(name: str, work: Path) -> Language:
    """A pipeline that was trained for some steps, so that its scores are not all alike."""
    fix_random_seed(0)
    own: dict[str, Any] = {
        "@architectures": "spacy-luke.LukeEncoder.v1", "name": str(fabricate(work / "tiny", "tiny"))
    }  # fmt: skip
    encoder = {"@architectures": "spacy-luke.LukeListener.v1"} if name == "joint" else own
    nlp = spacy.blank("en")
    if name == "joint":
        nlp.add_pipe("luke", config={"model": own})
    if name in ("two-stage", "probe", "nested", "joint"):
        mode = {"nested": "full", "joint": "two-stage"}.get(name, name)
        config = {"nested": name == "nested", "threshold": THRESHOLD, "nil_bias": 3.0}
        suggester = {"@misc": "spacy-luke.sentence_spans_suggester.v1", "max_words": 4}
        model = {"mode": mode, "layout": "document", "encoder": encoder}
        nlp.add_pipe("luke_ner", config={"model": model, "suggester": suggester, **config})
    for task, factory in (("relation", "luke_relation"), ("typing", "luke_entity_typing")):
        if name in (task, "joint"):
            model = {"mode": "probe", "encoder": encoder}
            nlp.add_pipe(factory, config={"model": model, "threshold": THRESHOLD})
    examples = [_example(nlp, name, text.split(), ents) for text, ents in _TRAINING]
    nlp.initialize(lambda: examples)
    optimizer = Adam(0.003)
    for _ in range(20):
        nlp.update(examples, sgd=optimizer, drop=0.1)
    return nlp


def _example(nlp: Language, name: str, words: list[str], ents: Sequence[tuple]) -> Example:
    doc, gold = Doc(nlp.vocab, words=words), Doc(nlp.vocab, words=words)
    for one in (doc, gold):
        one.ents = [Span(one, start, end, label=label) for start, end, label in ents]
    gold.spans["luke_ner"] = list(gold.ents)
    for component in nlp.pipe_names:
        if component == "luke_relation":
            spans = list(gold.ents)
            gold._.relations = [(a, b, "near") for a, b in zip(spans, spans[1:])]
        if component == "luke_entity_typing":
            for span in gold.ents:
                span._.types = {f"/{span.label_.lower()}": 1.0}
    return Example(doc, gold)


def answers(doc: Doc) -> Answers:
    """Every answer of the components with its score."""
    found: Answers = {}
    group = doc.spans.get("luke_ner", ())
    for span, score in zip(group, group.attrs["scores"] if group else ()):
        found["span", span.start, span.end, span.label_] = float(score)
    for key, value in doc.user_data.items():
        if key[1] == "types":
            found |= {(*key[1:], label): score for label, score in value.items()}
        elif key[1] == "luke_relations":
            found |= {(*key[1:], *row[:-1]): row[-1] for row in value}
    return found


def difference(one: Answers, other: Answers) -> float:
    """The largest difference of two scores. An answer that only one side has is compared with the
    threshold, below which no answer is written."""
    keys = one.keys() | other.keys()
    return max((abs(one.get(x, THRESHOLD) - other.get(x, THRESHOLD)) for x in keys), default=0.0)


def check(nlp: Language, seed: str, n: int) -> tuple[list[float], int]:
    """Predict a chunk of documents in five ways. Returns the difference of every document
    and the number of answers."""
    rng = random.Random(seed)
    order = list(range(n))
    shuffled, half = rng.sample(order, n), sorted(rng.sample(order, n // 2))
    ways = ((order, 1), (order, 16), (order, 64), (shuffled, 32), (half, 64))
    differences = [0.0] * n
    expected: list[Answers] = []
    for chosen, batch_size in ways:
        docs = list(random_documents(nlp.vocab, n, seed))
        predicted = nlp.pipe([docs[i] for i in chosen], batch_size=batch_size)
        found = {i: answers(doc) for i, doc in zip(chosen, predicted)}
        expected = expected or [found[i] for i in order]
        for i, given in found.items():
            differences[i] = max(differences[i], difference(expected[i], given))
    return differences, sum(map(len, expected))


def measure(args: argparse.Namespace) -> results.Record:
    """One pipeline, in this process."""
    (name,) = args.pipelines
    nlp = build(name, args.work)
    differences: list[float] = []
    n_answers, mib, start = 0, [], time.process_time()
    for chunk in range(0, args.docs, _CHUNK):
        with nlp.memory_zone():
            found, n = check(nlp, f"{args.seed} {chunk}", min(_CHUNK, args.docs - chunk))
        differences += found
        n_answers += n
        mib.append(round(runtime.resident(), 1))
    worst, changed = max(differences), sum(not x <= PRECISION for x in differences)
    return {
        "kind": "many-documents", "pipeline": name, "n_docs": args.docs, "seed": args.seed,
        "n_answers": n_answers, "worst": worst, "n_changed": changed, "chunk": _CHUNK,
        "mib": mib, "mib_trimmed": round(runtime.resident_trimmed(), 1),
        "seconds": time.process_time() - start,
        "device": runtime.device_name(args.gpu_id), "threads": args.threads,
    }  # fmt: skip


def measure_long(args: argparse.Namespace) -> None:
    """Seconds per word of 1 to 8 long documents in one batch, of the first pipeline named."""
    nlp = build(args.pipelines[0], args.work)

    def predict(name: str) -> runtime.Clock:
        docs = []
        for i in range(int(name)):
            words = [f"w{(7 * j + i) % 500}" for j in range(args.words)]
            docs.append(Doc(nlp.vocab, words=words))
        with runtime.Clock() as clock:
            list(nlp.pipe(docs, batch_size=len(docs)))
        return clock

    for found in runtime.interleave(list(map(str, _LONG)), args.rounds, predict, args.gpu_id):
        record = {"kind": "long-documents", "pipeline": args.pipelines[0], "n_words": args.words}
        results.append(args.results, {**record, "threads": args.threads, **found})
        seconds = {int(n): min(times) / int(n) for n, times in found["seconds"].items()}
        shown = ", ".join(f"{n}: {1e6 * x / args.words:.0f}" for n, x in seconds.items())
        print(f"{found['clock']} microseconds per word, by documents in a batch: {shown}")


def plot(records: Sequence[results.Record], path: Path) -> None:
    """Memory of the process over the documents, a line per pipeline."""
    figure = Figure(figsize=(8, 4))
    FigureCanvasAgg(figure)  # pyplot would choose a backend for the whole process
    axes = figure.subplots()
    for record in records:
        at = [record["chunk"] * (i + 1) for i in range(len(record["mib"]))]
        axes.plot(at, record["mib"], label=record["pipeline"])
    axes.set(xlabel="distinct documents, each predicted five times", ylabel="MiB", ylim=(0, None))
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, ncols=3)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main(argv: Sequence[str] | None = None) -> int:
    argv = list(sys.argv[1:] if argv is None else argv)
    args = parse(argv)
    if args.plot:
        found = results.of_kind(args.results, "many-documents")
        plot(list({x["pipeline"]: x for x in found}.values()), args.plot)
        return 0
    runtime.start(args.gpu_id, args.threads)
    if args.long:
        measure_long(args)
        return 0
    if args.one:
        print(json.dumps(measure(args)))
        return 0
    changed = 0
    for name in args.pipelines:
        one = [*argv, "--one", "--pipelines", name]
        record = runtime.in_fresh_process("many_documents", one)
        results.append(args.results, record)
        changed += record["n_changed"]
        worst, mib, kept = record["worst"], record["mib"], record["mib_trimmed"]
        print(
            f"{name}: {record['n_docs']:,} documents, {record['n_answers']:,} answers, largest "
            f"difference {worst:.1e}, {mib[0]:.0f} to {mib[-1]:.0f} MiB, {kept:.0f} in use",
            flush=True,
        )
    return int(changed > 0)


if __name__ == "__main__":
    sys.exit(main())
