"""Write a piece tokenizer to the files of a checkpoint directory."""

from pathlib import Path
from typing import Any

from ..json_file import write_object
from ..vocab.pieces import SPECIALS, PieceTokenizer
from ..vocab.sentencepiece import MODEL_FILE, SentencePieceModel
from .read_tokenizer import MARKERS

# Classes of transformers that read the written files, if the source does not name one.
_CLASSES = {"BPE": "LukeTokenizer", "WordPiece": "BertTokenizer", "Unigram": "XLMRobertaTokenizer"}
_ANY_CLASS = "PreTrainedTokenizerFast"
TOKENIZER_FILES = (
    *("tokenizer_config.json", "tokenizer.json", "added_tokens.json"),
    *("vocab.json", "merges.txt", "vocab.txt", MODEL_FILE),
)
"""All that :func:`write_tokenizer` may write."""


def write_tokenizer(tokenizer: PieceTokenizer, folder: Path) -> None:
    """Write files that :func:`.read_tokenizer.read_tokenizer` reads as the same tokenizer.

    Writes ``tokenizer_config.json`` and ``tokenizer.json``, and the older files of the same kind:
    ``vocab.json`` and ``merges.txt``, or ``vocab.txt``. A tokenizer from
    ``sentencepiece.bpe.model`` is written to that file and ``added_tokens.json``, which
    transformers' tokenizers of mLUKE and XLM-R read: a ``tokenizer.json`` cannot contain all of
    such a model."""
    names = {index: name for name, index in tokenizer.added.items()}
    specials = {role: names[tokenizer.special_ids[role]] for role in SPECIALS}
    if isinstance(tokenizer.model, SentencePieceModel):
        _write_sentencepiece(tokenizer.model, tokenizer.settings, folder, names, specials)
        return
    data = tokenizer.to_dict()["tokenizer"]
    data["added_tokens"] = [_added(name, index) for index, name in sorted(names.items())]
    model = data["model"]
    data["post_processor"] = _post_processor(specials, tokenizer.special_ids, model["type"])
    if model["type"] == "Unigram":  # undo ``vocab.pieces._unigram``
        hidden = {f" {name} ": name for name in names.values()}
        model["vocab"] = [[hidden.get(piece, piece), score] for piece, score in model["vocab"]]
    config = {**tokenizer.settings, **_names(specials)}
    config.setdefault("tokenizer_class", _CLASSES.get(model["type"], _ANY_CLASS))
    normalizer = data.get("normalizer") or {}
    if normalizer.get("type") == "BertNormalizer":
        config["do_lower_case"] = normalizer["lowercase"]
        config["strip_accents"] = normalizer["strip_accents"]
        config["tokenize_chinese_chars"] = normalizer["handle_chinese_chars"]
    if model["type"] == "BPE":
        config["add_prefix_space"] = tokenizer.prefix_space
    write_object(folder / "tokenizer.json", data)
    write_object(folder / "tokenizer_config.json", config)
    if model["type"] == "BPE":
        vocab = model["vocab"]
        write_object(folder / "vocab.json", vocab)
        merges = (x if isinstance(x, str) else " ".join(x) for x in model["merges"])
        (folder / "merges.txt").write_text("\n".join(["#version: 0.2", *merges, ""]), "utf8")
        added = {name: i for i, name in names.items() if name not in vocab}
        write_object(folder / "added_tokens.json", added)
    elif model["type"] == "WordPiece":
        # One line per id. An id without a piece (of two equal lines, the first has none) gets a
        # string that occurs in no text, so that later ids do not shift.
        pieces = {i: piece for piece, i in model["vocab"].items()}
        lines = [pieces.get(i, names.get(i, f" {i}")) for i in range(max(pieces) + 1)]
        (folder / "vocab.txt").write_text("\n".join([*lines, ""]), "utf8")


def _write_sentencepiece(
    model: SentencePieceModel,
    settings: dict[str, Any],
    folder: Path,
    names: dict[int, str],
    specials: dict[str, str],
) -> None:
    added = {name: index for index, name in sorted(names.items()) if index >= model.n_ids}
    kind = "MLukeTokenizer" if set(MARKERS) <= set(added) else "XLMRobertaTokenizer"
    config: dict[str, Any] = {**settings, "tokenizer_class": kind, **_names(specials)}
    config["additional_special_tokens"] = [x for x in added if x not in specials.values()]
    (folder / MODEL_FILE).write_bytes(model.raw)
    write_object(folder / "added_tokens.json", added)
    write_object(folder / "tokenizer_config.json", config)


def _post_processor(names: dict[str, str], ids: dict[str, int], kind: str) -> dict[str, Any]:
    """The post-processor that adds special pieces, for other readers: ours ignores it."""
    ends: dict[str, Any] = {role: [names[role], ids[role]] for role in ("sep", "cls")}
    if kind == "WordPiece":
        return {"type": "BertProcessing", **ends}
    return {"type": "RobertaProcessing", **ends, "trim_offsets": True, "add_prefix_space": False}


def _names(specials: dict[str, str]) -> dict[str, Any]:
    names = {f"{role}_token": name for role, name in specials.items()}
    return {**names, "bos_token": specials["cls"], "eos_token": specials["sep"]}


def _added(name: str, index: int) -> dict[str, Any]:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": index, "content": name, **flags, "special": True}
