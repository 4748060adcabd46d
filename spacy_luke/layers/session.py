"""One use of an encoder by a task: tokenise, cut, pack, encode.

A session knows whether gradients reach the encoder (its own, or an upstream's that takes part
in this update), and keeps dropout, precision and train/eval mode right.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from spacy.tokens import Doc
from thinc.api import Model
from thinc.util import xp2torch

from ..inputs.alignment import MAX_TOKEN_PIECES, Pieces, align
from ..inputs.batch import Batch, n_sequences
from ..inputs.windows import Layout, Windows, cut_windows
from ..model.encoder import AttentionPattern, WordPass
from ..model.packing import Array, Entities, LukeInputs, LukeStates, Words
from ..report import LOGGER
from .encoder import EncoderSettings, module_of
from .encoder_module import Encoder
from .listener import UpstreamLink, encoder_node, is_listener
from .word_passes import pass_key

MAX_ROWS = 8192
"""Pieces plus entities of one network call at prediction: bounds memory, not results."""


class Session:
    """What a task layer needs of an encoder for one batch of documents.

    node: the task's encoder or listener node. is_train: whether the *task* is training.
    trains: whether gradients reach the encoder.
    """

    def __init__(self, node: Model, docs: Sequence[Doc], is_train: bool):
        owner = encoder_node(node)
        self.settings: EncoderSettings = owner.attrs["settings"]
        self.module: Encoder = module_of(owner)
        self.is_train = is_train
        self._link: UpstreamLink | None = node.attrs["link"] if is_listener(node) else None
        self.trains = is_train and (self._link is None or self._link.take(docs))
        self._n_sharing = 0 if is_train or self._link is None else self._link.n_listeners()
        self._user = id(node)
        if self._n_sharing > 1:
            self.module.passes.begin(self._user)
        self.module.train(self.trains)
        self.module.network.set_dropout(float(node.attrs["dropout_rate"]))

    def backprop(self, outputs: Sequence[torch.Tensor], gradients: Sequence[Any]) -> None:
        """Let the gradients of the task's outputs flow, and say that they have. Outputs that
        nothing trainable made are left out."""
        kept = [i for i, x in enumerate(outputs) if x.requires_grad and x.numel()]
        if kept:
            torch.autograd.backward(
                [outputs[i] for i in kept],
                [xp2torch(gradients[i]).to(outputs[i].device, outputs[i].dtype) for i in kept],
            )
        self.done()

    def done(self) -> None:
        """The task's gradients have reached the encoder."""
        if self.trains and self._link is not None and self._link.report is not None:
            self._link.report()

    @property
    def device(self) -> torch.device:
        return self.module.network.device

    @property
    def hidden_size(self) -> int:
        return self.module.hidden_size

    def align(self, docs: Sequence[Doc], spans: Sequence[Array] | None = None) -> Pieces:
        pieces = align(
            docs,
            self.module.pieces,
            self.settings.tokenization,
            spans,
            shapes=self.settings.word_shapes,
            spaces=self.settings.spaces,
        )
        if pieces.n_cut.any():
            where = ", ".join(str(i) for i in np.flatnonzero(pieces.n_cut)[:5])
            LOGGER.warning(
                "%d tokens have more than %d pieces and keep their first ones (documents of "
                "this batch, counted from 0: %s).",
                pieces.n_cut.sum(),
                MAX_TOKEN_PIECES,
                where,
            )
        return pieces

    def cut(
        self, docs: Sequence[Doc], pieces: Pieces, layout: Layout, starts: Array, ends: Array
    ) -> Windows:
        size, overlap = self.settings.window_of(self.module.network)
        return cut_windows(docs, pieces, layout, size, overlap, starts, ends)

    @contextmanager
    def task(self) -> Iterator[None]:
        """Gradients and precision of the whole task: encoder and head."""
        device = self.device.type
        with (
            torch.set_grad_enabled(self.is_train),
            torch.autocast(device, torch.bfloat16, enabled=self.settings.mixed_precision),
        ):
            yield

    def encode(self, inputs: LukeInputs, attention: AttentionPattern) -> LukeStates:
        if attention == "probe":
            word_pass = self.encode_words(inputs.words, np.diff(inputs.entities.offsets))
            return LukeStates(word_pass.states, self.encode_entities(word_pass, inputs.entities))
        with torch.set_grad_enabled(self.trains):
            return self.module.network(inputs, attention)

    def encode_words(self, words: Words, expected_entities: Array | None = None) -> WordPass:
        network = self.module.network
        if self._n_sharing < 2:
            with torch.set_grad_enabled(self.trains):
                return network.encode_words(words, expected_entities)
        key = pass_key(words, network)
        word_pass = self.module.passes.find(key, self._user, self._n_sharing)
        if word_pass is None:
            with torch.no_grad():
                word_pass = network.encode_words(words, expected_entities)
            self.module.passes.keep(key, self._user, word_pass)
        return word_pass

    def encode_entities(self, word_pass: WordPass, entities: Entities) -> torch.Tensor:
        """Probe entities do not see each other: at prediction so many are asked about at a time
        that memory is bounded."""
        network = self.module.network
        with torch.set_grad_enabled(self.trains):
            if self.is_train or len(entities.ids) <= MAX_ROWS:
                return network.encode_entities(word_pass, entities)
            parts = [
                network.encode_entities(word_pass, entities.part(i, i + MAX_ROWS))
                for i in range(0, len(entities.ids), MAX_ROWS)
            ]
            return torch.cat(parts)

    def index(self, array: Array) -> torch.Tensor:
        """A numpy index as a tensor on the encoder's device."""
        return torch.from_numpy(np.ascontiguousarray(array, dtype=np.int64)).to(self.device)

    def groups(
        self, windows: Windows, owner: Array, max_entities: int = 0
    ) -> Iterator[tuple[int, int]]:
        """Ranges of windows that fit one network call; training takes all at once, because
        the whole graph is kept anyway."""
        if self.is_train or not len(windows):
            yield 0, len(windows)
            return
        lengths = windows.ends - windows.starts + 2
        if not max_entities:
            # By words alone, with room for an entity a word: then components that ask about
            # different spans cut a batch at the same places, and can use each other's word passes.
            yield from bounded(2 * lengths)
            return
        counts = np.bincount(owner[owner >= 0], minlength=len(windows))
        repeats = np.maximum(n_sequences(counts, max_entities), 1)
        yield from bounded(repeats * lengths + counts)


def bounded(costs: Array) -> Iterator[tuple[int, int]]:
    """Ranges of items that cost at most ``MAX_ROWS`` together, of one item at least."""
    start, total = 0, 0
    for i, cost in enumerate(costs.tolist()):
        if total and total + cost > MAX_ROWS:
            yield start, i
            start, total = i, 0
        total += cost
    if len(costs):
        yield start, len(costs)


def packed_entities(batch: Batch, session: Session) -> Entities:
    """[MASK] entities for all questions of a batch."""
    mask = session.module.entities.mask_id
    return batch.questions.entities(np.full(len(batch.questions), mask, dtype=np.int64))
