"""Vectors of a knowledge base's entities, made by the encoder of a pipeline."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy as np
from spacy.language import Language
from thinc.api import Model
from tqdm import tqdm

from ..errors import ConfigError
from ..kb.knowledge_base import MappedKB
from ..kb.tables import Tables
from ..layers.encoder import ENCODER
from ..layers.listener import is_listener
from ..layers.text_vectors import encoder_hash, text_vectors
from ..model.packing import Array

Text = Literal["name", "description"]
"""What stands for an entity: its name, or its name and description."""

_BLOCK = 1024
_MAX_CHARACTERS = 2000
"""Of a text; the rest of longer descriptions is not encoded."""


def find_encoder(nlp: Language, component: str | None = None) -> Model:
    """The encoder, or listener, of a component; by default of the first that has one. Raises
    ConfigError if there is none."""
    for name, pipe in nlp.pipeline:
        model = getattr(pipe, "model", None)
        if isinstance(model, Model) and component in (None, name):
            for node in model.walk():
                if node.name == ENCODER or is_listener(node):
                    return node
    what = "No component has an encoder"
    if component is not None:
        what = f"component is {component!r}, which has no encoder"
    raise ConfigError(f"{what}; the pipeline has {', '.join(nlp.pipe_names) or 'none'}.")


def vectors_hash(encoder: Model, text: Text) -> str:
    """What identifies the vectors of entities by this encoder and kind of text."""
    return f"{encoder_hash(encoder)} {text}"


def make_vectors(
    nlp: Language,
    kb: MappedKB,
    text: Text = "description",
    half: bool = False,
    component: str | None = None,
) -> int:
    """Set the vectors of all entities, each of length 1. If the present ones are those of this
    encoder and kind of text, only missing ones (of entities that were added or changed) are made.

    text: see :data:`Text`. half: float16, which takes half of the memory and disk.
    component: whose encoder is used.

    Returns the number of vectors that were made. They are written to a temporary file, and
    mapped, so that millions of them need little memory.
    """
    encoder = find_encoder(nlp, component)
    dtype, identity = np.dtype(np.float16 if half else np.float32), vectors_hash(encoder, text)
    old = kb.tables.vectors
    if old is not None and (kb.vectors_hash != identity or old.dtype != dtype):
        old = None
    rows = np.arange(len(kb)) if old is None else kb.without_vector()
    if not len(rows):
        if old is None:
            kb.set_vectors(np.zeros((0, _width(encoder)), dtype=dtype), identity)
        return 0
    with tempfile.TemporaryDirectory(prefix="spacy-luke-vectors-") as folder:
        file = Path(folder) / "vectors.npy"
        shape = (len(kb), _width(encoder))
        vectors = np.lib.format.open_memmap(file, "w+", dtype, shape)
        if old is not None:
            for start in range(0, len(kb), _BLOCK):
                vectors[start : start + _BLOCK] = old[start : start + _BLOCK]
        for part in tqdm(list(_blocks(rows)), "entity vectors", leave=False, disable=None):
            docs = [nlp.make_doc(_text(kb.tables, int(row), text)) for row in part]
            vectors[part] = text_vectors(encoder, docs)
        vectors.flush()
        # The file is removed and exists as long as it is mapped.
        kb.set_vectors(np.load(file, mmap_mode="r"), identity)
    return len(rows)


def _width(encoder: Model) -> int:
    return text_vectors(encoder, []).shape[1]


def _blocks(rows: Array) -> Iterator[Array]:
    return (rows[i : i + _BLOCK] for i in range(0, len(rows), _BLOCK))


def _text(tables: Tables, row: int, text: Text) -> str:
    name = tables.names[row]
    if text == "name" or not tables.descriptions[row]:
        return name
    return f"{name}: {tables.descriptions[row]}"[:_MAX_CHARACTERS]
