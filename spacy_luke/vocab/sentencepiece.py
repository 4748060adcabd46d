"""Unigram models in SentencePiece's file format, as published with XLM-R and mLUKE.

The ``sentencepiece`` library splits text into pieces. Its offsets refer to the normalised text, in
which one character may come from several, and several from one. This module maps them to the
original text. ``"ﬁn  da"``, for example, is normalised to ``"▁fin▁da"``: ``f`` and ``i`` both come
from the first character, and the second ``▁`` comes from the second space.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache

import numpy as np
from sentencepiece import SentencePieceProcessor

from ..errors import CheckpointError

Array = np.ndarray

MODEL_FILE = "sentencepiece.bpe.model"
SPACE = "\u2581"
# XLM-R was trained with fairseq, which adds four pieces before the model's pieces and one after
# them. The model's first three pieces, <unk>, <s> and </s>, are among the four.
_BEFORE = ("<s>", "<pad>", "</s>", "<unk>")
_AFTER = "<mask>"
_UNKNOWN = _BEFORE.index("<unk>")
_SHIFT = len(_BEFORE) - 3  # XLM-R's id minus the library's id
# Fields of ``sentencepiece_model.proto``, and the encoded field type = UNUSED of a piece.
_PIECE, _TRAINER, _NORMALIZER = 1, 2, 3
_UNUSED = b"\x18\x05"


class SentencePieceModel:
    """A SentencePiece model with XLM-R's ids and offsets in the original text.

    raw: the content of the file.
    source: the name of the file, for errors.
    unmatched: name -> id of pieces that are never matched in text (special, control, unused).
    add_dummy_prefix: whether a space is prepended to texts.
    n_ids: one more than the highest id.

    Raises CheckpointError if the content is damaged or differs in kind from XLM-R's tokenizer.
    """

    def __init__(self, raw: bytes, source: str = MODEL_FILE):
        self.raw = raw
        self._source = source
        self._library = _load(raw, source)
        pieces = [self._library.id_to_piece(i) for i in range(self._library.get_piece_size())]
        normalise = self._library.normalize
        self.add_dummy_prefix = normalise(".").startswith(SPACE)
        self.n_ids = len(pieces) + _SHIFT + 1
        self.unmatched = {name: i for i, name in enumerate(_BEFORE)}
        kinds = self._library.is_control, self._library.is_unused
        self._library_unmatched = {i for i in range(len(pieces)) if any(kind(i) for kind in kinds)}
        self.unmatched |= {pieces[i]: i + _SHIFT for i in self._library_unmatched if i > 2}
        self.unmatched[_AFTER] = self.n_ids - 1
        # If no piece spans several words, words are separated by spaces.
        spanning = (i for i, piece in enumerate(pieces) if SPACE in piece[1:])
        self._spaces_separate = SPACE in pieces and self._library_unmatched.issuperset(spanning)
        self._collapses = SPACE * 2 not in normalise(".  .")
        self._begins_with_space = lru_cache(4096)(self._compute_begins_with_space)

    n_separators = 2  # between two texts, as in XLM-R

    @property
    def spaces_matter(self) -> bool:
        return not self.add_dummy_prefix

    def without(self, names: Collection[str]) -> "SentencePieceModel":
        """The same model, except that these pieces are never matched in text."""
        ignored = self._library_unmatched | {0}
        names = [name for name in names if self._library.piece_to_id(name) not in ignored]
        if not names:
            return self
        model = SentencePieceModel(_without(self.raw, names), self._source)
        model.raw = self.raw
        return model

    def vocabulary(self) -> dict[str, int]:
        """Piece -> id, of the pieces that may be matched in text."""
        ids = set(range(3, self._library.get_piece_size())) - self._library_unmatched
        return {self._library.id_to_piece(i): i + _SHIFT for i in sorted(ids)}

    def id_of(self, piece: str) -> int | None:
        if piece in self.unmatched:
            return self.unmatched[piece]
        index = self._library.piece_to_id(piece)
        return index + _SHIFT if index else None

    def ids(self, texts: Sequence[str]) -> list[Array]:
        """Ids of each text, (n_pieces,) each."""
        texts = [self._without_lone_space(text) for text in texts]
        library_ids = (np.asarray(self._library.encode(text), dtype=np.int64) for text in texts)
        return [np.where(ids == 0, _UNKNOWN, ids + _SHIFT) for ids in library_ids]

    def encode(self, texts: Sequence[str]) -> list[tuple[Array, Array, Array]]:
        """See :meth:`.pieces.PieceTokenizer.encode_texts`."""
        texts = [self._without_lone_space(text) for text in texts]
        return [(ids, *self._places(text)) for ids, text in zip(self.ids(texts), texts)]

    def _without_lone_space(self, text: str) -> str:
        """The text, or "" if its only piece would be the prepended space."""
        if self._collapses or self._library.normalize(text) != SPACE * self.add_dummy_prefix:
            return text
        return ""

    def _places(self, text: str) -> tuple[Array, Array]:
        """Character offsets (n_pieces, 2), and whether each piece starts a word (n_pieces,)."""
        pieces = self._library.encode(text, out_type=str)
        if not pieces:
            return np.zeros((0, 2), dtype=np.int64), np.zeros(0, dtype=bool)
        lengths = np.asarray([len(piece) for piece in pieces])
        ends = np.cumsum(lengths)
        origins = self._origins(text)
        offsets = np.stack([origins[ends - lengths, 0], origins[ends - 1, 1]], axis=1)
        words = np.asarray([self._spaces_separate and piece.startswith(SPACE) for piece in pieces])
        words[0] = True
        return offsets, words

    def _origins(self, text: str) -> Array:
        """(n_normalised, 2): the range of original characters of each normalised character.

        The library returns where each range starts. All characters that one rule produces have the
        same start. A range ends where the next one starts, or earlier if characters in between were
        dropped. That case is resolved by normalising parts of the text.
        """
        normalised, offsets = self._library.normalize(text, with_offsets=True)
        first = int(self.add_dummy_prefix)  # the prepended space has no original character
        offsets = np.asarray(offsets[first:], dtype=np.int64)
        normalised, starts, bounds = normalised[first:], offsets[:-1].copy(), np.unique(offsets)
        ends = bounds[np.searchsorted(bounds, starts, side="right")]
        for start in np.unique(starts[ends - starts > 1]).tolist():
            low, high = np.searchsorted(offsets[:-1], [start, start + 1]).tolist()
            result, end = normalised[low:high], int(ends[low])
            if result == SPACE:  # the last of several spaces
                last = end - 1
                while last > start and not self._is_space(text[last]):
                    last -= 1
                starts[low], ends[low] = last, last + 1
            elif text.startswith(result, start):  # characters that no rule changes
                starts[low:high] = np.arange(start, start + len(result))
                ends[low:high] = starts[low:high] + 1
            else:
                result = result.strip(SPACE)
                length = 1
                while start + length < end and self._result(text[start : start + length]) != result:
                    length += 1
                ends[low:high] = start + length
        if self._collapses and not text.isascii():
            # "¨" becomes a space and an accent. Collapsed with spaces before it, the space comes
            # from "¨", not from them.
            for space in re.finditer(f"{SPACE}(?!{SPACE})", normalised[:-1]):
                i = space.start()
                start, end = int(starts[i + 1]), int(ends[i + 1])
                if starts[i] < start and self._begins_with_space(text[start:end]):
                    starts[i], ends[i] = start, end
        origins = np.stack([starts, ends], axis=1)
        return np.concatenate([origins[:first], origins])

    def _after_dot(self, text: str) -> str:
        """Normalise a part of a text. Spaces at its ends are kept, as within the text."""
        return self._library.normalize(f".{text}.").removeprefix(SPACE)[1:-1]

    def _result(self, text: str) -> str:
        return self._after_dot(text).strip(SPACE)

    def _is_space(self, character: str) -> bool:
        return character == " " or self._after_dot(character) == SPACE

    def _compute_begins_with_space(self, text: str) -> bool:
        return self._after_dot(text).startswith(SPACE)


def _load(raw: bytes, source: str) -> SentencePieceProcessor:
    """Load a model with the library. Raises CheckpointError."""
    try:
        if not {_TRAINER, _NORMALIZER} <= {number for number, _ in _fields(raw)}:
            # The library would accept a file truncated between two pieces as a smaller model.
            raise ValueError("it ends before its settings")
        library = SentencePieceProcessor(model_proto=raw)
    except (ValueError, IndexError, RuntimeError, OSError) as err:
        raise CheckpointError(
            f"{source} cannot be read as a SentencePiece model ({err}); fetch it again."
        ) from err
    problem = _unsupported(library)
    if problem:
        raise CheckpointError(
            f"{source} {problem}, unlike the tokenizers of XLM-R; provide a tokenizer.json."
        )
    return library


def _unsupported(library: SentencePieceProcessor) -> str:
    """How a model differs in kind from XLM-R's; empty if it does not."""
    if library.get_piece_size() <= 3:
        return "contains no pieces"
    if not (library.is_unknown(0) and library.is_control(1) and library.is_control(2)):
        return "does not begin with <unk>, <s> and </s>"
    if library.is_byte(library.piece_to_id("<0x00>")):
        return "spells unknown characters as bytes"
    if library.normalize(". .").removeprefix(SPACE) != f".{SPACE}.":
        return "writes spaces after words, or as they are"
    return ""


def _fields(raw: bytes) -> Iterator[tuple[int, bytes]]:
    """Number and content of each field of a protobuf message whose fields are all messages.

    Raises ValueError, or IndexError if the file is truncated.
    """
    position = 0
    while position < len(raw):
        number, kind = raw[position] >> 3, raw[position] & 7
        size = shift = 0
        while True:  # seven bits per byte, lowest first; the high bit means that more follow
            position += 1
            size |= (raw[position] & 127) << shift
            shift += 7
            if raw[position] < 128:
                break
        position += 1
        if kind != 2 or position + size > len(raw):
            raise ValueError("it is truncated or of another format")
        yield number, raw[position : position + size]
        position += size


def _without(raw: bytes, names: Collection[str]) -> bytes:
    """The file with these pieces set to unused."""
    # A piece begins with its string: field 1, length, UTF-8.
    prefixes = tuple(b"\x0a" + _varint(len(name.encode())) + name.encode() for name in names)
    parts = []
    for number, content in _fields(raw):
        if number == _PIECE and content.startswith(prefixes):
            content += _UNUSED
        parts += [bytes([number << 3 | 2]), _varint(len(content)), content]
    return b"".join(parts)


def _varint(value: int) -> bytes:
    parts = []
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    return bytes([*parts, value])
