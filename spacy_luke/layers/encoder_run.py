"""The use of an encoder by a task: placing spans, and encoding one batch of documents."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import numpy as np
import torch
from spacy.tokens import Doc
from thinc.api import Model
from torch.utils.checkpoint import checkpoint

from ..errors import TrainingError
from ..inputs.alignment import MAX_TOKEN_PIECES, Pieces, align
from ..inputs.placed_spans import PlacedSpans, place_spans
from ..inputs.windows import Layout
from ..model.network import AttentionPattern, WordPass
from ..model.packing import Array, Entities, LukeInputs, LukeStates, Words
from ..model.precision import uses_bf16
from ..report import LOGGER
from .arrays import to_torch
from .encoder import EncoderSettings, module_of
from .encoder_module import Encoder
from .listener import UpstreamLink, encoder_node, is_listener
from .word_passes import pass_key

MAX_ROWS = 8192
"""Most pieces plus entities of a network call at prediction. It does not change results."""


def place(
    node: Model,
    docs: Sequence[Doc],
    spans: Array,
    of_doc: Array,
    layout: Layout = "document",
    max_pieces: int | None = None,
) -> PlacedSpans:
    """Place spans with the tokenisation and windows of an encoder (or of a listener's encoder).
    Arguments as in :func:`..inputs.placed_spans.place_spans`."""
    encoder = module_of(encoder_node(node))
    bounds = np.searchsorted(of_doc, np.arange(1, len(docs)))
    pieces = pieces_of(node, docs, np.split(spans, bounds))
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


def pieces_of(
    node: Model, docs: Sequence[Doc], spans: Sequence[Array], what: str = "documents"
) -> Pieces:
    """The pieces of documents, with the tokenisation of an encoder (or of a listener's encoder).

    spans: per document an (n, 2) array of token ranges that enter as entities. what: what the
        documents are, for a warning."""
    owner = encoder_node(node)
    settings: EncoderSettings = owner.attrs["settings"]
    encoder = module_of(owner)
    pieces = align(
        docs,
        encoder.pieces,
        settings.tokenization,
        spans,
        shapes=settings.word_shapes,
        spaces=settings.spaces,
    )
    _warn_of_cut(encoder, pieces, what)
    return pieces


def window(node: Model) -> int:
    """The size of a window in pieces, without the two special pieces."""
    return module_of(encoder_node(node)).window[0]


def learns(node: Model) -> bool:
    """Whether an update that begins now may change an encoder (or a listener's encoder): it is not
    frozen, and the upstream of a listener has an open batch."""
    if is_listener(node) and node.attrs["link"].batch is None:
        return False
    network = module_of(encoder_node(node)).network
    return any(parameter.requires_grad for parameter in network.parameters())


def _warn_of_cut(encoder: Encoder, pieces: Pieces, what: str) -> None:
    if pieces.n_cut.any() and encoder.reports_first("cut tokens"):
        LOGGER.warning(
            "%d tokens have more than %d pieces, of which the first are used (%s of this "
            "batch, counted from 0: %s). This warning is logged once per encoder.",
            pieces.n_cut.sum(),
            MAX_TOKEN_PIECES,
            what,
            ", ".join(str(i) for i in np.flatnonzero(pieces.n_cut)[:5]),
        )


class EncoderRun:
    """One use of an encoder by a task, for one batch of documents.

    Use it in a ``with`` block, which sets mode and dropout of the network, and gradients for
    encoder and head. Any number of threads that predict may be in such a block, or one thread that
    trains. Only the encoder has mixed precision: a head's sums, such as those of log priors and
    cosines, would be rounded to steps that decide between candidates.

    node: the task's encoder or listener node.
    is_train: whether the *task* is training.
    trains: whether gradients reach the encoder. They do if the task has its own encoder, or if the
        upstream takes part in this update.
    """

    def __init__(self, node: Model, docs: Sequence[Doc], is_train: bool):
        owner = encoder_node(node)
        self.node, self.docs, self.is_train = node, docs, is_train
        self.trains = False
        self.encoder: Encoder = module_of(owner)
        self._mixed_precision: bool = owner.attrs["settings"].mixed_precision
        self._is_mixed = False
        self._link: UpstreamLink | None = node.attrs["link"] if is_listener(node) else None
        self._n_sharing = 0
        self._context = ExitStack()

    def __enter__(self) -> "EncoderRun":
        self.trains = self.is_train and (self._link is None or self._link.take_batch(self.docs))
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
        self._is_mixed = self._mixed_precision and uses_bf16(self.device)
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
        """A context for the backward pass: no other thread uses the encoder, and it has the mode
        and dropout of the run, of which gradient checkpointing repeats parts."""
        with self.encoder.lock.writing(), torch.inference_mode(False):
            self._set_mode()
            yield

    def backprop(
        self,
        outputs: Sequence[torch.Tensor],
        gradients: Sequence[Any],
        head: torch.nn.Module | None = None,
    ) -> None:
        """Compute the gradients of encoder and head from those of the task's outputs, and notify
        the upstream. Outputs that require no gradient are omitted.

        head: the task's own module. Raises TrainingError if a gradient of it or of the encoder is
        NaN or infinite.
        """
        used = [i for i, x in enumerate(outputs) if x.requires_grad and x.numel()]
        if used:
            with self.learning():
                if head is not None:  # another thread may have predicted with it
                    head.train(self.is_train)
                torch.autograd.backward(
                    [outputs[i] for i in used],
                    [to_torch(gradients[i]).to(outputs[i].device, outputs[i].dtype) for i in used],
                )
        trained = (head, self.encoder if self.trains else None)
        check_gradients([module for module in trained if module is not None])
        if self.trains and self._link is not None and self._link.on_gradients is not None:
            self._link.on_gradients()

    @property
    def device(self) -> torch.device:
        return self.encoder.network.device

    @property
    def max_rows(self) -> int | None:
        """Most pieces plus entities of a network call. Training has no limit (None), because the
        whole graph is kept in memory; but see :func:`in_parts`."""
        return None if self.is_train else MAX_ROWS

    def encode(self, inputs: LukeInputs, attention: AttentionPattern) -> LukeStates:
        if attention == "probe":
            word_pass = self.encode_words(inputs.words, np.diff(inputs.entities.offsets))
            return LukeStates(word_pass.states, self.encode_entities(word_pass, inputs.entities))
        with torch.set_grad_enabled(self.trains), self._precision():
            return self.encoder.network(inputs, attention)

    def encode_words(self, words: Words, expected_entities: Array | None = None) -> WordPass:
        network = self.encoder.network
        with torch.set_grad_enabled(self.trains), self._precision():
            if self._link is None or self._n_sharing < 2:
                return network.encode_words(words, expected_entities)
            key = pass_key(words, network)
            word_pass = self._link.passes.find(key, id(self.node), self._n_sharing)
            if word_pass is None:
                word_pass = network.encode_words(words, expected_entities)
                self._link.passes.keep(key, id(self.node), word_pass, self.docs[0])
            return word_pass

    def encode_entities(self, word_pass: WordPass, entities: Entities) -> torch.Tensor:
        """Encode entities in ``probe`` attention. They do not see each other, so at prediction at
        most ``MAX_ROWS`` are encoded per call, which limits memory."""
        network = self.encoder.network
        with torch.set_grad_enabled(self.trains), self._precision():
            if self.is_train or len(entities.ids) <= MAX_ROWS:
                return network.encode_entities(word_pass, entities)
            parts = [
                network.encode_entities(word_pass, entities.part(i, i + MAX_ROWS))
                for i in range(0, len(entities.ids), MAX_ROWS)
            ]
            return torch.cat(parts)

    def _precision(self) -> torch.autocast:
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self._is_mixed)

    def index(self, array: Array) -> torch.Tensor:
        """A NumPy index as a tensor on the encoder's device."""
        return torch.from_numpy(np.ascontiguousarray(array, dtype=np.int64)).to(self.device)

    def values(self, array: Array) -> torch.Tensor:
        """NumPy values of a query as a tensor on the encoder's device."""
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)

    def zeros(self, *shape: int) -> torch.Tensor:
        return torch.zeros(*shape, dtype=torch.float32, device=self.device)


def in_parts(
    run: EncoderRun,
    score: Callable[[int, int], torch.Tensor],
    parts: Sequence[tuple[int, int]],
) -> torch.Tensor:
    """What ``score`` computes of rows [low, high), one part after the other, to limit memory. In
    training with several parts their inner states are not kept, but computed again in the backward
    pass."""
    # Not used for scores: the checkpoint saves the random state (for dropout) of its device.
    on_device = run.zeros(0)

    def score_part(low: int, high: int, _: torch.Tensor) -> torch.Tensor:
        return score(low, high)

    if run.is_train and len(parts) > 1:
        scorers = [partial(score_part, low, high) for low, high in parts]
        return torch.cat([checkpoint(x, on_device, use_reentrant=False) for x in scorers])
    return torch.cat([score(low, high) for low, high in parts])


def check_gradients(modules: Sequence[torch.nn.Module]) -> None:
    """Raise TrainingError if a gradient is NaN or infinite. It waits for a GPU once."""
    gradients = [p.grad for module in modules for p in module.parameters() if p.grad is not None]
    # All norms in a few calls, as in torch's gradient clipping: one call per parameter is too slow.
    norms = torch._foreach_norm(gradients) if gradients else []
    if not norms or torch.isfinite(torch.stack(list(norms))).all():
        return
    raise TrainingError(
        f"gradients of {sum(not torch.isfinite(x) for x in norms)} of {len(norms)} parameters are "
        "NaN or infinite. No step of this component or its encoder was taken. Lower the learning "
        "rate, or check this batch for unusual documents."
    )
