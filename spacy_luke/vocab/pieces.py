"""Word pieces by the Rust ``tokenizers`` library: byte-level BPE, WordPiece and Unigram.

The tokenizer is used on *parts* of a text (see ``inputs/alignment.py``) and never adds or
recognises special pieces: ``<mask>`` or ``</s>`` in a user's text is ordinary text. Special
pieces are added by id where sequences are assembled.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

from ..errors import CheckpointError, VocabError

Array = np.ndarray

SPECIALS = ("cls", "sep", "mask", "pad", "unk")
_NAMES = {
    "bracket": dict(zip(SPECIALS, ("[CLS]", "[SEP]", "[MASK]", "[PAD]", "[UNK]"))),
    "angle": dict(zip(SPECIALS, ("<s>", "</s>", "<mask>", "<pad>", "<unk>"))),
}
# Parts are mostly single words, and words repeat: remember this many of them.
_CACHE_SIZE = 200_000


class PieceTokenizer:
    """Text parts to piece ids.

    tokenizer: a ``tokenizers.Tokenizer`` without post-processing or added tokens.
    special_ids: ids of cls, sep, mask, pad and unk.
    added: special and further pieces, such as ``<ent>``, by name; never found in text.
    """

    def __init__(self, tokenizer: Tokenizer, special_ids: dict[str, int], added: dict[str, int]):
        self._tokenizer = tokenizer
        self.special_ids = special_ids
        self.added = added
        self._cache: dict[str, Array] = {}

    @property
    def cls_id(self) -> int:
        return self.special_ids["cls"]

    @property
    def sep_id(self) -> int:
        return self.special_ids["sep"]

    @property
    def mask_id(self) -> int:
        return self.special_ids["mask"]

    @property
    def pad_id(self) -> int:
        return self.special_ids["pad"]

    @property
    def unk_id(self) -> int:
        return self.special_ids["unk"]

    @property
    def spaces_matter(self) -> bool:
        """True where a leading space changes the pieces of a part (byte-level BPE)."""
        return isinstance(self._tokenizer.model, models.BPE)

    def id_of(self, piece: str) -> int | None:
        """The id of a piece or added piece by its string."""
        if piece in self.added:
            return self.added[piece]
        return self._tokenizer.token_to_id(piece)

    def __len__(self) -> int:
        highest = max([*self.added.values(), *self.special_ids.values()], default=-1)
        return max(self._tokenizer.get_vocab_size(), highest + 1)

    def encode_words(self, parts: Sequence[str]) -> list[Array]:
        """Piece ids of each part, (n_pieces,) each; repeated parts are looked up."""
        missing = {part for part in parts if part not in self._cache}
        if missing:
            if len(self._cache) + len(missing) > _CACHE_SIZE:
                self._cache = {}
                missing = set(parts)
            ordered = sorted(missing)
            encodings = self._tokenizer.encode_batch(ordered, add_special_tokens=False)
            for part, encoding in zip(ordered, encodings):
                self._cache[part] = np.asarray(encoding.ids, dtype=np.int64)
        cache = self._cache
        return [cache[part] for part in parts]

    def encode_parts(self, parts: Sequence[str]) -> list[tuple[Array, Array]]:
        """Ids (n_pieces,) and character offsets (n_pieces, 2) of each part."""
        encodings = self._tokenizer.encode_batch(list(parts), add_special_tokens=False)
        return [
            (
                np.asarray(e.ids, dtype=np.int64),
                np.asarray(e.offsets, dtype=np.int64).reshape(-1, 2),
            )
            for e in encodings
        ]

    def encode_texts(self, texts: Sequence[str]) -> list[tuple[Array, Array, Array]]:
        """Of each text: ids (n_pieces,), character offsets (n_pieces, 2), and whether a word starts
        at a piece (n_pieces,), a word being what the tokenizer splits a text into before pieces."""
        encodings = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        found = []
        for e in encodings:
            words = np.asarray([-1 if x is None else x for x in e.word_ids], dtype=np.int64)
            found.append(
                (
                    np.asarray(e.ids, dtype=np.int64),
                    np.asarray(e.offsets, dtype=np.int64).reshape(-1, 2),
                    np.diff(words, prepend=-2) != 0,
                )
            )
        return found

    def to_dict(self) -> dict[str, Any]:
        return {
            "tokenizer": json.loads(self._tokenizer.to_str()),
            "special_ids": self.special_ids,
            "added": self.added,
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "PieceTokenizer":
        tokenizer = Tokenizer.from_str(json.dumps(values["tokenizer"]))
        return cls(tokenizer, dict(values["special_ids"]), dict(values["added"]))

    def __getstate__(self) -> dict[str, Any]:
        return self.to_dict()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = PieceTokenizer.from_dict(state).__dict__

    @classmethod
    def from_directory(cls, path: Path) -> "PieceTokenizer":
        """Read the tokenizer files of a checkpoint directory.

        Looks for ``tokenizer.json``, then ``vocab.json`` with ``merges.txt`` (byte-level BPE),
        then ``vocab.txt`` (WordPiece). Raises CheckpointError naming what is missing, and
        VocabError where a special piece is absent.
        """
        config = _read_json(path / "tokenizer_config.json", optional=True)
        if (path / "tokenizer.json").exists():
            data = _read_json(path / "tokenizer.json")
        elif (path / "vocab.json").exists() and (path / "merges.txt").exists():
            data = _byte_level_bpe(path, bool(config.get("add_prefix_space", False)))
        elif (path / "vocab.txt").exists():
            data = _wordpiece(path, config)
        else:
            raise CheckpointError(
                f"No tokenizer in {path}: expected tokenizer.json, vocab.json with merges.txt, "
                "or vocab.txt."
            )
        further = _read_json(path / "added_tokens.json", optional=True)
        try:
            listed = {token["content"]: token["id"] for token in data.get("added_tokens") or []}
            added = {piece: int(index) for piece, index in {**listed, **further}.items()}
            ids = {**_piece_ids(data), **added}
        except (KeyError, TypeError, ValueError) as err:
            raise CheckpointError(
                f"The tokenizer files in {path} cannot be read: {err!r}."
            ) from err
        data.update(added_tokens=[], post_processor=None, truncation=None, padding=None)
        names = _special_names(config, ids)
        special_ids = {}
        for role in SPECIALS:
            if names[role] not in ids:
                raise VocabError(
                    f"The tokenizer in {path} has no {names[role]} piece (its {role} piece)."
                )
            special_ids[role] = ids[names[role]]
        hidden = {*names.values(), *added}
        _hide_from_unigram(data, hidden)
        try:
            tokenizer = Tokenizer.from_str(json.dumps(data))
        except Exception as err:  # the Rust library raises bare Exception
            raise CheckpointError(f"The tokenizer files in {path} cannot be read: {err}.") from err
        return cls(tokenizer, special_ids, {name: ids[name] for name in sorted(hidden)})


def _special_names(config: dict[str, Any], ids: dict[str, int]) -> dict[str, str]:
    """The strings of the special pieces: as configured, else by the family's habit."""
    names = dict(_NAMES["bracket" if "[CLS]" in ids else "angle"])
    for role in SPECIALS:
        value = config.get(f"{role}_token")
        if isinstance(value, dict):  # an AddedToken, serialised
            value = value.get("content")
        if isinstance(value, str):
            names[role] = value
    return names


def _piece_ids(data: dict[str, Any]) -> dict[str, int]:
    """piece -> id of a serialised tokenizer; Unigram lists its pieces in order of their ids."""
    vocab = data["model"]["vocab"]
    return vocab if isinstance(vocab, dict) else {piece: i for i, (piece, _) in enumerate(vocab)}


def _hide_from_unigram(data: dict[str, Any], names: set[str]) -> None:
    """Unigram would find ``</s>`` in a user's text: give special pieces a string no text has.

    Scores stay as they are, because unknown characters are scored by the lowest of them. No
    text reaches the model with a space in it: it is a ``\u2581`` by then.
    """
    model = data["model"]
    if model.get("type") == "Unigram":
        model["vocab"] = [
            [f" {piece} " if piece in names else piece, score] for piece, score in model["vocab"]
        ]


def _byte_level_bpe(path: Path, add_prefix_space: bool) -> dict[str, Any]:
    tokenizer = _build(
        path, lambda: models.BPE.from_file(str(path / "vocab.json"), str(path / "merges.txt"))
    )
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
    tokenizer.decoder = decoders.ByteLevel()
    return json.loads(tokenizer.to_str())


def _wordpiece(path: Path, config: dict[str, Any]) -> dict[str, Any]:
    tokenizer = _build(
        path, lambda: models.WordPiece.from_file(str(path / "vocab.txt"), unk_token="[UNK]")
    )
    tokenizer.normalizer = normalizers.BertNormalizer(
        lowercase=bool(config.get("do_lower_case", True)),
        strip_accents=config.get("strip_accents"),
        handle_chinese_chars=bool(config.get("tokenize_chinese_chars", True)),
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    return json.loads(tokenizer.to_str())


def _build(path: Path, model: Any) -> Tokenizer:
    try:
        return Tokenizer(model())
    except Exception as err:  # the Rust library raises bare Exception
        raise CheckpointError(f"The tokenizer files in {path} cannot be read: {err}.") from err


def _read_json(path: Path, optional: bool = False) -> dict[str, Any]:
    if optional and not path.exists():
        return {}
    try:
        value = json.loads(path.read_text(encoding="utf8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as err:
        raise CheckpointError(f"{path} cannot be read as JSON: {err}.") from err
    if not isinstance(value, dict):
        raise CheckpointError(f"{path} holds a {type(value).__name__}, not an object.")
    return value
