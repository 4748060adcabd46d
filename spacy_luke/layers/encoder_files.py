"""An encoder to bytes, or to a folder of files that are mapped into memory when it is read.

Thinc keeps a model in one piece of bytes. For an encoder that is slow and holds everything three
times while it loads; so components that are saved to disk put it beside (``apart``).
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
from ..model.config import LukeConfig
from ..model.encoder import LukeModel
from ..vocab.entity_index import EntityIndex
from ..vocab.entity_vocab import EntityVocab
from ..vocab.pieces import PieceTokenizer
from .blob import Blob
from .encoder_check import check_encoder
from .encoder_module import Encoder

KIND = "encoder"
FOLDER = "encoder"
_FILE, _ENTITIES = "encoder.safetensors", "entities"
_INDEX, _OTHER = "entities:", "other:"
_ROWS, _ROWS_FILE = "rows", "entity_rows.npy"
_APART = b"apart"
_beside: ContextVar[Path | None] = ContextVar("beside", default=None)


@contextmanager
def apart(folder: Path) -> Iterator[None]:
    """Encoders saved in this context go to files of ``folder``, and are read from there."""
    token = _beside.set(folder)
    try:
        yield
    finally:
        _beside.reset(token)


def save_encoder(module: Encoder) -> bytes:
    """Raises CheckpointError, before anything is written, if the encoder could not be used."""
    check_encoder(module, "The encoder that is to be saved")
    folder = _beside.get()
    tensors = dict(module.network.state_dict())
    tensors |= {f"{_OTHER}{name}": tensor for name, tensor in module.others.items()}
    index, table = module.entities.index, module.network.entity_embeddings.table
    stored = table if isinstance(table, np.ndarray) else None
    if folder is None:
        tensors |= {f"{_INDEX}{name}": _tensor(array) for name, array in index.arrays.items()}
        if stored is not None:
            tensors[_ROWS] = _tensor(stored)
    texts = {"pieces": module.pieces.to_dict(), "source": module.source.to_dict()}
    blob = Blob(KIND, module.network.config.to_dict(), tensors, texts)
    if folder is None:
        return blob.to_bytes()
    blob.to_file(folder / _FILE)
    index.save(folder / _ENTITIES)
    if stored is None:
        (folder / _ROWS_FILE).unlink(missing_ok=True)
    else:
        with whole_file(folder / _ROWS_FILE) as temporary, temporary.open("wb") as file:
            np.save(file, stored)
    return _APART


def load_encoder(data: bytes) -> Encoder:
    """Raises CheckpointError or VocabError if what was saved is damaged."""
    folder = _beside.get() if data == _APART else None
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
        folder = _beside.get()
        if folder is None:
            raise CheckpointError(
                "This encoder was saved to files beside its model: load it with the pipeline."
            )
        blob = Blob.from_file(KIND, folder / _FILE)
        index = EntityIndex.open(folder / _ENTITIES)
        if (folder / _ROWS_FILE).exists():
            stored = _mapped(folder / _ROWS_FILE)
    else:
        blob = Blob.from_bytes(KIND, data)
        index = EntityIndex(
            {
                name.removeprefix(_INDEX): blob.tensors.pop(name).numpy()
                for name in list(blob.tensors)
                if name.startswith(_INDEX)
            }
        )
        if _ROWS in blob.tensors:
            stored = blob.tensors.pop(_ROWS).numpy()
    missing = {"pieces", "source"} - set(blob.texts)
    if missing:
        raise CheckpointError(f"The saved encoder lacks {sorted(missing)}.")
    others = {
        name.removeprefix(_OTHER): blob.tensors.pop(name)
        for name in list(blob.tensors)
        if name.startswith(_OTHER)
    }
    with torch.device("meta"):
        network = LukeModel(LukeConfig.from_dict(blob.config))
    entities = EntityVocab(index)
    if len(entities) != network.config.entity_vocab_size:
        raise CheckpointError(
            f"The saved encoder has rows for {network.config.entity_vocab_size} entities and names "
            f"for {len(entities)}: its files are of two different saves."
        )
    if stored is not None:
        config = network.config
        if stored.shape != (config.entity_vocab_size, config.entity_emb_size):
            raise CheckpointError(f"The saved entity table has the shape {list(stored.shape)}.")
        network.entity_embeddings.set_table(stored)
    try:
        network.load_state_dict(blob.tensors, assign=True)
    except RuntimeError as err:
        raise CheckpointError(f"The saved encoder does not fit its configuration: {err}") from err
    return Encoder(
        network,
        PieceTokenizer.from_dict(blob.texts["pieces"]),
        entities,
        others,
        Source.from_dict(blob.texts["source"]),
    )


def _tensor(array: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.array(array))


def _mapped(path: Path) -> np.ndarray:
    try:
        rows = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as err:
        raise CheckpointError(f"{path} cannot be read: {err}.") from err
    if rows.dtype not in (np.float32, np.float16) or rows.ndim != 2:
        raise CheckpointError(f"{path} is no table of entities: {rows.dtype}, {rows.shape}.")
    return rows.view(np.ndarray)
