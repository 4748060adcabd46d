"""What one shared encoder saves: bytes on disk, memory, and time, of saved pipelines."""

import argparse
import json
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import spacy
from spacy.language import Language
from spacy.tokens import Doc
from thinc.api import Config, Model

from spacy_luke.layers.listener import is_listener

from . import results, runtime
from .datasets import load
from .rows import changed
from .training import base_config

CONFIGS = {"encyclopedia": "joint", "encyclopedia-all": "all"}
LAYOUTS = ("joint", "separate", "nothing")
UNSHARED = "joint, words encoded anew"


def tasks(config: Config) -> list[str]:
    """The components of a shipped config that listen to the shared encoder."""
    return [name for name in config["nlp"]["pipeline"] if name.startswith("luke_")]


def folder(args: argparse.Namespace, data: str, row: str, name: str) -> Path:
    return args.work / "models" / data / row / name


def folders(args: argparse.Namespace, row: str) -> list[Path]:
    """Those of a layout, in the order in which its pipelines run."""
    data = args.data_sets[0]
    separate = tasks(base_config(CONFIGS[data]))
    names = {"joint": ["joint"], "separate": separate, "nothing": []}[row]
    return [folder(args, data, row, name) for name in names]


def load_layout(args: argparse.Namespace, row: str) -> list[Language]:
    """The pipelines of a layout, to be run one after the other."""
    found = folders(args, row)
    for path in found:
        if not path.exists():
            raise SystemExit(f"{path} is not there: train first, with the same --work.")
    return [spacy.load(path) for path in found]


def test_texts(args: argparse.Namespace) -> list[str]:
    docs = load(args.data / "test.spacy")
    return [doc.text for doc in docs[: args.docs or None]]


def run(pipelines: Sequence[Language], texts: Sequence[str]) -> list[Doc]:
    """Each pipeline annotates what the one before it has made."""
    docs: list[Any] = list(texts)
    for nlp in pipelines:
        docs = list(nlp.pipe(docs, batch_size=32))
    return docs


def print_memory(args: argparse.Namespace) -> None:
    """MiB in memory after predicting a few documents; meant for a process of its own. Of
    ``nothing``, what Python and its libraries take."""
    pipelines = load_layout(args, args.memory_of)
    run(pipelines, test_texts(args)[:4])
    print(json.dumps(runtime.resident()))


def memory_of(row: str, argv: Sequence[str]) -> float:
    """What :func:`print_memory` prints in a fresh process."""
    return runtime.in_fresh_process("joint", [*argv, "--memory-of", row])


def measure(args: argparse.Namespace, argv: Sequence[str]) -> None:
    """Append a record of size and memory, and one of speed for each clock."""
    memory = {row: memory_of(row, argv) for row in LAYOUTS}
    sizes = {}
    for row in ("joint", "separate"):
        paths = [path for parent in folders(args, row) for path in parent.rglob("*")]
        sizes[row] = sum(path.stat().st_size for path in paths if path.is_file())
    about = {"device": runtime.device_name(args.gpu_id), "threads": args.threads}
    record = {"kind": "joint-size", "bytes": sizes, "resident_mib": memory, **about}
    results.append(args.results, record)
    _measure_speed(args, about)


def _measure_speed(args: argparse.Namespace, about: dict[str, Any]) -> None:
    layouts = {row: load_layout(args, row) for row in ("joint", "separate")}
    layouts[UNSHARED] = layouts["joint"]
    texts = test_texts(args)
    n_words = sum(len(doc) for doc in run(layouts["joint"], texts))

    def predict(name: str) -> runtime.Clock:
        with ExitStack() as stack:
            for link in _links(layouts[name]) if name == UNSHARED else ():
                stack.enter_context(changed(link, {"n_listeners": lambda: 1}))
            with runtime.Clock() as clock:
                run(layouts[name], texts)
        return clock

    sizes = {"n_docs": len(texts), "n_words": n_words}
    for found in runtime.interleave(list(layouts), args.rounds, predict, args.gpu_id):
        results.append(args.results, {"kind": "joint-speed", **sizes, **about, **found})
    print("joint speed: done", flush=True)


def _links(pipelines: Sequence[Language]) -> list[Any]:
    """How the components of the pipelines reach a shared encoder."""
    models = [getattr(pipe, "model", None) for nlp in pipelines for _, pipe in nlp.pipeline]
    nodes = [node for model in models if isinstance(model, Model) for node in model.walk()]
    return [node.attrs["link"] for node in nodes if is_listener(node)]
