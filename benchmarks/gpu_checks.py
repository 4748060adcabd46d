"""Pipelines of random weights, and what they compute on a GPU beside a CPU.

The part of ``gpu_acceptance`` that is about right answers. Each check returns what it found, and
raises if that is not good enough.
"""

import argparse
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import spacy
import torch
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example
from thinc.api import Adam, use_ops
from thinc.util import torch2xp

from spacy_luke.annotations.types import set_types
from spacy_luke.checkpoint.read import load_into, read_checkpoint
from spacy_luke.checkpoint.write import write_checkpoint
from spacy_luke.layers.arrays import to_torch
from spacy_luke.model.network import LukeModel
from spacy_luke.model.packing import Entities, LukeInputs, Words

from .datasets import default_folder
from .peer_data import build_checkpoint, read_sentences

ROOT = Path(__file__).resolve().parents[1]
DEVICE = torch.device("cuda:0")
TEXT = "Tokyo is the capital of Japan , and Ada Lovelace lived in London with Charles Babbage ."
ENTS = [(0, 1, "LOC"), (5, 6, "LOC"), (8, 10, "PER"), (12, 13, "LOC"), (14, 16, "PER")]
TYPES = {"LOC": "a", "PER": "b"}


class Case(NamedTuple):
    factory: str
    architecture: str
    mode: str

    @property
    def name(self) -> str:
        return f"{self.factory} {self.mode}"


CASES = [
    Case("luke_ner", "SpanScorer", "two-stage"),
    Case("luke_ner", "SpanScorer", "full"),
    Case("luke_relation", "PairScorer", "probe"),
    Case("luke_relation", "PairScorer", "markers"),
    Case("luke_entity_typing", "EntityScorer", "probe"),
]


class Bench:
    """The command's options, and pipelines of random weights."""

    def __init__(self, args: argparse.Namespace):
        self.tiny: bool = args.tiny
        self.real: bool = not args.emulate
        self.work: Path = args.work

    def checkpoint(self) -> Path:
        path = self.work / ("tiny" if self.tiny else "base")
        if not path.exists():
            sentences = read_sentences(default_folder())[1]
            build_checkpoint(path, path.name, None, sentences)
        return path

    def pipeline(self, case: Case, **encoder: Any) -> Language:
        encoder |= {"@architectures": "spacy-luke.LukeEncoder.v1", "name": str(self.checkpoint())}
        architecture = f"spacy-luke.{case.architecture}.v1"
        model: dict[str, Any] = {"@architectures": architecture, "mode": case.mode}
        model["encoder"] = encoder
        if case.factory == "luke_ner":
            model["label_weight"] = None  # the checkpoint may have a classifier with these labels
        nlp = spacy.blank("en")
        nlp.add_pipe(case.factory, config={"model": model})
        return nlp

    def initialized(self, case: Case, n: int = 32, **encoder: Any) -> tuple[Language, Any, list]:
        """A pipeline, its component, and examples to train on."""
        nlp = self.pipeline(case, **encoder)
        pipe: Any = nlp.get_pipe(case.factory)
        batch = examples(nlp, n)
        labels = {} if case.factory == "luke_ner" else {"labels": ["a", "b", "c"]}
        torch.manual_seed(1)
        pipe.initialize(lambda: batch, nlp=nlp, **labels)
        return nlp, pipe, batch


def examples(nlp: Language, n: int) -> list[Example]:
    """Texts of 7 to 17 words with entities, and types and relations as gold."""
    found = []
    for i in range(n):
        words = TEXT.split()[: 7 + i % 11]
        docs = Doc(nlp.vocab, words=words), Doc(nlp.vocab, words=words)
        for doc in docs:
            doc.ents = [Span(doc, *x) for x in ENTS if x[1] <= len(doc)]
        for span in docs[1].ents:
            set_types(span, {TYPES[span.label_]: 1.0})
        docs[1]._.relations = [(docs[1].ents[0], docs[1].ents[1], "a")]
        found.append(Example(*docs))
    return found


def copies(batch: Sequence[Example]) -> list[Doc]:
    return [example.predicted.copy() for example in batch]


def environment(bench: Bench) -> dict[str, str]:
    """Versions; arrays of all shapes go to torch and back in one memory."""
    import cupy

    for shape in ((3, 4), (0,), (0, 5)):
        tensor = torch.zeros(shape, device=DEVICE)
        array: Any = torch2xp(tensor)
        assert array.shape == shape and to_torch(array).device == tensor.device
    array = torch2xp(torch.zeros(3, device=DEVICE))
    shared = to_torch(array)
    array += 1
    assert shared.tolist() == [1.0, 1.0, 1.0]
    modules = {"torch": torch, "cupy": cupy, "spacy": spacy}
    found = {name: str(module.__version__) for name, module in modules.items()}
    return {**found, "gpu": torch.cuda.get_device_name(0)}


def parity(bench: Bench) -> dict[str, float]:
    """The network on the GPU, in float32 and bf16, beside itself on the CPU and transformers'."""
    import transformers

    checkpoint = read_checkpoint(bench.checkpoint())
    ours = LukeModel(checkpoint.config)
    load_into(ours, checkpoint)
    ours.eval()
    inputs = _inputs(checkpoint.config.vocab_size, checkpoint.entities.mask_id)
    far: dict[str, float] = {}
    with torch.no_grad():
        on_cpu = {mode: ours(inputs, mode) for mode in ("full", "probe")}
        ours.to(DEVICE)
        for mode, expected in on_cpu.items():
            exact = ours(inputs, mode)
            with torch.autocast("cuda", torch.bfloat16):
                half = ours(inputs, mode)
            for kind in ("words", "entities"):
                a, b, c = (getattr(x, kind).float().cpu() for x in (expected, exact, half))
                far[f"{mode} {kind}"] = float((a - b).abs().max())
                far[f"{mode} {kind} bf16"] = float((a - c).norm() / a.norm())
        theirs = transformers.LukeModel.from_pretrained(bench.checkpoint()).eval()
        theirs.to(DEVICE if bench.real else "cpu")
        states = ours(inputs, "full").entities.cpu()
        for i in np.flatnonzero(np.diff(inputs.entities.offsets)):
            far[f"transformers {i}"] = _beside(theirs, inputs, states, int(i))
    assert max(x for name, x in far.items() if "bf16" not in name) < 2e-3, far
    assert max(x for name, x in far.items() if "bf16" in name) < 0.05, far
    return far


def _inputs(n_pieces: int, mask: int) -> LukeInputs:
    """Four sequences of several lengths; one has no entity."""
    rng = np.random.default_rng(0)
    lengths, n_entities = [11, 64, 64, 200], [2, 0, 7, 30]
    ids = np.concatenate([rng.integers(5, n_pieces - 2, n) for n in lengths])
    starts = np.concatenate([rng.integers(1, n - 6, m) for n, m in zip(lengths, n_entities)])
    offsets, of_entities = (np.cumsum([0, *x]) for x in (lengths, n_entities))
    entities = Entities(np.full(len(starts), mask), starts, starts + 3, of_entities)
    return LukeInputs(Words(ids, offsets), entities)


def _beside(theirs: Any, inputs: LukeInputs, states: torch.Tensor, i: int) -> float:
    """How far the entities of sequence i are from those of transformers."""
    a, b = inputs.words.offsets[i : i + 2]
    low, high = inputs.entities.offsets[i : i + 2]
    positions = np.full((1, high - low, 3), -1)
    positions[0] = inputs.entities.starts[low:high, None] + np.arange(3)
    found = theirs(
        input_ids=torch.tensor(inputs.words.piece_ids[a:b])[None].to(theirs.device),
        entity_ids=torch.tensor(inputs.entities.ids[low:high])[None].to(theirs.device),
        entity_position_ids=torch.tensor(positions).to(theirs.device),
    )
    return float((found.entity_last_hidden_state[0].cpu() - states[low:high]).abs().max())


def predictions(bench: Bench) -> dict[str, list[float]]:
    """Scores and losses of every component on the GPU and on the CPU, from one saved pipeline."""
    found = {}
    for case in CASES:
        data = bench.initialized(case, 12)[0].to_bytes()
        sides = []
        for name in ("cupy", "numpy"):
            with use_ops(name):
                nlp = bench.pipeline(case).from_bytes(data)
                pipe: Any = nlp.get_pipe(case.factory)
                batch, optimizer = examples(nlp, 12), Adam(1e-4)
                logits = pipe.model.ops.to_numpy(pipe.predict(copies(batch))[1].logits)
                losses = [
                    float(pipe.update(batch, sgd=optimizer, drop=0.0)[case.factory])
                    for _ in range(3)
                ]
            sides.append((logits, np.asarray(losses)))
        (a, x), (b, y) = sides
        assert a.shape == b.shape, (case, a.shape, b.shape)
        found[case.name] = [float(np.abs(a - b).max(initial=0)), float((abs(x - y) / x).max())]
    assert max(loss for _, loss in found.values()) < 5e-3, found
    return found


def training(bench: Bench) -> dict[str, str]:
    """``spacy train`` in bf16 to the end; the CPU reads what it leaves."""
    from spacy.cli.train import train

    nlp, found = spacy.blank("en"), {}
    corpus = bench.work / "corpus.spacy"
    docs = [example.reference for example in examples(nlp, 64)]
    DocBin(docs=docs, store_user_data=True).to_disk(corpus)
    # The configs score labels apart, which a checkpoint's own classifier of these labels does not.
    encoder_alone = bench.work / "encoder"
    alone = replace(read_checkpoint(bench.checkpoint()), others={})
    write_checkpoint(encoder_alone, alone, "LukeModel", overwrite=True)
    for name, encoder in (("ner", "luke_ner.model.encoder"), ("joint", "luke.model")):
        since = time.perf_counter()
        overrides = {
            **{f"paths.{part}": str(corpus) for part in ("train", "dev")},
            "paths.encoder": str(encoder_alone),
            "training.max_steps": 4 if bench.tiny else 60,
            "training.eval_frequency": 2 if bench.tiny else 30,
            f"components.{encoder}.mixed_precision": True,
        }
        train(ROOT / "configs" / f"{name}.cfg", bench.work / name, use_gpu=0, overrides=overrides)
        found[name] = f"{time.perf_counter() - since:.1f} s"
        with use_ops("numpy"):
            spacy.load(bench.work / name / "model-last")("Ada Lovelace lived in London.")
    return found


def threads(bench: Bench) -> list[int]:
    """Other threads predict: Thinc's present operations belong to a thread."""
    nlp, *_ = bench.initialized(CASES[0], 4)
    text = f"{TEXT} " * 20
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: len(nlp(text).ents), range(16)))
    assert set(found) == {len(nlp(text).ents)}, found
    return found[:1]
