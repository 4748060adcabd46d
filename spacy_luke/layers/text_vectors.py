"""Vectors of short texts (names, descriptions of entities), and what identifies their encoder."""

import hashlib
import json
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from spacy.tokens import Doc
from thinc.api import Model

from ..model.packing import Array
from .encoder import module_of
from .encoder_run import EncoderRun
from .listener import encoder_node
from .token_vectors import encode_pieces

_ENTITIES = "entity_embeddings."
_MAX_WORDS = 4096
"""Words of documents that are encoded together."""
_MOST_KEPT = 4096
"""Rows of texts that are learned, whose inner states are kept for the backward pass."""


def text_vectors(encoder: Model, docs: Sequence[Doc]) -> Array:
    """(n_docs, hidden) float32: the mean of each document's piece states, computed without
    entities, of length 1. Zeros for a document without pieces.

    encoder: an encoder, or a listener to one. Documents of similar length are encoded together;
    results do not depend on it.
    """
    width = module_of(encoder_node(encoder)).hidden_size
    vectors = np.zeros((len(docs), width), dtype=np.float32)
    for rows in _batches(docs):
        batch = [docs[i] for i in rows]
        with EncoderRun(encoder, batch, is_train=False) as run:
            vectors[rows] = _vectors(run, batch).cpu().numpy()
    return vectors


def learned_vectors(run: EncoderRun, docs: Sequence[Doc]) -> torch.Tensor:
    """(n_docs, hidden) as :func:`text_vectors`, computed in a run of other documents: gradients
    flow through them."""
    order = sorted(range(len(docs)), key=lambda i: len(docs[i]))
    vectors = _vectors(run, [docs[i] for i in order], _MOST_KEPT)
    return vectors.index_select(0, run.index(np.argsort(order)))


def _vectors(run: EncoderRun, docs: Sequence[Doc], max_rows: int | None = None) -> torch.Tensor:
    """The means of all pieces, of length 1. max_rows: of :func:`.encode_pieces`."""
    pieces, states = encode_pieces(run, docs, max_rows)
    lengths = run.index(np.diff(pieces.piece_offsets))
    numbers = run.index(np.arange(len(docs)))
    of_doc = torch.repeat_interleave(numbers, lengths, output_size=len(states))
    sums = states.new_zeros((len(docs), states.shape[1])).index_add(0, of_doc, states)
    return torch.nn.functional.normalize(sums.float(), dim=-1)


def _batches(docs: Sequence[Doc]) -> Iterator[list[int]]:
    batch: list[int] = []
    n_words = 0
    for i in sorted(range(len(docs)), key=lambda i: len(docs[i])):
        if batch and n_words + len(docs[i]) > _MAX_WORDS:
            yield batch
            batch, n_words = [], 0
        batch.append(i)
        n_words += len(docs[i])
    if batch:
        yield batch


def encoder_hash(encoder: Model) -> str:
    """SHA-256 of everything that :func:`text_vectors` depends on: weights, tokenizer, and the
    settings that change inputs. Vectors with another hash cannot be compared with those of this
    encoder."""
    node = encoder_node(encoder)
    module, settings = module_of(node), node.attrs["settings"]
    digest = hashlib.sha256()
    for name, tensor in sorted(module.network.state_dict().items()):
        if name.startswith(_ENTITIES):
            continue
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}\n".encode())
        digest.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    inputs = [settings.tokenization, settings.spaces, settings.word_shapes, module.window]
    digest.update(json.dumps([module.pieces.to_dict(), inputs], sort_keys=True).encode())
    return digest.hexdigest()
