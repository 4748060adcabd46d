"""What a task needs of an encoder: to place spans, and to encode one batch of documents."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import torch
from spacy.tokens import Doc
from thinc.api import Model

from ..errors import TrainingError
from ..inputs.alignment import MAX_TOKEN_PIECES, Pieces, align
from ..inputs.placed_spans import PlacedSpans, place_spans
from ..inputs.windows import Layout
from ..model.encoder import AttentionPattern, WordPass
from ..model.packing import Array, Entities, LukeInputs, LukeStates, Words
from ..report import LOGGER
from .arrays import to_torch
from .encoder import EncoderSettings, module_of
from .encoder_module import Encoder
from .listener import UpstreamLink, encoder_node, is_listener
from .word_passes import pass_key

MAX_ROWS = 8192
"""Pieces plus entities of one network call at prediction: bounds memory, not results."""


def place(
    node: Model,
    docs: Sequence[Doc],
    spans: Array,
    of_doc: Array,
    layout: Layout = "document",
    max_pieces: int | None = None,
) -> PlacedSpans:
    """Place spans as an encoder (or a listener's encoder) cuts text. Arguments as of
    :func:`..inputs.placed_spans.place_spans`."""
    owner = encoder_node(node)
    settings: EncoderSettings = owner.attrs["settings"]
    encoder = module_of(owner)
    at = np.searchsorted(of_doc, np.arange(1, len(docs)))
    pieces = align(
        docs,
        encoder.pieces,
        settings.tokenization,
        np.split(spans, at),
        shapes=settings.word_shapes,
        spaces=settings.spaces,
    )
    _report_cut(pieces)
    size, overlap = encoder.window
    return place_spans(
        docs,
        pieces,
        encoder.pieces,
        spans,
        of_doc,
        layout=layout,
        size=size,
        overlap=overlap,
        max_pieces=max_pieces,
    )


def window(node: Model) -> int:
    """Pieces of a window, without the two special pieces."""
    return module_of(encoder_node(node)).window[0]


def _report_cut(pieces: Pieces) -> None:
    if pieces.n_cut.any():
        LOGGER.warning(
            "%d tokens have more than %d pieces and keep their first ones (documents of this "
            "batch, counted from 0: %s).",
            pieces.n_cut.sum(),
            MAX_TOKEN_PIECES,
            ", ".join(str(i) for i in np.flatnonzero(pieces.n_cut)[:5]),
        )


class EncoderRun:
    """One use of an encoder by a task, for one batch of documents.

    It begins and ends in a ``with`` block: there the network gets its mode and dropout, and
    gradients and precision are set for encoder and head. Any number of threads may be in such a
    block if they predict; one that trains is alone in it.

    node: the task's encoder or listener node. is_train: whether the *task* is training.
    trains: whether gradients reach the encoder: one of the task's own, or an upstream's that takes
    part in this update.
    """

    def __init__(self, node: Model, docs: Sequence[Doc], is_train: bool):
        owner = encoder_node(node)
        self.node, self.docs, self.is_train = node, docs, is_train
        self.trains = False
        self.encoder: Encoder = module_of(owner)
        self._mixed_precision: bool = owner.attrs["settings"].mixed_precision
        self._link: UpstreamLink | None = node.attrs["link"] if is_listener(node) else None
        self._n_sharing = 0
        self._context = ExitStack()

    def __enter__(self) -> "EncoderRun":
        self.trains = self.is_train and (self._link is None or self._link.take(self.docs))
        if self._link is not None and not self.is_train:
            self._n_sharing = self._link.n_listeners()
            if self._n_sharing > 1:
                self._link.passes.begin(id(self.node))
        lock = self.encoder.lock
        self._context.enter_context(lock.writing() if self.is_train else lock.reading())
        self._set_mode()
        if self.is_train:
            self._context.enter_context(torch.inference_mode(False))
        self._context.enter_context(torch.set_grad_enabled(self.is_train))
        self._context.enter_context(
            torch.autocast(self.device.type, torch.bfloat16, enabled=self._mixed_precision)
        )
        return self

    def __exit__(self, *error: Any) -> None:
        self._context.close()
        if self._link is not None and self._n_sharing > 1 and len(self.docs):
            self._link.passes.end(id(self.node), self._n_sharing, self.docs[0])

    def _set_mode(self) -> None:
        self.encoder.train(self.trains)
        self.encoder.network.set_dropout(float(self.node.attrs["dropout_rate"]))

    @contextmanager
    def learning(self) -> Iterator[None]:
        """For the backward pass, in which what was not kept is computed again: no other thread uses
        the encoder, and it has the mode and dropout of the run, whatever ran in between."""
        with self.encoder.lock.writing(), torch.inference_mode(False):
            self._set_mode()
            yield

    def backprop(
        self,
        outputs: Sequence[torch.Tensor],
        gradients: Sequence[Any],
        head: torch.nn.Module | None = None,
    ) -> None:
        """Let the gradients of the task's outputs flow, and say that they have. Outputs that
        require no gradient are left out.

        head: the task's own module. Raises TrainingError if a gradient of it or of the encoder is
        NaN or infinite.
        """
        kept = [i for i, x in enumerate(outputs) if x.requires_grad and x.numel()]
        if kept:
            with self.learning():
                torch.autograd.backward(
                    [outputs[i] for i in kept],
                    [to_torch(gradients[i]).to(outputs[i].device, outputs[i].dtype) for i in kept],
                )
        trained = (head, self.encoder if self.trains else None)
        check_gradients([module for module in trained if module is not None])
        if self.trains and self._link is not None and self._link.report is not None:
            self._link.report()

    @property
    def device(self) -> torch.device:
        return self.encoder.network.device

    @property
    def max_rows(self) -> int | None:
        """Of a network call. Training takes all at once, because the whole graph is kept anyway."""
        return None if self.is_train else MAX_ROWS

    def encode(self, inputs: LukeInputs, attention: AttentionPattern) -> LukeStates:
        if attention == "probe":
            word_pass = self.encode_words(inputs.words, np.diff(inputs.entities.offsets))
            return LukeStates(word_pass.states, self.encode_entities(word_pass, inputs.entities))
        with torch.set_grad_enabled(self.trains):
            return self.encoder.network(inputs, attention)

    def encode_words(self, words: Words, expected_entities: Array | None = None) -> WordPass:
        network = self.encoder.network
        if self._link is None or self._n_sharing < 2:
            with torch.set_grad_enabled(self.trains):
                return network.encode_words(words, expected_entities)
        key = pass_key(words, network)
        word_pass = self._link.passes.find(key, id(self.node), self._n_sharing)
        if word_pass is None:
            with torch.no_grad():
                word_pass = network.encode_words(words, expected_entities)
            self._link.passes.keep(key, id(self.node), word_pass, self.docs[0])
        return word_pass

    def encode_entities(self, word_pass: WordPass, entities: Entities) -> torch.Tensor:
        """Probe entities do not see each other: at prediction at most ``MAX_ROWS`` are encoded at a
        time, so that memory is bounded."""
        network = self.encoder.network
        with torch.set_grad_enabled(self.trains):
            if self.is_train or len(entities.ids) <= MAX_ROWS:
                return network.encode_entities(word_pass, entities)
            parts = [
                network.encode_entities(word_pass, entities.part(i, i + MAX_ROWS))
                for i in range(0, len(entities.ids), MAX_ROWS)
            ]
            return torch.cat(parts)

    def index(self, array: Array) -> torch.Tensor:
        """A NumPy index as a tensor on the encoder's device."""
        return torch.from_numpy(np.ascontiguousarray(array, dtype=np.int64)).to(self.device)

    def zeros(self, *shape: int) -> torch.Tensor:
        return torch.zeros(*shape, dtype=torch.float32, device=self.device)


def check_gradients(modules: Sequence[torch.nn.Module]) -> None:
    """Raise TrainingError if a gradient is NaN or infinite. A device is waited for once."""
    gradients = [p.grad for module in modules for p in module.parameters() if p.grad is not None]
    # All norms in a few calls, as torch's own clipping does: one call a parameter would take longer
    # than the check may.
    norms = torch._foreach_norm(gradients) if gradients else []
    if not norms or torch.isfinite(torch.stack(list(norms))).all():
        return
    raise TrainingError(
        f"gradients of {sum(not torch.isfinite(x) for x in norms)} of {len(norms)} parameters are "
        "NaN or infinite. No step of this component or its encoder was taken. Lower the learning "
        "rate, or look for documents that are unlike the others in this batch."
    )
