"""Seconds to read one long document for training and to cut it into batches, without a network.

    python -m benchmarks.long_training --words 8000 32000

A fabricated document of sentences of 20 words, with an entity in every 15, by the reader and the
batcher of ``configs/ner.cfg``. Seconds a word stay the same if time is in proportion to the length.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import spacy
from spacy.tokens import Doc, DocBin, Span
from spacy.util import load_config, registry

from . import runtime
from .markdown import markdown

CONFIG = Path(__file__).resolve().parents[1] / "configs" / "ner.cfg"


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    p = runtime.parser("long_training", __doc__, "build/long-training", "long_training.jsonl")
    p.formatter_class = argparse.RawDescriptionHelpFormatter
    p.add_argument("--words", nargs="+", type=int, default=[8_000, 32_000])
    return runtime.parsed(p, argv)


def write(path: Path, n: int) -> None:
    vocab = spacy.blank("en").vocab
    words = [f"Word{i % 997}" for i in range(n)]
    doc = Doc(vocab, words=words, sent_starts=[i % 20 == 0 for i in range(n)])
    doc.ents = [Span(doc, i, i + 2, label="X") for i in range(3, n - 2, 15)]
    DocBin(docs=[doc]).to_disk(path)


def measure(path: Path) -> dict[str, float]:
    """Process seconds."""
    overrides = {f"paths.{name}": str(path) for name in ("train", "dev")}
    config = load_config(CONFIG, overrides=overrides).interpolate()
    blocks = {"corpora": config["corpora"], "batcher": config["training"]["batcher"]}
    made = registry.resolve(blocks)
    with runtime.Clock() as reading:
        examples = list(made["corpora"]["train"](spacy.blank("en")))
    with runtime.Clock() as cutting:
        n_words = sum(len(eg.reference) for batch in made["batcher"](examples) for eg in batch)
    assert n_words == sum(len(eg.reference) for eg in examples)
    return {"read, s": reading.process, "cut, s": cutting.process}


def main(argv: Sequence[str] | None = None) -> int:
    args = parse(argv)
    runtime.start(-1, 1)
    args.work.mkdir(parents=True, exist_ok=True)
    rows = []
    for n in args.words:
        path = args.work / f"{n}.spacy"
        write(path, n)
        found = {name: round(seconds, 2) for name, seconds in measure(path).items()}
        rows.append({"words": n, **found})
    print(markdown(pd.DataFrame(rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
