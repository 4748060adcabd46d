"""LUKE's span classifier twice: ours, and that of ``transformers``, of one directory.

Each side has its inputs (ours packed, theirs padded in batches sorted by length) and its logits of
all spans asked about; theirs also the published way from documents to entities.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from spacy.tokens import Doc

from spacy_luke.checkpoint.read import load_into, read_checkpoint
from spacy_luke.inputs.alignment import TokenisationRule, align
from spacy_luke.inputs.placed_spans import Batch, place_spans
from spacy_luke.model.heads import LinearHead
from spacy_luke.model.network import LukeModel
from spacy_luke.model.packing import LukeInputs
from spacy_luke.vocab.pieces import PieceTokenizer

from .peer_data import LABELS, MAX_WINDOW

Array = np.ndarray

MAX_MENTION = 30  # pieces whose positions an entity has, as published
MAX_ENTITIES = 128  # of a sequence, as published


@dataclass
class OurInputs:
    """Packed inputs, and the batch whose rows say which span is which."""

    inputs: LukeInputs
    batch: Batch


class Ours:
    """Our network, span head and tokenizer of a checkpoint."""

    def __init__(self, directory: Path, device: str = "cpu"):
        checkpoint = read_checkpoint(directory)
        self.pieces, self.entities = checkpoint.pieces, checkpoint.entities
        self.model = LukeModel(checkpoint.config)
        load_into(self.model, checkpoint)
        self.head = LinearHead(checkpoint.config.hidden_size, 3, len(LABELS), dropout=0.0)
        names = ("classifier.weight", "classifier.bias")
        self.head.load_state_dict({name: checkpoint.others[name] for name in names})
        self.model.to(device).eval()
        self.head.to(device).eval()

    def inputs(
        self,
        docs: Sequence[Doc],
        spans: Sequence[Array],
        rule: TokenisationRule = "tokens",
        tokenizer: PieceTokenizer | None = None,
    ) -> OurInputs:
        """Each sentence alone, with all its spans as entities. tokenizer: instead of ours, which
        remembers the words it has seen."""
        pieces = align(docs, tokenizer or self.pieces, rule, spans)
        of_span = np.repeat(np.arange(len(docs)), [len(x) for x in spans])
        placed = place_spans(
            docs,
            pieces,
            self.pieces,
            np.concatenate(spans),
            of_span,
            layout="sentence",
            size=MAX_WINDOW,
            overlap=0,
        )
        (batch,) = placed.batches(None, all_windows=False)
        entities = batch.entities(self.entities.mask_id, limit=MAX_MENTION)
        return OurInputs(LukeInputs(batch, entities), batch)

    def logits(self, inputs: OurInputs) -> torch.Tensor:
        """(n_spans, n_classes), in the order of the batch's rows."""
        states = self.model(inputs.inputs)
        first, last = (
            torch.from_numpy(x).to(self.model.device)
            for x in (inputs.batch.first, inputs.batch.last)
        )
        return self.head.on_pieces(states.words, first, last, states.entities)


@dataclass
class PeerBatch:
    """Padded tensors. sequences: which of the caller's texts the rows are."""

    sequences: list[int]
    encoded: Any


class Peer:
    """The tokenizer and span classifier of ``transformers`` for the same directory."""

    def __init__(self, directory: Path, device: str = "cpu"):
        import transformers

        # Its constructor has other arguments in version 5.
        self.tokenizer = transformers.LukeTokenizer.from_pretrained(
            directory, task="entity_span_classification", max_mention_length=MAX_MENTION
        )
        classifier = transformers.LukeForEntitySpanClassification
        self.model: Any = classifier.from_pretrained(directory).to(device).eval()
        self.device = device

    def batches(
        self, docs: Sequence[Doc], spans: Sequence[Array], size: int
    ) -> Iterator[PeerBatch]:
        """Texts sorted by length, ``size`` a batch, padded to the longest."""
        order = sorted(range(len(docs)), key=lambda i: (len(docs[i]), len(spans[i])))
        for start in range(0, len(order), size):
            chosen = order[start : start + size]
            texts = [docs[i].text for i in chosen]
            asked = [characters(docs[i], spans[i]) for i in chosen]
            encoded = self.tokenizer(texts, entity_spans=asked, padding=True, return_tensors="pt")
            yield PeerBatch(chosen, encoded.to(self.device))

    def unpadded(self, docs: Sequence[Doc], spans: Sequence[Array]) -> Any:
        """The same ids as lists, which a network does not take."""
        asked = [characters(doc, x) for doc, x in zip(docs, spans)]
        return self.tokenizer([doc.text for doc in docs], entity_spans=asked)

    def logits(self, batch: PeerBatch) -> torch.Tensor:
        """(n_texts, most spans, n_classes)."""
        return self.model(**batch.encoded).logits

    def flat(self, batches: Sequence[PeerBatch], padded: Sequence[torch.Tensor]) -> torch.Tensor:
        """Padded outputs as rows of real spans, texts in the caller's order."""
        parts: dict[int, torch.Tensor] = {}
        for batch, values in zip(batches, padded):
            counts = batch.encoded["entity_attention_mask"].sum(1).tolist()
            for row, (sequence, n) in enumerate(zip(batch.sequences, counts)):
                parts[sequence] = values[row, :n]
        return torch.cat([parts[i] for i in sorted(parts)])

    def find_entities(
        self, docs: Sequence[Doc], spans: Sequence[Array], size: int, nil_bias: float = 0.0
    ) -> list[list[tuple[int, int, str]]]:
        """The published procedure: a sequence a sentence, with the rest of the document around
        it; a sentence with more than ``MAX_ENTITIES`` spans several times; then the best spans
        that do not overlap. Documents must fit a window. -> (start, end, label) a document."""
        asked = [(doc, i, chunk) for i, doc in enumerate(docs) for chunk in chunks(doc, spans[i])]
        texts, parts = [x[0] for x in asked], [x[2] for x in asked]
        scored: list[list[tuple[float, int, int, int]]] = [[] for _ in docs]
        for batch in self.batches(texts, parts, size):
            logits = self.logits(batch).float()
            logits[..., 0] -= nil_bias
            best, label = logits[..., 1:].max(-1)
            accepted = (best > logits[..., 0]).tolist()
            top, labels = best.tolist(), label.tolist()
            for row, i in enumerate(batch.sequences):
                for j, (start, end) in enumerate(parts[i].tolist()):
                    if accepted[row][j]:
                        scored[asked[i][1]].append((top[row][j], start, end, labels[row][j] + 1))
        return [_disjoint(doc, found) for doc, found in zip(docs, scored)]


def characters(doc: Doc, spans: Array) -> list[tuple[int, int]]:
    """Token ranges as the character ranges that their tokenizer takes."""
    starts = [token.idx for token in doc]
    ends = [token.idx + len(token) for token in doc]
    return [(starts[a], ends[b - 1]) for a, b in spans.tolist()]


def chunks(doc: Doc, spans: Array) -> Iterator[Array]:
    """The spans of each sentence, in equal parts of at most ``MAX_ENTITIES``."""
    for sent in doc.sents if doc.has_annotation("SENT_START") else [doc[:]]:
        inside = spans[(spans[:, 0] >= sent.start) & (spans[:, 1] <= sent.end)]
        if len(inside):
            yield from np.array_split(inside, -(-len(inside) // MAX_ENTITIES))


def _disjoint(doc: Doc, scored: list[tuple[float, int, int, int]]) -> list[tuple[int, int, str]]:
    free = [True] * len(doc)
    found = []
    for _, start, end, label in sorted(scored, reverse=True):
        if all(free[start:end]):
            free[start:end] = [False] * (end - start)
            found.append((start, end, LABELS[label]))
    return sorted(found)
