"""Unigram models in the SentencePiece library's own file, as XLM-R and mLUKE publish them.

The library finds the pieces. Its offsets are those of a text's normalised form, in which one
character may come from several and several from one; here, each of them is traced to the
characters it comes from. In ``"ﬁn  da"``, normalised to ``"▁fin▁da"``, both ``f`` and ``i`` come
from the first character and the second ``▁`` from the second of the two spaces.
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
# XLM-R was trained with fairseq, which has four pieces of its own before the model's and one after
# them; <unk>, <s> and </s>, the first three of the model, are among the four.
_BEFORE = ("<s>", "<pad>", "</s>", "<unk>")
_AFTER = "<mask>"
_UNKNOWN = _BEFORE.index("<unk>")
_SHIFT = len(_BEFORE) - 3  # from the library's ids to XLM-R's
# Fields of ``sentencepiece_model.proto``, and the end of a piece that is not to be found in text.
_PIECE, _TRAINER, _NORMALIZER = 1, 2, 3
_UNUSED = b"\x18\x05"


class SentencePieceModel:
    """A model's file, its pieces under XLM-R's ids, and where in a text they are.

    raw: the content of the file. unmatched: ids of pieces that no text has (special, control and
    unused ones) by name. add_dummy_prefix: whether a text's first word is written like those after
    a space. n_ids: one more than the highest id.

    source: the file's name, for errors. Raises CheckpointError if the content is damaged, or a
    kind of model that XLM-R's tokenizer cannot be.
    """

    def __init__(self, raw: bytes, source: str = MODEL_FILE):
        self.raw = raw
        self._source = source
        self._library = _load(raw, source)
        pieces = [self._library.id_to_piece(at) for at in range(self._library.get_piece_size())]
        normalise = self._library.normalize
        self.add_dummy_prefix = normalise(".").startswith(SPACE)
        self.n_ids = len(pieces) + _SHIFT + 1
        self.unmatched = {name: at for at, name in enumerate(_BEFORE)}
        kinds = self._library.is_control, self._library.is_unused
        self._never = {at for at in range(len(pieces)) if any(kind(at) for kind in kinds)}
        self.unmatched |= {pieces[at]: at + _SHIFT for at in self._never if at > 2}
        self.unmatched[_AFTER] = self.n_ids - 1
        # Whether no piece reaches over a space: then words end at spaces.
        over = (at for at, piece in enumerate(pieces) if SPACE in piece[1:])
        self._cut = SPACE in pieces and self._never.issuperset(over)
        self._collapses = SPACE * 2 not in normalise(".  .")
        self._spaced = lru_cache(4096)(self._begins_with_space)

    @property
    def spaces_matter(self) -> bool:
        return not self.add_dummy_prefix

    def without(self, names: Collection[str]) -> "SentencePieceModel":
        """The same model, but these pieces are not found in text."""
        found = [name for name in names if self._library.piece_to_id(name) not in self._never | {0}]
        if not found:
            return self
        model = SentencePieceModel(_without(self.raw, found), self._source)
        model.raw = self.raw
        return model

    def vocabulary(self) -> dict[str, int]:
        """Ids of pieces that may be found in text."""
        found = (at for at in range(3, self._library.get_piece_size()) if at not in self._never)
        return {self._library.id_to_piece(at): at + _SHIFT for at in found}

    def id_of(self, piece: str) -> int | None:
        if piece in self.unmatched:
            return self.unmatched[piece]
        at = self._library.piece_to_id(piece)
        return at + _SHIFT if at else None

    def ids(self, texts: Sequence[str]) -> list[Array]:
        """Ids of each text, (n_pieces,) each."""
        texts = [self._seen(text) for text in texts]
        found = [np.asarray(self._library.encode(text), dtype=np.int64) for text in texts]
        return [np.where(ids == 0, _UNKNOWN, ids + _SHIFT) for ids in found]

    def encode(self, texts: Sequence[str]) -> list[tuple[Array, Array, Array]]:
        """Of each text: ids (n_pieces,), character offsets (n_pieces, 2), and whether a word starts
        at a piece (n_pieces,)."""
        texts = [self._seen(text) for text in texts]
        return [(ids, *self._places(text)) for ids, text in zip(self.ids(texts), texts)]

    def _seen(self, text: str) -> str:
        """The text; nothing if the only piece would be the space that is written before it."""
        if self._collapses or self._library.normalize(text) != SPACE * self.add_dummy_prefix:
            return text
        return ""

    def _places(self, text: str) -> tuple[Array, Array]:
        pieces = self._library.encode(text, out_type=str)
        if not pieces:
            return np.zeros((0, 2), dtype=np.int64), np.zeros(0, dtype=bool)
        lengths = np.asarray([len(piece) for piece in pieces])
        ends = np.cumsum(lengths)
        origins = self._origins(text)
        offsets = np.stack([origins[ends - lengths, 0], origins[ends - 1, 1]], axis=1)
        words = np.asarray([self._cut and piece.startswith(SPACE) for piece in pieces])
        words[0] = True
        return offsets, words

    def _origins(self, text: str) -> Array:
        """(n_normalised, 2) the characters that each character of the normalised text comes from.

        The library says where they start: the characters of a rule's result all start where the
        rule applied. They end where the next ones start, or before, if something between them was
        left out; that is then found by normalising parts of the text.
        """
        normalised, found = self._library.normalize(text, with_offsets=True)
        first = int(self.add_dummy_prefix)  # the space before the text comes from nowhere in it
        found = np.asarray(found[first:], dtype=np.int64)
        normalised, starts, bounds = normalised[first:], found[:-1].copy(), np.unique(found)
        ends = bounds[np.searchsorted(bounds, starts, side="right")]
        for start in np.unique(starts[ends - starts > 1]).tolist():
            at, stop = np.searchsorted(found[:-1], [start, start + 1]).tolist()
            result, end = normalised[at:stop], int(ends[at])
            if result == SPACE:  # of several spaces the last
                last = end - 1
                while last > start and not self._is_space(text[last]):
                    last -= 1
                starts[at], ends[at] = last, last + 1
            elif text.startswith(result, start):  # a symbol that no rule changes
                starts[at:stop] = np.arange(start, start + len(result))
                ends[at:stop] = starts[at:stop] + 1
            else:
                result = result.strip(SPACE)
                length = 1
                while start + length < end and self._result(text[start : start + length]) != result:
                    length += 1
                ends[at:stop] = start + length
        if self._collapses and not text.isascii():
            # What becomes a space and more ("¨", a space and an accent) has the last space before
            # the accent.
            for at in re.finditer(f"{SPACE}(?!{SPACE})", normalised[:-1]):
                start, end = int(starts[at.end()]), int(ends[at.end()])
                if starts[at.start()] < start and self._spaced(text[start:end]):
                    starts[at.start()], ends[at.start()] = start, end
        origins = np.stack([starts, ends], axis=1)
        return np.concatenate([origins[:first], origins])

    def _after_dot(self, text: str) -> str:
        """What a part becomes within a text, where spaces before and after it stay."""
        return self._library.normalize(f".{text}.").removeprefix(SPACE)[1:-1]

    def _result(self, text: str) -> str:
        return self._after_dot(text).strip(SPACE)

    def _is_space(self, character: str) -> bool:
        return character == " " or self._after_dot(character) == SPACE

    def _begins_with_space(self, text: str) -> bool:
        return self._after_dot(text).startswith(SPACE)


def _load(raw: bytes, source: str) -> SentencePieceProcessor:
    """The library's model. Raises CheckpointError."""
    try:
        if not {_TRAINER, _NORMALIZER} <= {number for number, _ in _fields(raw)}:
            # Cut between two pieces, it would be a smaller model to the library.
            raise ValueError("it ends before its settings")
        library = SentencePieceProcessor(model_proto=raw)
    except (ValueError, IndexError, RuntimeError, OSError) as err:
        raise CheckpointError(
            f"{source} cannot be read as a SentencePiece model ({err}); fetch it again."
        ) from err
    problem = _unsupported(library)
    if problem:
        raise CheckpointError(
            f"{source} {problem}, as no tokenizer of XLM-R's kind does; a tokenizer.json is needed."
        )
    return library


def _unsupported(library: SentencePieceProcessor) -> str:
    """What keeps a model from being one of XLM-R's kind; empty if nothing does."""
    if library.get_piece_size() <= 3:
        return "holds no pieces"
    if not (library.is_unknown(0) and library.is_control(1) and library.is_control(2)):
        return "does not begin with <unk>, <s> and </s>"
    if library.is_byte(library.piece_to_id("<0x00>")):
        return "spells unknown characters as bytes"
    if library.normalize(". .").removeprefix(SPACE) != f".{SPACE}.":
        return "writes spaces after words, or as they are"
    return ""


def _fields(raw: bytes) -> Iterator[tuple[int, bytes]]:
    """Number and content of each field of the file, a protobuf message of messages. Raises
    ValueError, or IndexError if it is cut short."""
    at = 0
    while at < len(raw):
        number, kind = raw[at] >> 3, raw[at] & 7
        size = shift = 0
        while True:  # seven bits a byte, the lowest first
            at += 1
            size |= (raw[at] & 127) << shift
            shift += 7
            if raw[at] < 128:
                break
        at += 1
        if kind != 2 or at + size > len(raw):
            raise ValueError("it is cut short or of another format")
        yield number, raw[at : at + size]
        at += size


def _without(raw: bytes, names: Collection[str]) -> bytes:
    """The file with these pieces unused."""
    wanted = tuple(b"\x0a" + _varint(len(name.encode())) + name.encode() for name in names)
    parts = []
    for number, content in _fields(raw):
        if number == _PIECE and content.startswith(wanted):
            content += _UNUSED
        parts += [bytes([number << 3 | 2]), _varint(len(content)), content]
    return b"".join(parts)


def _varint(value: int) -> bytes:
    parts = []
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    return bytes([*parts, value])
