"""What is measured beside ``transformers``: both sides of each case, on the same sentences.

Where the sides compute the same function, a case compares their answers before they are timed.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from spacy.tokens import Doc

from spacy_luke.checkpoint.names import to_published
from spacy_luke.checkpoint.read_tokenizer import read_tokenizer
from spacy_luke.vocab.pieces import PieceTokenizer

from .peer import OurInputs, Ours, Peer, PeerBatch
from .peer_data import (
    LABELS,
    all_spans,
    build_checkpoint,
    equal_sentences,
    long_document,
    mixed_sentences,
    read_sentences,
)
from .peer_pipe import BareNetwork, bare_docs, build_pipeline, set_nil_bias

Array = np.ndarray

MIXED = (10, 38)  # words of sentences of mixed lengths
PIPE_BATCH = 32  # documents
OURS, THEIRS = "ours", "transformers"


@dataclass
class Side:
    """What is timed: ``run`` on what ``prepare`` made before the clock starts."""

    run: Callable[[Any], Any]
    prepare: Callable[[], Any] = lambda: None


@dataclass
class Comparison:
    """docs and spans: what is asked. difference: largest absolute difference of the answers,
    None where the two are different functions. trains: gradients are needed. warm_up: comparing
    the answers was none."""

    docs: Sequence[Doc]
    spans: Sequence[Array]
    sides: dict[str, Side]
    difference: float | None = None
    trains: bool = False
    warm_up: bool = False


class Bench:
    """The sentences; and both sides, read when first used."""

    def __init__(self, args: argparse.Namespace):
        self.args = args
        self.data, self.sentences = read_sentences(args.data)
        if not args.memory_of:  # a process whose memory is measured finds it built
            build_checkpoint(args.checkpoint, args.size, args.vocab, self.sentences)
        self.pieces = read_tokenizer(args.checkpoint)

    @cached_property
    def ours(self) -> Ours:
        return Ours(self.args.checkpoint, self.args.device)

    @cached_property
    def peer(self) -> Peer:
        return Peer(self.args.checkpoint, self.args.device)

    def ask(self, case: str, times: int = 1) -> tuple[list[Doc], list[Array]]:
        """Sentences of ``equal`` or ``mixed`` lengths, and all spans of each."""
        args, n = self.args, times * self.args.sentences
        if case == "equal":
            cut = (args.words, args.max_words, n)
            docs = equal_sentences(self.sentences, self.pieces, *cut)
        else:
            docs = mixed_sentences(self.sentences, *MIXED, n)
        return docs, all_spans(docs, self.pieces, args.max_words)


def forward(bench: Bench, case: str) -> Comparison:
    """Prepared inputs to the logits of all spans; ours in one packed call, theirs sorted by length
    in padded batches, and one sentence at a time."""
    docs, spans = bench.ask(case)
    ours, peer = bench.ours, bench.peer
    packed = ours.inputs(docs, spans)
    padded = list(peer.batches(docs, spans, bench.args.peer_batch))
    single = list(peer.batches(docs, spans, 1))

    def theirs(batches: Sequence[PeerBatch]) -> list[torch.Tensor]:
        return [peer.logits(batch) for batch in batches]

    with torch.inference_mode():
        difference = largest(ours.logits(packed), peer.flat(padded, theirs(padded)))
    sides = {
        OURS: Side(lambda _: ours.logits(packed)),
        THEIRS: Side(lambda _: theirs(padded)),
        "transformers, one at a time": Side(lambda _: theirs(single)),
    }
    return Comparison(docs, spans, sides, difference)


def training_step(bench: Bench) -> Comparison:
    """Forward and backward of one batch of equal lengths: cross-entropy of random labels."""
    docs, spans = bench.ask("equal")
    docs, spans = docs[: bench.args.peer_batch], spans[: bench.args.peer_batch]
    packed = bench.ours.inputs(docs, spans)
    (padded,) = bench.peer.batches(docs, spans, len(docs))
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(len(LABELS), (sum(map(len, spans)),), generator=generator)
    labels = labels.to(bench.args.device)
    ours = torch.nn.ModuleList([bench.ours.model, bench.ours.head])

    def step(module: torch.nn.Module, logits: Callable[[], torch.Tensor]) -> torch.Tensor:
        module.train()
        module.zero_grad(set_to_none=True)
        loss = torch.nn.functional.cross_entropy(logits(), labels)
        loss.backward()
        module.eval()
        return loss.detach()

    def our_step(_: None = None) -> torch.Tensor:
        return step(ours, lambda: bench.ours.logits(packed))

    def their_step(_: None = None) -> torch.Tensor:
        peer = bench.peer
        return step(peer.model, lambda: peer.flat([padded], [peer.logits(padded)]))

    difference = max(largest(our_step(), their_step()), gradient_difference(bench))
    sides = {OURS: Side(our_step), THEIRS: Side(their_step)}
    return Comparison(docs, spans, sides, difference, trains=True)


def gradient_difference(bench: Bench) -> float:
    """Of all parameters, under their published names."""
    ours = {
        f"luke.{name}": grad for name, grad in to_published(gradients(bench.ours.model)).items()
    }
    ours |= gradients(bench.ours.head)
    theirs = gradients(bench.peer.model)
    assert set(ours) == set(theirs), set(ours) ^ set(theirs)
    return max(largest(ours[name], theirs[name]) for name in ours)


def gradients(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: p.grad for name, p in module.named_parameters() if p.grad is not None}


def entities(bench: Bench, docs: list[Doc], warm_up: bool) -> Comparison:
    """Documents to entities: two stages at k = words, and all spans as published. These are
    different functions, so there is nothing to compare. Spans are given to theirs."""
    args = bench.args
    pipe: Any = build_pipeline(args.checkpoint, args.max_words).get_pipe("luke_ner")
    bias = set_nil_bias(pipe, bare_docs(docs))
    spans = all_spans(docs, bench.pieces, args.max_words)
    sides = {
        OURS: Side(lambda made: list(pipe.pipe(made, batch_size=32)), lambda: bare_docs(docs)),
        THEIRS: Side(lambda _: bench.peer.find_entities(docs, spans, args.peer_batch, bias)),
    }
    return Comparison(docs, spans, sides, warm_up=warm_up)


def texts_to_inputs(bench: Bench) -> Comparison:
    """Texts and spans to what a network takes. Words were seen before, but for ``new words``."""
    docs, spans = bench.ask("mixed", 8)
    size, ours, peer = bench.args.peer_batch, bench.ours, bench.peer
    padded = list(peer.batches(docs, spans, size))
    by_tokens, by_mentions = ours.inputs(docs, spans), ours.inputs(docs, spans, "mentions")
    difference = max(id_difference(x, padded) for x in (by_tokens, by_mentions))
    files = bench.pieces.to_dict()
    sides = {
        OURS: Side(lambda _: ours.inputs(docs, spans)),
        "ours, new words": Side(
            lambda fresh: ours.inputs(docs, spans, tokenizer=fresh),
            lambda: PieceTokenizer.from_dict(files),
        ),
        "ours, cut at mentions": Side(lambda _: ours.inputs(docs, spans, "mentions")),
        THEIRS: Side(lambda _: list(peer.batches(docs, spans, size))),
        "transformers, not padded": Side(lambda _: peer.unpadded(docs, spans)),
    }
    return Comparison(docs, spans, sides, difference, warm_up=True)


def id_difference(ours: OurInputs, padded: Sequence[PeerBatch]) -> float:
    """Of piece ids, entity ids and the pieces of every entity: 0, or they are not the same."""
    words, asked = ours.inputs.words, ours.inputs.entities
    worst = 0
    for batch in padded:
        for row, i in enumerate(batch.sequences):
            their = {name: values[row].cpu().numpy() for name, values in batch.encoded.items()}
            at = slice(*asked.offsets[i : i + 2])
            positions = their["entity_position_ids"][their["entity_attention_mask"] > 0]
            for mine, other in (
                (words.piece_ids[slice(*words.offsets[i : i + 2])], masked(their, "")),
                (asked.ids[at], masked(their, "entity_")),
                (asked.starts[at], positions[:, 0]),
                (asked.ends[at], positions.max(1) + 1),
            ):
                worst = max(worst, int(np.abs(mine - other).max()))
    return float(worst)


def masked(row: dict[str, Array], kind: str) -> Array:
    """The ids of one sequence without padding."""
    return row[f"{kind or 'input_'}ids"][row[f"{kind}attention_mask"] > 0]


def pipe_and_network(bench: Bench) -> Comparison:
    """``nlp.pipe`` from documents to entities, and its network on prepared inputs."""
    args = bench.args
    docs, spans = bench.ask("mixed", 4)
    nlp = build_pipeline(args.checkpoint, args.max_words)
    pipe: Any = nlp.get_pipe("luke_ner")
    parts = [docs[i : i + PIPE_BATCH] for i in range(0, len(docs), PIPE_BATCH)]
    bare = [BareNetwork(pipe, part, args.max_words) for part in parts]
    difference = 0.0
    with torch.inference_mode():
        for part, network in zip(parts, bare):
            logits = torch.as_tensor(pipe.predict(bare_docs(part))[1].logits)
            difference = max(difference, largest(logits, network.logits()))
    set_nil_bias(pipe, bare_docs(docs))
    sides = {
        "nlp.pipe": Side(
            lambda made: list(nlp.pipe(made, batch_size=PIPE_BATCH)), lambda: bare_docs(docs)
        ),
        "network alone": Side(lambda _: [network.logits() for network in bare]),
    }
    return Comparison(docs, spans, sides, difference)


CASES: dict[str, Callable[[Bench], Comparison]] = {
    "equal": lambda bench: forward(bench, "equal"),
    "mixed": lambda bench: forward(bench, "mixed"),
    "train": training_step,
    "sentences": lambda bench: entities(bench, bench.ask("mixed")[0], warm_up=True),
    "document": lambda bench: entities(
        bench, [long_document(bench.sentences, bench.pieces)], warm_up=False
    ),
    "inputs": texts_to_inputs,
    "pipe": pipe_and_network,
}


def largest(a: torch.Tensor, b: torch.Tensor) -> float:
    """Largest absolute difference; infinite where shapes differ or something is not finite."""
    if a.shape != b.shape or not bool(torch.isfinite(a - b).all()):
        return float("inf")
    return float((a - b).abs().max())
