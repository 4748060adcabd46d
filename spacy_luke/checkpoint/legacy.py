"""Directories of the official repository: ``metadata.json`` instead of ``config.json``, head names
of their own, no tokenizer, and (fine-tuned ones) a cut entity table without a vocabulary."""

from pathlib import Path
from typing import Any

from ..errors import CheckpointError
from ..json_file import read_object
from ..vocab.entity_vocab import MASK, MASK2, PAD, EntityVocab
from ..vocab.pieces import PieceTokenizer
from .classes import BARE_MODEL, CLASSES
from .config import is_bert
from .hub import resolve
from .names import CLASSIFIER_WEIGHT, Weights
from .read_tokenizer import TOKENIZER_FILES, read_tokenizer

METADATA = "metadata.json"
_WORDS = "embeddings.word_embeddings.weight"
_ENTITIES = "entity_embeddings.entity_embeddings.weight"
# Pieces that fine-tuning appended to the word table, by their number, under our names.
_MARKERS = {
    1: ("<ent>",),
    2: ("<ent>", "<ent2>"),
    3: ("<highlight>", "<placeholder>", "<ent>"),
}
_CUT = (PAD, MASK, MASK2)  # the rows of a cut entity table


def is_legacy(directory: Path) -> bool:
    return (directory / METADATA).exists() and not (directory / "config.json").exists()


def read_metadata(directory: Path) -> dict[str, Any]:
    """``model_config`` of ``metadata.json`` as a configuration. Raises CheckpointError."""
    path = directory / METADATA
    found = read_object(path).get("model_config")
    if not isinstance(found, dict):
        raise CheckpointError(f"{path} has no readable model_config: it is {found!r}.")
    raw = dict(found)
    hidden = raw.setdefault("hidden_size", 768)
    if not isinstance(hidden, int) or isinstance(hidden, bool) or hidden < 1:
        raise CheckpointError(f"{path}: hidden_size is {hidden!r}; expected a number from 1.")
    raw["model_type"] = "luke"
    if raw.get("entity_emb_size") is None:
        raw["entity_emb_size"] = hidden
    if not is_bert(raw):
        # Written as BERT's default; the official reader overrides it too, or all positions shift.
        raw["pad_token_id"] = 1
    return raw


def fit(raw: dict[str, Any], tensors: Weights) -> None:
    """Complete a configuration from the tensors, in place: fine-tuning changed the tables' sizes
    and left no word about its head. tensors: under their published names."""
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
    """The tokenizer of the encoder that the model began as, with the markers that were appended.

    Its files may lie in the directory; else they are those of ``bert_model_name``.
    """
    if any((directory / name).exists() for name in TOKENIZER_FILES):
        pieces = read_tokenizer(directory)
    else:
        name = str(raw.get("bert_model_name", ""))
        try:
            pieces = read_tokenizer(resolve(name, weights=False))
        except CheckpointError as err:
            raise CheckpointError(
                f"{directory} has no tokenizer, and that of its bert_model_name {name!r} could not "
                f"be had ({err}) Put the tokenizer files of {name!r} into the directory."
            ) from err
    first = len(pieces)
    markers = _MARKERS.get(int(raw["vocab_size"]) - first, ())
    pieces.added.update({name: first + i for i, name in enumerate(markers)})
    return pieces


def cut_vocabulary(raw: dict[str, Any]) -> EntityVocab | None:
    """The vocabulary of a table that fine-tuning cut to [PAD], [MASK] and, for two entities,
    [MASK2]; None where the table is not cut."""
    n_rows = int(raw.get("entity_vocab_size", 0))
    if n_rows not in (2, 3):
        return None
    return EntityVocab({name: i for i, name in enumerate(_CUT[:n_rows])})
