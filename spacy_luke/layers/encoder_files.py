"""Save an encoder as bytes, or as a folder of files that are mapped into memory when it is loaded.

Thinc serialises a model to bytes. For an encoder this is slow and needs three times its memory
while it is loaded. So components that are saved to disk save their encoder in separate files
(``apart``).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

import numpy as np
import torch

from ..checkpoint.source import Source
from ..errors import CheckpointError, LukeError, reading
from ..files import whole_file
from ..mapped_array import map_array, save_array
from ..model.config import LukeConfig
from ..model.network import LukeModel
from ..vocab.entity_index import EntityIndex
from ..vocab.entity_vocab import EntityVocab
from ..vocab.pieces import PieceTokenizer
from .archive import Archive
from .encoder_check import check_encoder
from .encoder_module import Encoder

KIND = "encoder"
FOLDER = "encoder"
_FILE, _ENTITIES = "encoder.safetensors", "entities"
_INDEX, _OTHER = "entities:", "other:"
_ROWS, _ROWS_FILE = "rows", "entity_rows.npy"
_APART = b"apart"
_folder: ContextVar[Path | None] = ContextVar("folder", default=None)


@contextmanager
def apart(folder: Path) -> Iterator[None]:
    """In this context encoders are saved in files of ``folder``, and loaded from there."""
    token = _folder.set(folder)
    try:
        yield
    finally:
        _folder.reset(token)


def save_encoder(module: Encoder) -> bytes:
    """The encoder as bytes; in the context ``apart``, a marker for its files. Raises
    CheckpointError, before anything is written, if the encoder is not usable."""
    with module.lock.reading():  # no other thread is in the middle of a step
        return _saved(module)


def _saved(module: Encoder) -> bytes:
    check_encoder(module, "The encoder that is to be saved")
    folder = _folder.get()
    tensors = dict(module.network.state_dict())
    tensors |= {f"{_OTHER}{name}": tensor for name, tensor in module.others.items()}
    index, table = module.entities.index, module.network.entity_embeddings.table
    stored = table if isinstance(table, np.ndarray) else None
    if folder is None:
        tensors |= {f"{_INDEX}{name}": _tensor(array) for name, array in index.arrays.items()}
        if stored is not None:
            tensors[_ROWS] = _tensor(stored)
    texts = {"pieces": module.pieces.to_dict(), "source": module.source.to_dict()}
    archive = Archive(KIND, module.network.config.to_dict(), tensors, texts)
    if folder is None:
        return archive.to_bytes()
    archive.to_file(folder / _FILE)
    index.save(folder / _ENTITIES)
    if stored is None:
        (folder / _ROWS_FILE).unlink(missing_ok=True)
    else:
        with whole_file(folder / _ROWS_FILE) as temporary:
            save_array(temporary, stored)
    return _APART


def load_encoder(data: bytes) -> Encoder:
    """Load a saved encoder. Raises CheckpointError or VocabError if it is damaged."""
    folder = _folder.get() if data == _APART else None
    what = "The saved encoder" if folder is None else f"The saved encoder in {folder}"
    try:
        with reading("It"):
            encoder = _load(data)
    except LukeError as err:
        raise type(err)(f"{what} cannot be loaded. {err}") from err
    check_encoder(encoder, what, table=False)
    return encoder


def _load(data: bytes) -> Encoder:
    stored: np.ndarray | None = None
    if data == _APART:
        folder = _folder.get()
        if folder is None:
            raise CheckpointError(
                "This encoder was saved in files beside its model: load it with the pipeline."
            )
        archive = Archive.from_file(KIND, folder / _FILE)
        index = EntityIndex.open(folder / _ENTITIES)
        if (folder / _ROWS_FILE).exists():
            stored = _mapped(folder / _ROWS_FILE)
    else:
        archive = Archive.from_bytes(KIND, data)
        index = EntityIndex(
            {
                name.removeprefix(_INDEX): archive.tensors.pop(name).numpy()
                for name in list(archive.tensors)
                if name.startswith(_INDEX)
            }
        )
        if _ROWS in archive.tensors:
            stored = archive.tensors.pop(_ROWS).numpy()
    missing = {"pieces", "source"} - set(archive.texts)
    if missing:
        raise CheckpointError(f"The saved encoder lacks {sorted(missing)}.")
    others = {
        name.removeprefix(_OTHER): archive.tensors.pop(name)
        for name in list(archive.tensors)
        if name.startswith(_OTHER)
    }
    with torch.device("meta"):
        network = LukeModel(LukeConfig.from_dict(archive.config))
    entities = EntityVocab(index)
    if len(entities) != network.config.entity_vocab_size:
        raise CheckpointError(
            f"The saved encoder has rows for {network.config.entity_vocab_size} entities and names "
            f"for {len(entities)}: its files were saved at different times."
        )
    if stored is not None:
        config = network.config
        if stored.shape != (config.entity_vocab_size, config.entity_emb_size):
            raise CheckpointError(f"The saved entity table has the shape {list(stored.shape)}.")
        network.entity_embeddings.set_table(stored)
    try:
        network.load_state_dict(archive.tensors, assign=True)
    except RuntimeError as err:
        raise CheckpointError(f"The saved encoder does not fit its configuration: {err}") from err
    return Encoder(
        network,
        PieceTokenizer.from_dict(archive.texts["pieces"]),
        entities,
        others,
        Source.from_dict(archive.texts["source"]),
    )


def _tensor(array: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.array(array))


def _mapped(path: Path) -> np.ndarray:
    rows = map_array(path, CheckpointError, scattered=False)
    if rows.dtype not in (np.float32, np.float16) or rows.ndim != 2:
        raise CheckpointError(f"{path} is not a table of entities: {rows.dtype}, {rows.shape}.")
    return rows
