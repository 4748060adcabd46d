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
    return node.name == STOCK_LISTENER


def link_of(node: Any) -> UpstreamLink:
    """The link of a listener, ours or a stock one, to its encoder.

    That of a stock one is made when it is asked for first. With it, the listener computes the word
    states that a document does not have, as where its upstream is disabled or frozen: by itself it
    would read zeros.
    """
    if is_listener(node):
        ours: UpstreamLink = node.attrs["link"]
        return ours
    if not hasattr(node, "luke_link"):
        node.luke_link = UpstreamLink(getattr(node, "upstream_name", "*"))
        node._func = _forward
    link: UpstreamLink = node.luke_link
    return link


def is_of_transformer(data: Any) -> bool:
    """Whether a document's ``TransformerData`` is of a spacy-transformers component: ours names no
    pieces."""
    return data is not None and any(map(any, data.wordpieces.strings))


def _forward(model: Any, docs: Sequence[Doc], is_train: bool) -> Any:
    """The stock layer, with word states for documents that have none of this encoder. A listener to
    any upstream (``*``) takes those of a spacy-transformers component where there are some."""
    from spacy_transformers.layers.listener import forward

    link = link_of(model)
    if link.encoder is None or (is_train and model._batch_id is not None):
        return forward(model, docs, is_train)
    given = {i: doc._.trf_data for i, doc in enumerate(docs) if _has_states(doc, link)}
    missing = [doc for i, doc in enumerate(docs) if i not in given]
    computed = iter(WordStates(link.encoder, missing, is_train=False).doc_data if missing else ())
    return [given[i] if i in given else next(computed) for i in range(len(docs))], _no_gradient


def _has_states(doc: Doc, link: UpstreamLink) -> bool:
    data, encoder = doc._.trf_data, link.encoder
    is_ours = encoder is not None and getattr(data, "luke_encoder", None) == encoder.id
    return is_ours or (link.wanted == "*" and is_of_transformer(data))


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
            data.luke_encoder = encoder.id

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
