"""A piece tokenizer back to the files of a checkpoint directory."""

import copy
import json
from pathlib import Path
from typing import Any

from .pieces import SPECIALS, PieceTokenizer


def write_pieces(tokenizer: PieceTokenizer, folder: Path) -> None:
    """Write ``tokenizer.json`` and ``tokenizer_config.json``, which
    :meth:`PieceTokenizer.from_directory` reads as the same tokenizer, and beside them the older
    files of the kind: ``vocab.json`` and ``merges.txt``, or ``vocab.txt``."""
    values = tokenizer.to_dict()
    data = copy.deepcopy(values["tokenizer"])
    names = {index: name for name, index in values["added"].items()}
    specials = {role: names[values["special_ids"][role]] for role in SPECIALS}
    data["added_tokens"] = [_added(name, index) for index, name in sorted(names.items())]
    model = data["model"]
    if model["type"] == "Unigram":  # where special pieces were hidden from the text
        hidden = {f" {name} ": name for name in names.values()}
        model["vocab"] = [[hidden.get(piece, piece), score] for piece, score in model["vocab"]]
    config = {f"{role}_token": name for role, name in specials.items()}
    config |= {"bos_token": specials["cls"], "eos_token": specials["sep"]}
    normalizer = data.get("normalizer") or {}
    if normalizer.get("type") == "BertNormalizer":
        config["do_lower_case"] = normalizer["lowercase"]
        config["strip_accents"] = normalizer["strip_accents"]
        config["tokenize_chinese_chars"] = normalizer["handle_chinese_chars"]
    _write(folder / "tokenizer.json", data)
    _write(folder / "tokenizer_config.json", config)
    if model["type"] == "BPE":
        own = {piece: i for piece, i in model["vocab"].items() if i < len(model["vocab"])}
        _write(folder / "vocab.json", own)
        merges = (x if isinstance(x, str) else " ".join(x) for x in model["merges"])
        (folder / "merges.txt").write_text("\n".join(["#version: 0.2", *merges, ""]), "utf8")
        further = {name: i for i, name in names.items() if i >= len(model["vocab"])}
        _write(folder / "added_tokens.json", further)
    elif model["type"] == "WordPiece":
        pieces = sorted(model["vocab"], key=model["vocab"].__getitem__)
        (folder / "vocab.txt").write_text("\n".join([*pieces, ""]), "utf8")


def _added(name: str, index: int) -> dict[str, Any]:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": index, "content": name, **flags, "special": True}


def _write(path: Path, data: Any) -> None:
    path.write_text(json.dumps(data, ensure_ascii=False, indent=1) + "\n", "utf8")
