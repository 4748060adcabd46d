"""Words per second on a GPU: of components, for limits of blocks, and for the optimizer's step.

    python -m benchmarks.gpu_speed --gpu-id 0
    python -m benchmarks.gpu_speed --table --results benchmarks/results/gpu_speed.jsonl

Random weights of base size, sentences of the first corpus that is there (see ``peer_speed``).
``blocks``: a prediction and an update of a batch, for the limits of ``model/packing.py``. ``step``:
an update whose Adam steps parameter by parameter, as Thinc's does, and all at once
(``layers/adam.py``), in turns.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Any

import pandas as pd
import torch
from spacy.tokens import Doc, Span
from spacy.training import Example
from thinc.api import Adam

from spacy_luke.layers import adam, shim
from spacy_luke.model import packing

from . import results, runtime
from .datasets import default_folder
from .gpu_checks import CASES, Bench, Case
from .markdown import markdown
from .peer_data import read_sentences

KIND = "gpu-speed"
LIMITS = {"1": (1.0, 4_000_000), "3": (3.0, 4_000_000), "3, larger": (3.0, 30_000_000)}
"""Most waste, and scores of a block."""
STEPS: dict[str, Callable[..., bool]] = {
    "one by one": lambda optimizer, changes: False,
    "at once": adam.applies,
}
_LENGTHS = range(4, 60)


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    p = runtime.parser("gpu_speed", __doc__, "build/gpu-speed", "gpu_speed.jsonl")
    p.formatter_class = argparse.RawDescriptionHelpFormatter
    runtime.add_device(p)
    p.add_argument("--tiny", action="store_true", help="a small network, to see whether it runs")
    p.add_argument("--sentences", nargs="+", type=int, default=[32, 256], help="of a batch")
    p.add_argument("--cases", nargs="+", choices=[x.name for x in CASES], default=None)
    p.add_argument("--rounds", type=int, default=4)
    p.add_argument("--table", action="store_true", help="print what the results hold")
    args = runtime.parsed(p, argv)
    args.emulate = False
    return args


def batch(n: int) -> list[Example]:
    """Sentences with entities of one word, and a relation."""
    sentences = [x for x in read_sentences(default_folder())[1] if len(x) in _LENGTHS]
    return [Example(_annotated(x), _annotated(x)) for x in sentences[:n]]


def _annotated(sentence: Doc) -> Doc:
    doc = sentence.copy()
    starts = range(0, len(doc) - 1, max(2, len(doc) // 4))
    doc.ents = [Span(doc, i, i + 1, label="LOC") for i in starts]
    doc._.relations = [(doc.ents[0], doc.ents[-1], "a")]
    return doc


def blocks(args: argparse.Namespace, named: results.Record) -> results.Record:
    """Seconds of rounds, and MiB, by limit. The limits take turns."""
    pipe, examples = _pipeline(args, named)
    docs = [example.predicted for example in examples]
    ways = {"predict": partial(pipe.predict, docs)}
    optimizer = Adam(1e-6, use_averages=False)
    ways["update"] = partial(pipe.update, examples, sgd=optimizer, drop=0.1)
    seconds: dict[str, dict[str, list[float]]] = {x: {y: [] for y in LIMITS} for x in ways}
    peaks = dict.fromkeys(LIMITS, 0.0)
    usual = packing._LIMITS_ELSEWHERE
    try:
        for round_number, (limit, name) in product(range(args.rounds + 2), product(LIMITS, ways)):
            packing._LIMITS_ELSEWHERE = packing.Limits(*LIMITS[limit])
            runtime.reset_peak(args.gpu_id)
            taken = _seconds(ways[name])
            peaks[limit] = max(peaks[limit], runtime.peak_memory(args.gpu_id))
            if round_number > 1:
                seconds[name][limit].append(taken)
    finally:
        packing._LIMITS_ELSEWHERE = usual
    words = sum(map(len, docs))
    return {"words": words, **seconds, "peak_mib": peaks, **_machine(args)}


def step(args: argparse.Namespace, named: results.Record) -> results.Record:
    """Seconds of an update by way, in turns."""
    pipe, examples = _pipeline(args, named)
    optimizers = {name: Adam(1e-6, use_averages=False) for name in STEPS}
    seconds: dict[str, list[float]] = {name: [] for name in STEPS}
    for round_number, (name, applies) in product(range(args.rounds + 2), STEPS.items()):
        shim.applies = applies
        run = partial(pipe.update, examples, sgd=optimizers[name], drop=0.1)
        taken = _seconds(run)
        if round_number > 1:
            seconds[name].append(taken)
    shim.applies = adam.applies
    words = sum(len(example.predicted) for example in examples)
    return {"words": words, "seconds": seconds, **_machine(args)}


def _pipeline(args: argparse.Namespace, named: results.Record) -> tuple[Any, list[Example]]:
    case: Case = next(x for x in CASES if x.name == named["settings"]["case"])
    half = named["settings"]["bf16"]
    _, pipe, _ = Bench(args).initialized(case, mixed_precision=half)
    return pipe, batch(named["settings"]["sentences"])


def _seconds(run: Callable[[], Any]) -> float:
    with runtime.Clock() as clock:
        run()
    return clock.wall


def _machine(args: argparse.Namespace) -> results.Record:
    return {"device": runtime.device_name(args.gpu_id), "torch": torch.__version__}


RUNS = {"blocks": blocks, "step": step}


def run(args: argparse.Namespace, named: results.Record) -> results.Record:
    return RUNS[named["row"]](args, named)


def table(records: Sequence[results.Record]) -> str:
    """Medians of rounds."""
    lines: dict[str, list[dict[str, Any]]] = {name: [] for name in RUNS}
    for record in records:
        settings, words = record["settings"], record["words"]
        start = {"case": settings["case"], "precision": "bf16" if settings["bf16"] else "fp32"}
        start["sentences"] = settings["sentences"]
        if record["row"] == "step":
            seconds = {f"update, {x}, ms": _median(y) for x, y in record["seconds"].items()}
            lines["step"].append(start | {x: f"{1e3 * y:.0f}" for x, y in seconds.items()})
            continue
        for limit, peak in record["peak_mib"].items():
            line = start | {"most waste": limit}
            for name in ("predict", "update"):
                median = _median(record[name][limit])
                line[f"{name}, ms"] = f"{1e3 * median:.0f}"
                line[f"{name}, words/s"] = f"{words / median:,.0f}"
            lines["blocks"].append(line | {"peak GiB": f"{peak / 2**10:.1f}"})
    return "\n\n".join(markdown(pd.DataFrame(x)) for x in lines.values() if x)


def _median(seconds: Sequence[float]) -> float:
    return float(pd.Series(seconds).median())


def identities(args: argparse.Namespace) -> list[results.Record]:
    """The runs that were asked for."""
    chosen = [x.name for x in CASES if args.cases is None or x.name in args.cases]
    runs = [
        results.identity("sentences", "blocks", 0, case=x, bf16=half, sentences=n)
        for x, half, n in product(chosen, (True, False), args.sentences)
    ]
    runs += [
        results.identity("sentences", "step", 0, case=chosen[0], bf16=half, sentences=n)
        for half, n in product((True, False), args.sentences)
    ]
    return runs


def main(argv: Sequence[str] | None = None) -> int:
    return results.main(parse(argv), KIND, identities, run, table)


if __name__ == "__main__":
    sys.exit(main())
