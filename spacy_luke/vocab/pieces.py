"""Word pieces: byte-level BPE, WordPiece and Unigram with the Rust ``tokenizers`` library, and
SentencePiece models with the ``sentencepiece`` library.

The tokenizer is applied to *parts* of a text (see ``inputs/alignment.py``). It never adds or
recognises special pieces: ``<mask>`` or ``</s>`` in a user's text is ordinary text. Special
pieces are added by id when sequences are assembled.

Published tokenizer files are read and written by ``checkpoint/read_tokenizer.py`` and
``checkpoint/write_tokenizer.py``.
"""

import base64
import copy
import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from tokenizers import Encoding, Tokenizer, models

from ..errors import CheckpointError, reading
from ..forked_locks import ForkedLock
from .sentencepiece import SentencePieceModel

Array = np.ndarray
Encoded = tuple[Array, Array, Array]  # ids, offsets, word starts; see ``encode_texts``

SPECIALS = ("cls", "sep", "mask", "pad", "unk")
# Limit of the cache of pieces. Parts are mostly single words, which repeat. This holds some 40,000
# words; with a larger one, the memory of a process would only grow for longer.
_CACHE_BYTES = 16 * 2**20
_ENTRY_BYTES = 200  # overhead per entry: the array object and the slot of the dict


class PieceTokenizer:
    """Text parts to piece ids. Thread-safe.

    model: splits text into ordinary pieces.
    special_ids: ids of cls, sep, mask, pad and unk.
    added: name -> id of special and other added pieces, such as ``<ent>``; never matched in text.
    prefix_space: ``add_prefix_space`` of the files (byte-level BPE). No space is added here: the
        caller adds it, see ``spaces`` in ``inputs/alignment.py``.
    settings: other values of ``tokenizer_config.json`` (``task``, limits), kept only to write them.
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
        self._cache_lock = ForkedLock()

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
        """Whether a leading space changes the pieces of a part: for byte-level BPE, and for
        SentencePiece models that do not prepend a space themselves."""
        return self.model.spaces_matter

    @property
    def n_separators(self) -> int:
        """The separators between two texts: one for WordPiece (BERT), else two (RoBERTa)."""
        return self.model.n_separators

    def id_of(self, piece: str) -> int | None:
        """The id of a piece or added piece by its string."""
        if piece in self.added:
            return self.added[piece]
        return self.model.id_of(piece)

    def __len__(self) -> int:
        """One more than the highest id."""
        added_ids = (*self.added.values(), *self.special_ids.values())
        return max(self.model.n_ids, *(index + 1 for index in added_ids))

    def encode_words(self, parts: Sequence[str]) -> list[Array]:
        """Piece ids of each part, (n_pieces,) each. Results are cached."""
        cache = self._cache  # another thread may replace self._cache
        ids_by_part = {part: ids for part in parts if (ids := cache.get(part)) is not None}
        missing = sorted({part for part in parts if part not in ids_by_part})
        if missing:
            encoded = dict(zip(missing, self.model.ids(missing)))
            self._remember(encoded)
            ids_by_part |= encoded
        return [ids_by_part[part] for part in parts]

    def _remember(self, encoded: dict[str, Array]) -> None:
        """Add to the cache; empty it first if it would become too large."""
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
        """Per text: ids (n_pieces,), character offsets (n_pieces, 2), and whether the piece starts
        a word (n_pieces,). Words are what the tokenizer splits into pieces."""
        return self.model.encode(texts)

    def to_dict(self) -> dict[str, Any]:
        ids = {"special_ids": self.special_ids, "added": self.added, "settings": self.settings}
        if isinstance(self.model, SentencePieceModel):
            return {**ids, "sentencepiece": base64.b64encode(self.model.raw).decode()}
        data = self.model.to_dict()
        level = byte_level(data)
        if level is not None:  # as in published files, because from_dict reads it like one
            level["add_prefix_space"] = self.prefix_space
        return {**ids, "tokenizer": data}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "PieceTokenizer":
        """The inverse of :meth:`to_dict`. Raises CheckpointError if the values are damaged."""
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
            # The names of added pieces are already hidden in the saved data.
            return cls(RustModel(data), special_ids, added, prefix_space, settings)

    def __getstate__(self) -> dict[str, Any]:
        return self.to_dict()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = PieceTokenizer.from_dict(state).__dict__


def check_ids(ids: dict[str, Any], location: str) -> None:
    """Raise CheckpointError if an id is not a whole number from 0. location: file and field."""
    for piece, index in ids.items():
        if not isinstance(index, int) or isinstance(index, bool) or index < 0:
            raise CheckpointError(
                f"{location}: {piece!r} has the id {index!r}; expected a number from 0."
            )


class RustModel:
    """Pieces from the Rust library.

    data: the content of ``tokenizer.json``. Post-processing, truncation and padding are removed,
        and so is dropout of merges: with it, pieces would be random.
    hidden: names of pieces that must not be matched in text.

    Raises the exceptions of the library, including Rust panics; see :func:`.errors.reading`.
    """

    def __init__(self, data: dict[str, Any], hidden: Iterable[str] = ()):
        model = {**data["model"]}
        if model.get("dropout") is not None:
            model["dropout"] = None
        unused: dict[str, Any] = {
            "added_tokens": [],
            "post_processor": None,
            "truncation": None,
            "padding": None,
        }
        data = {**data, **unused, "model": model}
        if model.get("type") == "Unigram":
            self._tokenizer = _unigram(data, set(hidden))
        else:
            self._tokenizer = Tokenizer.from_str(json.dumps(data))

    @property
    def spaces_matter(self) -> bool:
        return isinstance(self._tokenizer.model, models.BPE)

    @property
    def n_separators(self) -> int:
        return 1 if isinstance(self._tokenizer.model, models.WordPiece) else 2

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
        """See :meth:`PieceTokenizer.encode_texts`."""
        encoded = []
        for e in self._encode(texts):
            words = np.asarray([-1 if x is None else x for x in e.word_ids], dtype=np.int64)
            offsets = np.asarray(e.offsets, dtype=np.int64).reshape(-1, 2)
            ids = np.asarray(e.ids, dtype=np.int64)
            # A piece starts a word if its word differs from the previous piece's: [0, 0, 1] gives
            # [True, False, True].
            encoded.append((ids, offsets, np.diff(words, prepend=-2) != 0))
        return encoded

    def _encode(self, texts: Sequence[str]) -> list[Encoding]:
        return self._tokenizer.encode_batch(list(texts), add_special_tokens=False)

    def to_dict(self) -> dict[str, Any]:
        return json.loads(self._tokenizer.to_str())


def _unigram(data: dict[str, Any], hidden: set[str]) -> Tokenizer:
    """A Unigram tokenizer in which hidden pieces have strings that occur in no text.

    Otherwise Unigram would match ``</s>`` in a user's text. The new strings contain spaces, which
    the model never sees: they become ``\u2581`` before. Scores are kept, because the lowest score
    determines the score of unknown characters.
    """
    model = data["model"]
    # The vocabulary is set directly: 250,000 pieces via JSON take twice the time and memory.
    settings = {**model, "vocab": [["<unk>", 0.0]], "unk_id": 0}
    tokenizer = Tokenizer.from_str(json.dumps({**data, "model": settings}))
    vocab = [(f" {piece} " if piece in hidden else piece, score) for piece, score in model["vocab"]]
    fallback = bool(model.get("byte_fallback"))
    tokenizer.model = models.Unigram(vocab, unk_id=model.get("unk_id"), byte_fallback=fallback)
    return tokenizer


def byte_level(data: dict[str, Any]) -> dict[str, Any] | None:
    """The byte-level pre-tokenizer of a serialised tokenizer, if any, also within a sequence."""
    outer = data.get("pre_tokenizer") or {}
    parts = [outer, *outer.get("pretokenizers", [])]
    return next((part for part in parts if part.get("type") == "ByteLevel"), None)


def take_prefix_space(data: dict[str, Any], configured: bool | None = None) -> bool:
    """Return ``add_prefix_space`` of a serialised tokenizer, and set it to false there.

    configured: its value in ``tokenizer_config.json``, which takes precedence, as in
    transformers."""
    level = byte_level(data)
    if level is None:
        return False
    prefix_space, level["add_prefix_space"] = level.get("add_prefix_space"), False
    return bool(prefix_space if configured is None else configured)
