"""A fabricated checkpoint of full size: importing, loading, memory, first document.

    python -m benchmarks.checkpoint_load --size luke-base --work build/checkpoint_load

The checkpoint is described in ``fabricated.py``. Both sides answer the same question,
the vectors of two known entities in a sentence, each in a process of its own and in turns: ours
from a pipeline that ``spacy luke import`` made (its table trained, stored, and in half precision),
theirs from the directory, as ``from_pretrained`` reads it. The libraries are imported before the
clock starts. The answers must agree.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from spacy_luke.vocab.entity_index import EntityIndex

from . import results
from .fabricated import SIZES, fabricate, title

SIDES = ("trained", "stored", "half", "transformers")
PRECISE = {"trained": 1e-4, "stored": 1e-4, "half": 5e-2, "transformers": 0.0}
TEXT = "Ada Lovelace was born in London , and Tokyo is far away ."
MENTIONS = ((0, 12, 17), (25, 31, 4711))  # characters, and the number of the title


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    p = argparse.ArgumentParser(prog="python -m benchmarks.checkpoint_load", description=__doc__)
    p.add_argument("--size", choices=list(SIZES), default="luke-base")
    p.add_argument("--work", type=Path, default=Path("build/checkpoint_load"))
    p.add_argument("--results", type=Path, help="default: results.jsonl in --work")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--measure", nargs=2, metavar=("SIDE", "DIR"), help=argparse.SUPPRESS)
    args = p.parse_args(argv)
    args.results = args.results or args.work / "results.jsonl"
    return args


# One side, in a process of its own


def measure(side: str, directory: Path, size: str) -> dict[str, Any]:
    """Seconds and MiB of loading and of the first document; the vectors for comparison."""
    load, ask = (_theirs if side == "transformers" else _ours)(directory, size)
    names = {} if side == "transformers" else _vocabulary(directory, size)
    before = _status()
    started = time.perf_counter()
    loaded = load()
    seconds = time.perf_counter() - started
    after = _status()
    started = time.perf_counter()
    vectors = ask(loaded)
    first = time.perf_counter() - started
    end = _status()
    return {
        "load_seconds": seconds,
        "first_document_seconds": first,
        "loaded_mib": after["private"] - before["private"],
        "used_mib": end["private"] - before["private"],
        "mapped_mib": end["mapped"] - before["mapped"],
        "peak_mib": _status()["peak"],
        "vectors": np.asarray(vectors).tolist(),
        **names,
    }


def _vocabulary(directory: Path, size: str) -> dict[str, float]:
    """Opening the vocabulary alone, and looking up twenty names."""
    before = _status()
    started = time.perf_counter()
    index = EntityIndex.open(directory / "luke" / "encoder" / "entities")
    for i in range(20):
        index[title(size, 3 + i * 211)]
    return {
        "names_seconds": time.perf_counter() - started,
        "names_mib": _status()["private"] - before["private"],
    }


_KEYS = {"private": "RssAnon", "mapped": "RssFile", "peak": "VmHWM"}


def _status() -> dict[str, float]:
    """MiB of this process in memory: its own, what is mapped from files (which the system may drop
    and share), and the most there was of both."""
    lines = dict(x.split(":", 1) for x in Path("/proc/self/status").read_text().splitlines())
    return {name: int(lines[key].split()[0]) / 1024 for name, key in _KEYS.items()}


_Side = tuple[Callable[[], Any], Callable[[Any], Any]]


def _ours(directory: Path, size: str) -> _Side:
    import spacy

    from . import runtime

    runtime.start(-1, 1)
    model = {"@architectures": "spacy-luke.LukeEncoder.v1", "name": "none"}
    spacy.blank("en").add_pipe("luke", config={"model": model})  # imports what spaCy imports late

    def ask(nlp: Any) -> Any:
        doc = nlp.make_doc(TEXT)
        doc.ents = [
            doc.char_span(a, b, label="X", kb_id=title(size, number)) for a, b, number in MENTIONS
        ]
        return nlp.get_pipe("luke")(doc)._.luke.entity_vectors

    return lambda: spacy.load(directory), ask


def _theirs(directory: Path, size: str) -> _Side:
    import torch
    import transformers

    torch.set_num_threads(1)
    multilingual = "language" in SIZES[size]
    tokenizer_type = transformers.MLukeTokenizer if multilingual else transformers.LukeTokenizer
    kinds = tokenizer_type, transformers.LukeModel  # imported when they are named

    def load() -> Any:
        tokenizer, model = (kind.from_pretrained(directory) for kind in kinds)
        return tokenizer, model.eval()

    def ask(loaded: Any) -> Any:
        tokenizer, model = loaded
        inputs = tokenizer(
            TEXT,
            entities=[title(size, number) for _, _, number in MENTIONS],
            entity_spans=[(a, b) for a, b, _ in MENTIONS],
            return_tensors="pt",
        )
        with torch.no_grad():
            return model(**inputs).entity_last_hidden_state[0].numpy()

    return load, ask


# All sides, in turns


def main(argv: Sequence[str] | None = None) -> int:
    args = parse(argv)
    if args.measure:
        side, directory = args.measure
        print(json.dumps(measure(side, Path(directory), args.size)))
        return 0
    folder = args.work / args.size
    published = fabricate(folder, args.size)
    pipelines = {side: folder / side for side in SIDES[:3]}
    for form, path in pipelines.items():
        if not path.exists():
            _import(published, path, form, args)
    pipelines["transformers"] = published
    for _ in range(args.rounds):
        found = {side: _run(side, pipelines[side], args) for side in SIDES}
        compare(found)
        for side, record in found.items():
            record |= {"kind": "load", "size": args.size, "side": side}
            results.append(args.results, record)
    print(table(results.read([args.results])))
    return 0


def compare(found: dict[str, dict[str, Any]]) -> None:
    """Put the largest ``difference`` in the place of every side's vectors; exits where one is too
    large."""
    expected = np.asarray(found["transformers"].pop("vectors"))
    for side, record in found.items():
        if side != "transformers":
            away = float(np.abs(np.asarray(record.pop("vectors")) - expected).max())
            if not away <= PRECISE[side]:
                raise SystemExit(f"{side}: the vectors differ by {away:.1e}.")
            record["difference"] = away


def _import(published: Path, out: Path, form: str, args: argparse.Namespace) -> None:
    """``spacy luke import`` and, for another form, ``entity-table``: timed, as a user runs them."""
    luke = [sys.executable, "-m", "spacy", "luke"]
    if form == "trained":
        command = [*luke, "import", str(published), str(out), "--lang", "en"]
    else:
        command = [*luke, "entity-table", str(out.with_name("trained")), str(out), "--form", form]
    started = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    seconds = time.perf_counter() - started
    record = {"kind": "import", "size": args.size, "side": form, "seconds": seconds}
    results.append(args.results, record)


def _run(side: str, directory: Path, args: argparse.Namespace) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.checkpoint_load", "--size", args.size]
    command += ["--measure", side, str(directory)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(output.strip().split("\n")[-1])


_COLUMNS = {
    "load_seconds": "load, s",
    "first_document_seconds": "first document, s",
    "loaded_mib": "memory after loading, MiB",
    "used_mib": "after the document",
    "mapped_mib": "mapped from files",
    "peak_mib": "peak of the process",
}


def table(records: Sequence[dict[str, Any]]) -> str:
    """Medians of the rounds, with the range of the seconds, as Markdown."""
    import pandas as pd  # not in the processes that are measured

    from .markdown import markdown

    frame = pd.DataFrame(records)
    loads, parts = frame[frame.kind == "load"], []
    imports = frame[frame.kind == "import"].reindex(columns=["size", "side", "seconds"])
    for size, rounds in loads.groupby("size", sort=False):
        shown = rounds.groupby("side", sort=False)[list(_COLUMNS)].agg(_median)
        made = imports[imports["size"] == size].groupby("side").seconds.last()
        shown = shown.rename(columns=_COLUMNS).assign(**{"import, s": made.map("{:.1f}".format)})
        parts += [f"**{size}**", markdown(shown.reset_index())]
        names = rounds.reindex(columns=["names_seconds", "names_mib"]).median()
        parts.append(
            f"The vocabulary alone, and 20 names: {names.iloc[0]:.4f} s, {names.iloc[1]:.1f} MiB."
        )
    return "\n\n".join(parts)


def _median(values: Any) -> str:
    if "seconds" not in str(values.name):
        return f"{values.median():,.0f}"
    return f"{values.median():.2f} ({values.min():.2f}-{values.max():.2f})"


if __name__ == "__main__":
    sys.exit(main())
