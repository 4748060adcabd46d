"""LUKE's word states as spacy-transformers' ``TransformerData``, for its stock listeners.

The only module that imports ``spacy_transformers``, and only when such a listener is there.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Ragged
from thinc.util import torch2xp

from ..inputs.alignment import ranges
from .arrays import to_torch
from .encoder_run import EncoderRun
from .listener import UpstreamLink, is_listener
from .token_vectors import encode_pieces

STOCK_LISTENER = "transformer-listener"


def is_stock_listener(node: Model) -> bool:
    """Whether a node can be connected: Thinc's copy of a listener alone has no upstream."""
    return node.name == STOCK_LISTENER and hasattr(node, "upstream_name")


def link_of(node: Any) -> UpstreamLink:
    """The link of a listener, ours or a stock one, to its encoder.

    That of a stock one is made when it is asked for first. With it, the listener computes the word
    states of documents that have none, as where its upstream is disabled or frozen: by itself it
    would read zeros.
    """
    if is_listener(node):
        ours: UpstreamLink = node.attrs["link"]
        return ours
    if not hasattr(node, "luke_link"):
        node.luke_link = UpstreamLink(node.upstream_name)
        node._func = _forward
    link: UpstreamLink = node.luke_link
    return link


def _forward(model: Any, docs: Sequence[Doc], is_train: bool) -> Any:
    """The stock layer, which takes its states from an update or the documents, and computes those
    of documents that have none."""
    from spacy_transformers.layers.listener import forward

    link: UpstreamLink | None = getattr(model, "luke_link", None)
    missing = [doc for doc in docs if doc._.trf_data is None]
    is_given = is_train and getattr(model, "_batch_id", None) is not None
    if link is None or link.encoder is None or is_given or not missing:
        return forward(model, docs, is_train)
    if is_train:
        link.tell_of_absence()
    computed = iter(WordStates(link.encoder, missing, is_train=False).doc_data)
    states = [next(computed) if doc._.trf_data is None else doc._.trf_data for doc in docs]
    return states, _no_gradient


def _no_gradient(d_doc_data: Any) -> list:
    return []


class WordStates:
    """One pass over words, without entities, so that gold entities cannot leak.

    doc_data: a ``TransformerData`` per document. :meth:`receive` adds up the gradients of several
    listeners, and :meth:`backprop` uses their sum once.
    """

    def __init__(self, encoder: Model, docs: Sequence[Doc], is_train: bool):
        self._run = EncoderRun(encoder, docs, is_train)
        with self._run as run:
            self._pieces, self._states = encode_pieces(run, docs)
        self._gradient: torch.Tensor | None = None
        states = torch2xp(self._states.detach())
        # The stock layer returns no gradient for an empty document.
        self._not_empty = [i for i, doc in enumerate(docs) if len(doc)]
        self.doc_data = [
            self._doc_data(i, len(doc), states, run.encoder.hidden_size)
            for i, doc in enumerate(docs)
        ]
        for data in self.doc_data:
            data.is_of_luke = True

    def _doc_data(self, i: int, n_tokens: int, states: Any, hidden: int) -> Any:
        from spacy_transformers.data_classes import ModelOutput, TransformerData, WordpieceBatch
        from thinc.api import get_array_module

        low, high = (int(self._pieces.piece_offsets[i + j]) for j in (0, 1))
        if not n_tokens:
            return TransformerData.empty()
        if low == high:  # white space only: tokens without pieces
            return TransformerData.zeros(n_tokens, hidden, xp=get_array_module(states))
        a, b = self._pieces.token_offsets[i], self._pieces.token_offsets[i + 1]
        starts, ends = self._pieces.token_starts[a:b] - low, self._pieces.token_ends[a:b] - low
        ids: Any = self._pieces.ids[None, low:high].astype("i")
        mask: Any = np.ones((1, high - low), dtype="f")
        indices: Any = ranges(starts, ends).astype("i")
        lengths: Any = (ends - starts).astype("i")
        return TransformerData(
            wordpieces=WordpieceBatch(
                strings=[[""] * (high - low)],
                input_ids=ids,
                attention_mask=mask,
                lengths=[high - low],
                token_type_ids=None,
            ),
            model_output=ModelOutput(last_hidden_state=states[None, low:high]),
            align=Ragged(indices, lengths),
        )

    def receive(self, d_doc_data: Sequence[Any]) -> None:
        """Add a listener's gradients, in the form of the stock layer."""
        if not self._states.requires_grad:
            return
        if self._gradient is None:
            self._gradient = torch.zeros_like(self._states)
        for i, data in zip(self._not_empty, d_doc_data):
            low, high = (int(self._pieces.piece_offsets[i + j]) for j in (0, 1))
            if high > low:
                gradient = to_torch(data.model_output.last_hidden_state)
                self._gradient[low:high] += gradient.reshape(high - low, -1).to(self._gradient)

    @property
    def has_gradient(self) -> bool:
        return self._gradient is not None

    def backprop(self) -> None:
        if self._gradient is not None:
            with self._run.learning():
                self._states.backward(self._gradient)
            self._gradient = None
