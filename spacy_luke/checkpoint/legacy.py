"""Directories of the official repository. They have ``metadata.json`` instead of ``config.json``,
other names of heads, and no tokenizer. Fine-tuned ones have a pruned entity table without a
vocabulary."""

from pathlib import Path
from typing import Any

from ..errors import CheckpointError
from ..json_file import read_object
from ..vocab.entity_vocab import MASK, MASK2, PAD, EntityVocab
from ..vocab.pieces import PieceTokenizer
from .classes import BARE_MODEL, CLASSES
from .hub import resolve
from .names import CLASSIFIER_WEIGHT, Weights
from .network_config import is_bert
from .read_tokenizer import TOKENIZER_FILES, read_tokenizer

METADATA = "metadata.json"
_WORDS = "embeddings.word_embeddings.weight"
_ENTITIES = "entity_embeddings.entity_embeddings.weight"
# Number of pieces that fine-tuning appended to the word table -> our names for them.
_MARKERS = {
    1: ("<ent>",),
    2: ("<ent>", "<ent2>"),
    3: ("<highlight>", "<placeholder>", "<ent>"),
}
_PRUNED = (PAD, MASK, MASK2)  # the rows of a pruned entity table


def is_legacy(directory: Path) -> bool:
    return (directory / METADATA).exists() and not (directory / "config.json").exists()


def read_metadata(directory: Path) -> dict[str, Any]:
    """``model_config`` of ``metadata.json`` in the form of a ``config.json``. Raises
    CheckpointError."""
    path = directory / METADATA
    model_config = read_object(path).get("model_config")
    if not isinstance(model_config, dict):
        raise CheckpointError(f"{path}: model_config is {model_config!r}, not an object.")
    raw = dict(model_config)
    hidden = raw.setdefault("hidden_size", 768)
    if not isinstance(hidden, int) or isinstance(hidden, bool) or hidden < 1:
        raise CheckpointError(f"{path}: hidden_size is {hidden!r}; expected a number from 1.")
    raw["model_type"] = "luke"
    if raw.get("entity_emb_size") is None:
        raw["entity_emb_size"] = hidden
    if not is_bert(raw):
        # The file has BERT's default. The official reader overrides it, too: it shifts all
        # positions.
        raw["pad_token_id"] = 1
    return raw


def fit(raw: dict[str, Any], tensors: Weights) -> None:
    """Complete a configuration in place: fine-tuning changed the sizes of tables, and the file does
    not name the class of the head. tensors: under their published names."""
    for key, name in (("vocab_size", _WORDS), ("entity_vocab_size", _ENTITIES)):
        if name in tensors:
            raw[key] = len(tensors[name])
    raw.setdefault("architectures", [_architecture(raw, tensors)])


def _architecture(raw: dict[str, Any], tensors: Weights) -> str:
    if CLASSIFIER_WEIGHT in tensors:
        n_states = tensors[CLASSIFIER_WEIGHT].shape[-1] // raw["hidden_size"]
        return next((x.name for x in CLASSES if n_states and x.n_states == n_states), "")
    return next((x.name for x in CLASSES if x.sign in tensors), BARE_MODEL.name)


def read_pieces(directory: Path, raw: dict[str, Any]) -> PieceTokenizer:
    """The tokenizer of the original encoder, with the marker pieces that fine-tuning appended.

    It is read from the directory if it has tokenizer files, else from ``bert_model_name``.
    """
    if any((directory / name).exists() for name in TOKENIZER_FILES):
        pieces = read_tokenizer(directory)
    else:
        name = str(raw.get("bert_model_name", ""))
        try:
            pieces = read_tokenizer(resolve(name, weights=False))
        except CheckpointError as err:
            raise CheckpointError(
                f"{directory} has no tokenizer, and that of its bert_model_name {name!r} cannot be "
                f"loaded ({err}) Copy the tokenizer files of {name!r} into the directory."
            ) from err
    first = len(pieces)
    markers = _MARKERS.get(int(raw["vocab_size"]) - first, ())
    pieces.added.update({name: first + i for i, name in enumerate(markers)})
    return pieces


def pruned_vocabulary(raw: dict[str, Any]) -> EntityVocab | None:
    """The vocabulary of a table that fine-tuning pruned to [PAD], [MASK] and, for pairs, [MASK2];
    None if the table was not pruned."""
    n_rows = int(raw.get("entity_vocab_size", 0))
    if n_rows not in (2, 3):
        return None
    return EntityVocab({name: i for i, name in enumerate(_PRUNED[:n_rows])})
