"""A checkpoint of random weights in the published layout and in full size.

Titles are numbers. Pieces are learned from the project's own articles and filled up to the
published number: byte-level BPE, or for the multilingual sizes a SentencePiece model, filled up
with random strings of other scripts.
"""

import importlib
import io
import json
import random
from pathlib import Path
from typing import Any

from .peer_data import ARTICLES

_BASE = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12}
SIZES: dict[str, dict[str, Any]] = {
    "tiny": {
        "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 64, "vocab_size": 2000, "entity_vocab_size": 5000,
        "entity_emb_size": 16,
    },
    "tiny-multilingual": {
        "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 64, "vocab_size": 4000, "entity_vocab_size": 5000,
        "entity_emb_size": 16, "use_entity_aware_attention": False, "language": "en:",
    },
    "luke-base": {**_BASE, "vocab_size": 50_267, "entity_vocab_size": 500_000},
    "mluke-base": {
        **_BASE, "vocab_size": 250_004, "entity_vocab_size": 1_200_000,
        "use_entity_aware_attention": False, "language": "en:",
    },
}  # fmt: skip


def title(size: str, number: int) -> str:
    return f"{SIZES[size].get('language', '')}Title of the entity {number}"


def fabricate(folder: Path, size: str) -> Path:
    """A directory of random weights in the published layout."""
    import torch
    from safetensors.torch import save_file

    path = folder / "published"
    if path.exists():
        return path
    path.mkdir(parents=True)
    values = dict(SIZES[size])
    language = values.pop("language", "")
    n_pieces = values["vocab_size"] - 2
    (_sentencepiece if language else _byte_level)(path, n_pieces)
    _write(path / "added_tokens.json", {"<ent>": n_pieces, "<ent2>": n_pieces + 1})
    names = {"[PAD]": 0, "[UNK]": 1, "[MASK]": 2}
    n = values["entity_vocab_size"]
    names |= {f"{language}Title of the entity {i}": i for i in range(3, n - 1)}
    _write(path / "entity_vocab.json", {**names, "[MASK2]": n - 1})
    config = {
        "model_type": "luke",
        "architectures": ["LukeModel"],
        "intermediate_size": 3072,
        "entity_emb_size": 256,
        "max_position_embeddings": 514,
        "type_vocab_size": 1,
        "layer_norm_eps": 1e-5,
        "pad_token_id": 1,
        "use_entity_aware_attention": True,
        **values,
    }
    _write(path / "config.json", config)
    import transformers

    with torch.device("meta"):
        network = transformers.LukeModel(transformers.LukeConfig(**config))
    torch.manual_seed(0)
    tensors = {
        name: torch.ones(x.shape) if "LayerNorm.weight" in name else torch.randn(x.shape) * 0.02
        for name, x in network.state_dict().items()
    }
    save_file(tensors, path / "model.safetensors", {"format": "pt"})
    return path


def _byte_level(path: Path, n_pieces: int) -> None:
    """``vocab.json`` and ``merges.txt``."""
    from tokenizers import ByteLevelBPETokenizer

    tokenizer = ByteLevelBPETokenizer()
    specials = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    lines = ARTICLES.read_text("utf8").split("\n")
    tokenizer.train_from_iterator(lines, vocab_size=min(n_pieces, 2000), special_tokens=specials)
    tokenizer.save_model(str(path))
    pieces = json.loads((path / "vocab.json").read_text("utf8"))
    for i in range(len(pieces), n_pieces):  # never met in text
        pieces[f"piece{i}"] = i
    _write(path / "vocab.json", pieces)


def _sentencepiece(path: Path, n_pieces: int) -> None:
    """``sentencepiece.bpe.model``; ids begin one later than its pieces, and end with <mask>."""
    import sentencepiece

    proto: Any = importlib.import_module("sentencepiece.sentencepiece_model_pb2")
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(ARTICLES.read_text("utf8").split("\n")),
        model_writer=written,
        vocab_size=2000,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    model = proto.ModelProto()
    model.ParseFromString(written.getvalue())
    known = {piece.piece for piece in model.pieces}
    score = min(piece.score for piece in model.pieces)
    rng = random.Random(0)
    while len(model.pieces) < n_pieces - 2:  # of scripts that are never met in the text
        first, last, longest = rng.choice([("а", "я", 9), ("α", "ω", 9), ("一", "鿏", 3)])
        letters = rng.choices(range(ord(first), ord(last) + 1), k=rng.randint(1, longest))
        piece = rng.choice(["", "\u2581"]) + "".join(map(chr, letters))
        if piece not in known:
            known.add(piece)
            score -= 1e-5
            model.pieces.add(piece=piece, score=score)
    (path / "sentencepiece.bpe.model").write_bytes(model.SerializeToString())
    _write(path / "tokenizer_config.json", {"tokenizer_class": "MLukeTokenizer"})


def _write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False), "utf8")
