"""Word pieces: byte-level BPE, WordPiece and Unigram by the Rust ``tokenizers`` library, and
SentencePiece models by their own.

The tokenizer is used on *parts* of a text (see ``inputs/alignment.py``) and never adds or
recognises special pieces: ``<mask>`` or ``</s>`` in a user's text is ordinary text. Special
pieces are added by id where sequences are assembled.

Published tokenizer files are read and written by ``checkpoint/read_tokenizer.py`` and
``checkpoint/write_tokenizer.py``.
"""

import base64
import copy
import json
import sys
from collections.abc import Iterable, Sequence
from threading import Lock
from typing import Any

import numpy as np
from tokenizers import Encoding, Tokenizer, models

from ..errors import CheckpointError, reading
from .sentencepiece import SentencePieceModel

Array = np.ndarray
Encoded = tuple[Array, Array, Array]  # ids, offsets, whether a word starts

SPECIALS = ("cls", "sep", "mask", "pad", "unk")
# Parts are mostly single words, and words repeat: remember their pieces, up to this many bytes.
_CACHE_BYTES = 64 * 2**20
_ENTRY_BYTES = 200  # of an entry beside its string and its ids: an array object, a place in a dict


class PieceTokenizer:
    """Text parts to piece ids. Threads may share it.

    model: finds the pieces of a text, special pieces left aside.
    special_ids: ids of cls, sep, mask, pad and unk.
    added: special and further pieces, such as ``<ent>``, by name; never found in text.
    prefix_space: whether the files say ``add_prefix_space`` (byte-level BPE). No part gets a space
        here: it is for the caller to write one, see ``spaces`` in ``inputs/alignment.py``.
    settings: what else ``tokenizer_config.json`` says (``task``, limits): not used here, kept for
        the file that is written.
    """

    def __init__(
        self,
        model: "RustModel | SentencePieceModel",
        special_ids: dict[str, int],
        added: dict[str, int],
        prefix_space: bool = False,
        settings: dict[str, Any] | None = None,
    ):
        self.model = model
        self.special_ids = special_ids
        self.added = added
        self.prefix_space = prefix_space
        self.settings = settings or {}
        self._cache: dict[str, Array] = {}
        self._cache_bytes = 0
        self._cache_lock = Lock()

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
        """True if a leading space changes the pieces of a part: byte-level BPE, and a
        SentencePiece model that writes no space before a text."""
        return self.model.spaces_matter

    def id_of(self, piece: str) -> int | None:
        """The id of a piece or added piece by its string."""
        if piece in self.added:
            return self.added[piece]
        return self.model.id_of(piece)

    def __len__(self) -> int:
        """One more than the highest id."""
        further = (*self.added.values(), *self.special_ids.values())
        return max(self.model.n_ids, *(index + 1 for index in further))

    def encode_words(self, parts: Sequence[str]) -> list[Array]:
        """Piece ids of each part, (n_pieces,) each; repeated parts are looked up."""
        cache = self._cache  # another thread may put an empty one in its place
        known = {part: ids for part in parts if (ids := cache.get(part)) is not None}
        missing = sorted({part for part in parts if part not in known})
        if missing:
            encoded = dict(zip(missing, self.model.ids(missing)))
            self._remember(encoded)
            known |= encoded
        return [known[part] for part in parts]

    def _remember(self, encoded: dict[str, Array]) -> None:
        """Add to the cache; begin a new one if it would become too large."""
        size = sum(sys.getsizeof(part) + ids.nbytes for part, ids in encoded.items())
        size += _ENTRY_BYTES * len(encoded)
        with self._cache_lock:
            if self._cache_bytes + size > _CACHE_BYTES:
                self._cache, self._cache_bytes = {}, 0
            if size <= _CACHE_BYTES:
                self._cache.update(encoded)
                self._cache_bytes += size

    def encode_parts(self, parts: Sequence[str]) -> list[tuple[Array, Array]]:
        """Ids (n_pieces,) and character offsets (n_pieces, 2) of each part."""
        return [(ids, offsets) for ids, offsets, _ in self.model.encode(parts)]

    def encode_texts(self, texts: Sequence[str]) -> list[Encoded]:
        """Of each text: ids (n_pieces,), character offsets (n_pieces, 2), and whether a word starts
        at a piece (n_pieces,), a word being what the tokenizer splits a text into before pieces."""
        return self.model.encode(texts)

    def to_dict(self) -> dict[str, Any]:
        ids = {"special_ids": self.special_ids, "added": self.added, "settings": self.settings}
        if isinstance(self.model, SentencePieceModel):
            return {**ids, "sentencepiece": base64.b64encode(self.model.raw).decode()}
        data = self.model.to_dict()
        level = byte_level(data)
        if level is not None:  # as files have it, so that it is read back like one
            level["add_prefix_space"] = self.prefix_space
        return {**ids, "tokenizer": data}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "PieceTokenizer":
        """What :meth:`to_dict` returned. Raises CheckpointError if it is damaged."""
        with reading("The saved tokenizer"):
            special_ids, added = dict(values["special_ids"]), dict(values["added"])
            settings = values.get("settings")
            for name in ("special_ids", "added"):
                check_ids(values[name], f"The saved tokenizer: {name}")
            if set(special_ids) != set(SPECIALS):
                raise CheckpointError(
                    f"The saved tokenizer: special_ids has {sorted(special_ids)}; expected "
                    f"{sorted(SPECIALS)}."
                )
            if "sentencepiece" in values:
                raw = base64.b64decode(values["sentencepiece"])
                model = SentencePieceModel(raw).without(added)
                return cls(model, special_ids, added, settings=settings)
            data = {**values["tokenizer"]}
            data["pre_tokenizer"] = copy.deepcopy(data["pre_tokenizer"])
            prefix_space = take_prefix_space(data)
            # The names of added pieces are hidden already.
            return cls(RustModel(data), special_ids, added, prefix_space, settings)

    def __getstate__(self) -> dict[str, Any]:
        return self.to_dict()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = PieceTokenizer.from_dict(state).__dict__


def check_ids(ids: dict[str, Any], where: str) -> None:
    """Raise CheckpointError if an id is not a whole number from 0. where: file and field."""
    for piece, index in ids.items():
        if not isinstance(index, int) or isinstance(index, bool) or index < 0:
            raise CheckpointError(
                f"{where}: {piece!r} has the id {index!r}; expected a number from 0."
            )


class RustModel:
    """Pieces by the Rust library.

    data: what ``tokenizer.json`` says. What surrounds the pieces is left out, and so is what is
    for training only: dropout of merges would draw other pieces at every call.
    hidden: names of pieces that are not to be found in text. Raises what the library raises, a
    Rust panic included; see :func:`.errors.reading`.
    """

    def __init__(self, data: dict[str, Any], hidden: Iterable[str] = ()):
        model = {**data["model"]}
        if model.get("dropout") is not None:
            model["dropout"] = None
        outside: dict[str, Any] = {
            "added_tokens": [],
            "post_processor": None,
            "truncation": None,
            "padding": None,
        }
        data = {**data, **outside, "model": model}
        if model.get("type") == "Unigram":
            self._tokenizer = _unigram(data, set(hidden))
        else:
            self._tokenizer = Tokenizer.from_str(json.dumps(data))

    @property
    def spaces_matter(self) -> bool:
        return isinstance(self._tokenizer.model, models.BPE)

    @property
    def n_ids(self) -> int:
        """One more than the highest id."""
        return max(self._tokenizer.get_vocab().values(), default=-1) + 1

    def id_of(self, piece: str) -> int | None:
        return self._tokenizer.token_to_id(piece)

    def ids(self, texts: Sequence[str]) -> list[Array]:
        """Ids of each text, (n_pieces,) each."""
        return [np.asarray(encoding.ids, dtype=np.int64) for encoding in self._encode(texts)]

    def encode(self, texts: Sequence[str]) -> list[Encoded]:
        """Of each text: ids (n_pieces,), character offsets (n_pieces, 2), and whether a word starts
        at a piece (n_pieces,)."""
        found = []
        for e in self._encode(texts):
            words = np.asarray([-1 if x is None else x for x in e.word_ids], dtype=np.int64)
            offsets = np.asarray(e.offsets, dtype=np.int64).reshape(-1, 2)
            ids = np.asarray(e.ids, dtype=np.int64)
            found.append((ids, offsets, np.diff(words, prepend=-2) != 0))
        return found

    def _encode(self, texts: Sequence[str]) -> list[Encoding]:
        return self._tokenizer.encode_batch(list(texts), add_special_tokens=False)

    def to_dict(self) -> dict[str, Any]:
        return json.loads(self._tokenizer.to_str())


def _unigram(data: dict[str, Any], hidden: set[str]) -> Tokenizer:
    """Unigram would find ``</s>`` in a user's text: special pieces get a string no text has.

    Scores stay as they are, because unknown characters are scored by the lowest of them. No
    text reaches the model with a space in it: it is a ``\u2581`` by then.
    """
    model = data["model"]
    # Through JSON, a quarter of a million pieces would take twice the time and memory.
    settings = {**model, "vocab": [["<unk>", 0.0]], "unk_id": 0}
    tokenizer = Tokenizer.from_str(json.dumps({**data, "model": settings}))
    vocab = [(f" {piece} " if piece in hidden else piece, score) for piece, score in model["vocab"]]
    fallback = bool(model.get("byte_fallback"))
    tokenizer.model = models.Unigram(vocab, unk_id=model.get("unk_id"), byte_fallback=fallback)
    return tokenizer


def byte_level(data: dict[str, Any]) -> dict[str, Any] | None:
    """The byte-level pre-tokenizer of a serialised tokenizer, alone or one of a sequence."""
    outer = data.get("pre_tokenizer") or {}
    parts = [outer, *outer.get("pretokenizers", [])]
    return next((part for part in parts if part.get("type") == "ByteLevel"), None)


def take_prefix_space(data: dict[str, Any], configured: bool | None = None) -> bool:
    """Whether a serialised tokenizer writes a space before every part; it no longer does after.

    configured: what ``tokenizer_config.json`` says, which has precedence, as in transformers."""
    level = byte_level(data)
    if level is None:
        return False
    found, level["add_prefix_space"] = level.get("add_prefix_space"), False
    return bool(found if configured is None else configured)
