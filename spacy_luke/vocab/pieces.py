"""Word pieces by the Rust ``tokenizers`` library: byte-level BPE, WordPiece and Unigram.

The tokenizer is used on *parts* of a text (see ``inputs/alignment.py``) and never adds or
recognises special pieces: ``<mask>`` or ``</s>`` in a user's text is ordinary text. Special
pieces are added by id where sequences are assembled.
"""

import base64
import copy
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Encoding, Tokenizer, decoders, models, normalizers, pre_tokenizers

from ..errors import CheckpointError, VocabError
from ..json_file import read_object
from .entities import FILE_NAMES as ENTITY_FILES
from .sentencepiece import MODEL_FILE, SentencePieceModel

Array = np.ndarray

SPECIALS = ("cls", "sep", "mask", "pad", "unk")
# The order in which transformers gives ids to names that the vocabulary lacks.
_ROLES = ("bos", "eos", "sep", "pad", "cls", "mask")
_FURTHER = "additional_special_tokens"
TOKENIZER_FILES = ("tokenizer.json", "vocab.json", MODEL_FILE, "vocab.txt")
MARKERS = ("<ent>", "<ent2>")
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
    sentencepiece: the model that ``tokenizer`` was made of, where it was made of one.
    prefix_space: whether the files say ``add_prefix_space`` (byte-level BPE). No part gets a space
        here: it is for the caller to write one, see ``spaces`` in ``inputs/alignment.py``.
    settings: what else ``tokenizer_config.json`` says (``task``, limits): of no use here, kept for
        the file that is written.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        special_ids: dict[str, int],
        added: dict[str, int],
        sentencepiece: SentencePieceModel | None = None,
        prefix_space: bool = False,
        settings: dict[str, Any] | None = None,
    ):
        self._tokenizer = tokenizer
        self.special_ids = special_ids
        self.added = added
        self.sentencepiece = sentencepiece
        self.prefix_space = prefix_space
        self.settings = settings or {}
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
        """True where a leading space changes the pieces of a part: byte-level BPE, and a
        SentencePiece model that writes no space before a text."""
        if self.sentencepiece is not None:
            return not self.sentencepiece.add_dummy_prefix
        return isinstance(self._tokenizer.model, models.BPE)

    def id_of(self, piece: str) -> int | None:
        """The id of a piece or added piece by its string."""
        if piece in self.added:
            return self.added[piece]
        return self._tokenizer.token_to_id(piece)

    def __len__(self) -> int:
        """One more than the highest id."""
        vocab = self._tokenizer.get_vocab()
        return max((*vocab.values(), *self.added.values(), *self.special_ids.values())) + 1

    def encode_words(self, parts: Sequence[str]) -> list[Array]:
        """Piece ids of each part, (n_pieces,) each; repeated parts are looked up."""
        missing = {part for part in parts if part not in self._cache}
        if missing:
            if len(self._cache) + len(missing) > _CACHE_SIZE:
                self._cache = {}
                missing = set(parts)
            ordered = sorted(missing)
            for part, (encoding, _) in zip(ordered, self._encode(ordered)):
                self._cache[part] = np.asarray(encoding.ids, dtype=np.int64)
        cache = self._cache
        return [cache[part] for part in parts]

    def encode_parts(self, parts: Sequence[str]) -> list[tuple[Array, Array]]:
        """Ids (n_pieces,) and character offsets (n_pieces, 2) of each part."""
        return [
            (np.asarray(encoding.ids, dtype=np.int64), _offsets(encoding, origin))
            for encoding, origin in self._encode(parts)
        ]

    def encode_texts(self, texts: Sequence[str]) -> list[tuple[Array, Array, Array]]:
        """Of each text: ids (n_pieces,), character offsets (n_pieces, 2), and whether a word starts
        at a piece (n_pieces,), a word being what the tokenizer splits a text into before pieces."""
        found = []
        for e, origin in self._encode(texts):
            words = np.asarray([-1 if x is None else x for x in e.word_ids], dtype=np.int64)
            ids = np.asarray(e.ids, dtype=np.int64)
            found.append((ids, _offsets(e, origin), np.diff(words, prepend=-2) != 0))
        return found

    def _encode(self, texts: Sequence[str]) -> Iterable[tuple[Encoding, Array | None]]:
        """The library's encoding of each text, and where the characters it saw come from."""
        origins: list[Array | None] = [None] * len(texts)
        if self.sentencepiece is not None:
            normalised = [self.sentencepiece.charsmap.normalise(text) for text in texts]
            texts, origins = [text for text, _ in normalised], [origin for _, origin in normalised]
        return zip(self._tokenizer.encode_batch(list(texts), add_special_tokens=False), origins)

    def to_dict(self) -> dict[str, Any]:
        ids = {"special_ids": self.special_ids, "added": self.added, "settings": self.settings}
        if self.sentencepiece is not None:
            return {**ids, "sentencepiece": base64.b64encode(self.sentencepiece.raw).decode()}
        data = json.loads(self._tokenizer.to_str())
        level = _byte_level(data)
        if level is not None:  # as files have it, so that it is read back like one
            level["add_prefix_space"] = self.prefix_space
        return {**ids, "tokenizer": data}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "PieceTokenizer":
        special_ids, added = dict(values["special_ids"]), dict(values["added"])
        if "sentencepiece" in values:
            model, data = SentencePieceModel.read(base64.b64decode(values["sentencepiece"]))
            tokenizer = _tokenizer(data, added)
            return cls(tokenizer, special_ids, added, model, settings=values.get("settings"))
        data = {**values["tokenizer"]}
        data["pre_tokenizer"] = copy.deepcopy(data["pre_tokenizer"])
        prefix_space = _take_prefix_space(data)
        tokenizer = Tokenizer.from_str(json.dumps(data))
        return cls(tokenizer, special_ids, added, None, prefix_space, values.get("settings"))

    def __getstate__(self) -> dict[str, Any]:
        return self.to_dict()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = PieceTokenizer.from_dict(state).__dict__

    @classmethod
    def from_directory(cls, path: Path) -> "PieceTokenizer":
        """Read the tokenizer files of a checkpoint directory.

        Looks for ``tokenizer.json``, then ``vocab.json`` with ``merges.txt`` (byte-level BPE),
        then ``sentencepiece.bpe.model`` (Unigram, with the ids of XLM-R and mLUKE), then
        ``vocab.txt`` (WordPiece). Raises CheckpointError naming what is missing or damaged, and
        VocabError where a special piece is absent.
        """
        config = _read_config(path)
        model = None
        if config.get("tokenizer_class") == "MLukeTokenizer" and (path / MODEL_FILE).exists():
            # What that tokenizer reads; a tokenizer.json beside it holds less (sentencepiece.py).
            model, data = SentencePieceModel.from_file(path / MODEL_FILE)
        elif (path / "tokenizer.json").exists():
            data = _read_json(path / "tokenizer.json")
        elif (path / "vocab.json").exists() and (path / "merges.txt").exists():
            data = _byte_level_bpe(path)
        elif (path / MODEL_FILE).exists():
            model, data = SentencePieceModel.from_file(path / MODEL_FILE)
        elif (path / "vocab.txt").exists():
            data = _wordpiece(path, config)
        else:
            raise CheckpointError(
                f"No tokenizer in {path}: expected tokenizer.json, vocab.json with merges.txt, "
                f"{MODEL_FILE}, or vocab.txt."
            )
        try:
            added = _added_ids(path, data, config, model is not None)
            ids = {**_piece_ids(data), **added}
            names = _special_names(config, "[CLS]" in ids and model is None)
            further = _further_names(path, config)
            prefix_space = _take_prefix_space(data, config.get("add_prefix_space"))
        except CheckpointError:
            raise
        except (AttributeError, KeyError, TypeError, ValueError) as err:
            raise CheckpointError(
                f"The tokenizer files in {path} cannot be read: {err!r}."
            ) from err
        if model is not None:
            _give_ids(path, [*(names[role] for role in _ROLES), *further], ids)
        special_ids = {}
        for role in SPECIALS:
            if names[role] not in ids:
                raise VocabError(
                    f"The tokenizer in {path} has no {names[role]} piece (its {role} piece)."
                )
            special_ids[role] = ids[names[role]]
        hidden = {*(names[role] for role in SPECIALS), *added, *(ids.keys() & further)}
        try:
            tokenizer = _tokenizer(data, hidden)
        except Exception as err:  # the Rust library raises bare Exception
            raise CheckpointError(f"The tokenizer files in {path} cannot be read: {err}.") from err
        found = {name: ids[name] for name in sorted(hidden)}
        return cls(tokenizer, special_ids, found, model, prefix_space, _settings(path))


def _settings(path: Path) -> dict[str, Any]:
    """Plain values of ``tokenizer_config.json`` that do not name other files."""
    found = _read_json(path / "tokenizer_config.json", optional=True)
    plain = (str, int, float, bool, type(None))
    return {
        key: value
        for key, value in found.items()
        if isinstance(value, plain) and not key.endswith(("_file", "name_or_path"))
    }


def _tokenizer(data: dict[str, Any], hidden: Iterable[str]) -> Tokenizer:
    """The library's tokenizer of what ``tokenizer.json`` says, less what surrounds the pieces.

    hidden: names of pieces that are not to be found in text.
    """
    data.update(added_tokens=[], post_processor=None, truncation=None, padding=None)
    model = data["model"]
    if model.get("type") != "Unigram":
        return Tokenizer.from_str(json.dumps(data))
    # Through JSON, a quarter of a million pieces would take twice the time and memory.
    settings = {**model, "vocab": [["<unk>", 0.0]], "unk_id": 0}
    tokenizer = Tokenizer.from_str(json.dumps({**data, "model": settings}))
    vocab = _hidden_from_unigram(model["vocab"], set(hidden))
    fallback = bool(model.get("byte_fallback"))
    tokenizer.model = models.Unigram(vocab, unk_id=model.get("unk_id"), byte_fallback=fallback)
    return tokenizer


def _offsets(encoding: Encoding, origin: Array | None) -> Array:
    """(n_pieces, 2) the characters of each piece; origin: (n_chars, 2), see ``Charsmap``."""
    offsets = np.asarray(encoding.offsets, dtype=np.int64).reshape(-1, 2)
    if origin is None:
        return offsets
    return np.stack([origin[offsets[:, 0], 0], origin[offsets[:, 1] - 1, 1]], axis=1)


def _read_config(path: Path) -> dict[str, Any]:
    """``tokenizer_config.json``, and ``special_tokens_map.json`` for what it does not name."""
    config = _read_json(path / "tokenizer_config.json", optional=True)
    named = _read_json(path / "special_tokens_map.json", optional=True)
    merged = {**named, **{key: value for key, value in config.items() if value is not None}}
    return {**merged, _FURTHER: config.get(_FURTHER) or named.get(_FURTHER) or []}


def _added_ids(
    path: Path, data: dict[str, Any], config: dict[str, Any], hidden: bool
) -> dict[str, int]:
    """Ids of pieces that are listed beside the vocabulary; ``added_tokens.json`` has its way.
    hidden: the vocabulary has other names for them (``sentencepiece.py``)."""
    listed = {token["content"]: token["id"] for token in data.get("added_tokens") or []}
    decoder = config.get("added_tokens_decoder", {})
    decoded = {token["content"]: int(index) for index, token in decoder.items()}
    further = _read_json(path / "added_tokens.json", optional=True)
    pieces = {} if hidden else {index: piece for piece, index in _piece_ids(data).items()}
    for file, found in (
        ("tokenizer.json", listed),
        ("tokenizer_config.json", decoded),
        ("added_tokens.json", further),
    ):
        for piece, index in found.items():
            if not isinstance(index, int) or isinstance(index, bool) or index < 0:
                raise CheckpointError(
                    f"{path / file}: {piece!r} has the id {index!r}, which is no number from 0."
                )
            if pieces.setdefault(index, piece) != piece:
                raise CheckpointError(
                    f"{path / file}: {piece!r} has the id {index} of {pieces[index]!r}."
                )
    return {**listed, **decoded, **further}


def _further_names(path: Path, config: dict[str, Any]) -> list[str]:
    """Additional special pieces as configured, and the markers that mLUKE's tokenizer adds."""
    names = list(config[_FURTHER])
    kind = config.get("tokenizer_class")
    if kind == "MLukeTokenizer" or not kind and any((path / x).exists() for x in ENTITY_FILES):
        names += [config.get(f"entity_token_{i}", name) for i, name in enumerate(MARKERS, 1)]
    return [name for name in map(_content, names) if name]


def _give_ids(path: Path, names: Iterable[str], ids: dict[str, int]) -> None:
    """As transformers does, names without an id get the next ones; here, only where
    ``config.json`` says that the network has rows for them."""
    rows = _read_json(path / "config.json", optional=True).get("vocab_size")
    for name in names:
        following = max(ids.values()) + 1
        if name not in ids and (not isinstance(rows, int) or following < rows):
            ids[name] = following


def _content(token: Any) -> str | None:
    """The string of a piece, which may be an AddedToken, serialised."""
    token = token.get("content") if isinstance(token, dict) else token
    return token if isinstance(token, str) else None


def _special_names(config: dict[str, Any], brackets: bool) -> dict[str, str]:
    """The strings of the special pieces: as configured, else by the family's habit."""
    names = dict(_NAMES["bracket" if brackets else "angle"])
    names |= {"bos": names["cls"], "eos": names["sep"]}
    for role in names:
        names[role] = _content(config.get(f"{role}_token")) or names[role]
    return names


def _piece_ids(data: dict[str, Any]) -> dict[str, int]:
    """piece -> id of a serialised tokenizer; Unigram lists its pieces in order of their ids."""
    vocab = data["model"]["vocab"]
    return vocab if isinstance(vocab, dict) else {piece: i for i, (piece, _) in enumerate(vocab)}


def _hidden_from_unigram(vocab: list[Any], names: set[str]) -> list[tuple[str, float]]:
    """Unigram would find ``</s>`` in a user's text: give special pieces a string no text has.

    Scores stay as they are, because unknown characters are scored by the lowest of them. No
    text reaches the model with a space in it: it is a ``\u2581`` by then.
    """
    return [(f" {piece} " if piece in names else piece, score) for piece, score in vocab]


def _byte_level(data: dict[str, Any]) -> dict[str, Any] | None:
    """The byte-level pre-tokenizer of a serialised tokenizer, alone or one of a sequence."""
    outer = data.get("pre_tokenizer") or {}
    parts = [outer, *outer.get("pretokenizers", [])]
    return next((part for part in parts if part.get("type") == "ByteLevel"), None)


def _take_prefix_space(data: dict[str, Any], configured: bool | None = None) -> bool:
    """Whether a serialised tokenizer puts a space before every part, which it does no longer.

    configured: what ``tokenizer_config.json`` says; it has its way, as in transformers."""
    level = _byte_level(data)
    if level is None:
        return False
    found, level["add_prefix_space"] = level.get("add_prefix_space"), False
    return bool(found if configured is None else configured)


def _byte_level_bpe(path: Path) -> dict[str, Any]:
    files = path / "vocab.json", path / "merges.txt"
    tokenizer = _build(lambda: models.BPE.from_file(*map(str, files)), *files)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return json.loads(tokenizer.to_str())


def _wordpiece(path: Path, config: dict[str, Any]) -> dict[str, Any]:
    file = path / "vocab.txt"
    tokenizer = _build(lambda: models.WordPiece.from_file(str(file), unk_token="[UNK]"), file)
    tokenizer.normalizer = normalizers.BertNormalizer(
        lowercase=bool(config.get("do_lower_case", True)),
        strip_accents=config.get("strip_accents"),
        handle_chinese_chars=bool(config.get("tokenize_chinese_chars", True)),
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    return json.loads(tokenizer.to_str())


def _build(model: Any, *files: Path) -> Tokenizer:
    try:
        return Tokenizer(model())
    except Exception as err:  # the Rust library raises bare Exception
        raise CheckpointError(f"{' or '.join(map(str, files))} cannot be read: {err}.") from err


def _read_json(path: Path, optional: bool = False) -> dict[str, Any]:
    return {} if optional and not path.exists() else read_object(path)
