"""Unigram models in the SentencePiece library's own file, as XLM-R and mLUKE publish them.

The file is a protobuf message, of which four fields matter; they are read here, so that neither
``sentencepiece`` nor ``protobuf`` is needed. The ``tokenizers`` library then finds the pieces. Its
own reading of a model's character map is not used: it looks at one grapheme at a time and takes
the shortest rule, which loses the second accent of a decomposed Vietnamese vowel and the sound
mark of a half-width kana. The rules are applied here, the longest first, as SentencePiece does.
"""

import re
import struct
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..errors import CheckpointError

Array = np.ndarray
Piece = tuple[str, float, int]  # string, score, type

MODEL_FILE = "sentencepiece.bpe.model"
SPACE = "\u2581"
# XLM-R was trained with fairseq, which has four pieces of its own before the model's and one after
# them; <unk>, <s> and </s>, the first three of the model, are among the four.
_BEFORE = ("<s>", "<pad>", "</s>", "<unk>")
_AFTER = "<mask>"
_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _UNUSED, _BYTE = range(1, 7)
_KINDS = {1: "Unigram", 2: "BPE", 3: "word", 4: "character"}


class SentencePieceModel:
    """A Unigram model's file and its normaliser.

    raw: the content of the file. charsmap: what is to be done to a text before the ``tokenizers``
    library sees it. add_dummy_prefix: whether a text's first word is written like those after a
    space. n_ids: one more than the highest id.
    """

    def __init__(self, raw: bytes, charsmap: "Charsmap", add_dummy_prefix: bool, n_ids: int):
        self.raw = raw
        self.charsmap = charsmap
        self.add_dummy_prefix = add_dummy_prefix
        self.n_ids = n_ids

    @classmethod
    def read(
        cls, raw: bytes, source: str = MODEL_FILE
    ) -> tuple["SentencePieceModel", dict[str, Any]]:
        """The model, and what ``tokenizer.json`` would say of text that ``charsmap`` has been over.

        The pieces are in the latter alone: a quarter of a million of them take 60 MB.

        source: the file's name, for errors. Raises CheckpointError where the content is damaged,
        or a kind of model that XLM-R's tokenizer cannot be.
        """
        try:
            pieces, trainer, normalizer = _read_model(raw)
            kept = [piece for piece, _, kind in pieces if kind == _USER_DEFINED]
            charsmap = Charsmap(normalizer.get(2, b""), kept)
        except (ValueError, TypeError, IndexError, struct.error) as err:
            raise CheckpointError(
                f"{source} cannot be read as a SentencePiece model ({err}); fetch it again."
            ) from err
        problem = _unsupported(pieces, trainer, normalizer)
        if problem:
            raise CheckpointError(
                f"{source} {problem}, as no tokenizer of XLM-R's kind does; a tokenizer.json is "
                "needed."
            )
        prefix, strip = bool(normalizer.get(3, 1)), bool(normalizer.get(4, 1))
        vocab, unmatched = _by_id(pieces)
        return cls(raw, charsmap, prefix, len(vocab)), {
            "version": "1.0",
            "added_tokens": [{"content": name, "id": at} for name, at in unmatched.items()],
            **_around_pieces(pieces, prefix, strip),
            "model": {"type": "Unigram", "unk_id": _BEFORE.index("<unk>"), "vocab": vocab},
        }


def _by_id(pieces: list[Piece]) -> tuple[list[tuple[str, float]], dict[str, int]]:
    """(piece, score) by id, and the ids of pieces that no text has (special, control and unused
    ones) by their names: in the list they are strings that no text has either."""
    unmatched = {name: at for at, name in enumerate(_BEFORE)}
    vocab = [(f" {at} ", 0.0) for at in range(len(_BEFORE))]
    highest = max(score for _, score, kind in pieces if kind == _NORMAL)
    for at, (piece, score, kind) in enumerate(pieces[3:], len(_BEFORE)):
        if kind == _USER_DEFINED:
            score = len(piece.encode()) * highest - 0.1  # as the library scores them
        elif kind != _NORMAL:
            # No text has a space in it by then. The score must not become the lowest, from
            # which unknown characters get theirs.
            unmatched[piece], piece, score = at, f" {at} ", 0.0
        vocab.append((piece, score))
    unmatched[_AFTER] = len(vocab)
    vocab.append((f" {len(vocab)} ", 0.0))
    return vocab, unmatched


def _around_pieces(pieces: list[Piece], prefix: bool, strip: bool) -> dict[str, Any]:
    """What is done to a text before its pieces are found, and after."""
    # What may be cut at spaces before pieces are found: pieces that never reach over one.
    strings = [piece for piece, _, kind in pieces if kind in (_NORMAL, _USER_DEFINED)]
    cut = SPACE in strings and not any(SPACE in piece[1:] for piece in strings)
    steps = [_replace({"String": " "}, SPACE)]
    if strip:
        steps = [_replace({"Regex": r"\A +"}, ""), _replace({"Regex": " {2,}"}, " "), *steps]
    if prefix:
        steps.append({"type": "Prepend", "prepend": SPACE})
    if strip:  # with the prefix, where there is nothing else
        steps.append(_replace({"Regex": SPACE + r"+\z"}, ""))
    space = {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "never", "split": cut}
    normalizer = {"type": "Sequence", "normalizers": steps}
    return {"normalizer": normalizer, "pre_tokenizer": dict(space), "decoder": dict(space)}


def _replace(pattern: dict[str, str], content: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": pattern, "content": content}


def _unsupported(pieces: list[Piece], trainer: dict[int, Any], normalizer: dict[int, Any]) -> str:
    """What keeps the model from being one of XLM-R's kind; empty where nothing does."""
    kinds = [kind for *_, kind in pieces]
    if trainer.get(3, 1) != 1:
        return f"is a {_KINDS.get(trainer[3], 'strange')} model, not a Unigram model"
    if trainer.get(40, 0) != 0 or kinds[:3] != [_UNKNOWN, _CONTROL, _CONTROL]:
        return "does not begin with <unk>, <s> and </s>"
    if trainer.get(35) or _BYTE in kinds:
        return "spells unknown characters as bytes"
    if trainer.get(24) or not normalizer.get(5, 1):
        return "writes spaces after words, or as they are"
    if _NORMAL not in kinds or _UNKNOWN in kinds[3:] or len({p for p, *_ in pieces}) < len(pieces):
        return "holds no pieces, several <unk>, or a piece twice"
    return ""


def _read_model(raw: bytes) -> tuple[list[Piece], dict[int, Any], dict[int, Any]]:
    """The pieces, and the fields of ``trainer_spec`` and ``normalizer_spec`` by number.

    Numbers are those of ``sentencepiece_model.proto``. Raises ValueError, or what reading a value
    of another type raises.
    """
    pieces: list[Piece] = []
    specs: dict[int, dict[int, Any]] = {}
    for number, value in _fields(raw):
        if number == 1:
            piece = dict(_fields(value))
            (score,) = struct.unpack("<f", piece.get(2, bytes(4)))
            pieces.append((piece.get(1, b"").decode(), score, int(piece.get(3, _NORMAL))))
        elif number in (2, 3):
            specs[number] = dict(_fields(value))
    if not pieces or len(specs) < 2:
        raise ValueError("it has no pieces, or ends before its settings")
    return pieces, specs[2], specs[3]


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Number and value of each field of a protobuf message: a number, or bytes for the rest."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        if kind in (0, 2):
            size, at = _varint(data, at)
            if kind == 0:
                yield key >> 3, size
                continue
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise ValueError(f"there is no field of the kind {kind}")
        if at + size > len(data):
            raise ValueError("it is cut short")
        yield key >> 3, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """The number that starts at this byte, seven bits a byte, and where it ends."""
    if data[at] < 128:  # nearly always
        return data[at], at + 1
    value = shift = 0
    while data[at] >= 128:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
    return value | data[at] << shift, at + 1


class Charsmap:
    """The rules of a model's normaliser: what to replace by what.

    blob: ``precompiled_charsmap``: the size of a double-array trie, its units of four bytes, and
        the strings its keys lead to, each ended by a zero byte. A unit (of the library
        Darts-clone) has its label in bits 0 to 7, in bit 8 whether a key ends here, and from bit
        10 the way to its children, times 256 where bit 9 is set.
    kept: strings that no rule changes.

    Raises ValueError where the blob is cut short.
    """

    def __init__(self, blob: bytes, kept: Sequence[str] = ()):
        size = int.from_bytes(blob[:4], "little") if blob else 0
        if blob and (not size or size % 4 or 4 + size >= len(blob)):
            raise ValueError("its character map is cut short")
        self._units = struct.unpack_from(f"<{size // 4}I", blob, 4) if blob else ()
        self._strings = blob[4 + size :]
        self._kept = tuple(sorted(kept, key=len, reverse=True))
        self._nodes: dict[tuple[int, str], int] = {}
        plain = [chr(code) for code in range(128)]
        starts = [(char, self._step(0, char)) for char in plain] if blob else []
        inside = [
            re.escape(char)
            for char, at in starts
            if at > 0 and (self._ends(at) or any(self._step(at, after) > 0 for after in plain))
        ]
        # A rule starts at one of these, at what is not ASCII, or before it: an accent, say.
        rules = [f"[{''.join(inside)}\x80-\U0010ffff]", r".(?=[^\x00-\x7f])"] if blob else [r"(?!)"]
        self._candidate = re.compile("|".join([*map(re.escape, self._kept), *rules]), re.DOTALL)

    def normalise(self, text: str) -> tuple[str, Array | None]:
        """The text by the rules, the longest first, and (n_chars, 2) where in ``text`` each
        character of the result comes from; None where no rule applied."""
        parts: list[str] = []
        starts: list[int] = []
        ends: list[int] = []
        copied = at = 0
        while found := self._candidate.search(text, at):
            start = found.start()
            at, part = self._rule(text, start)
            if part is not None:
                parts += [text[copied:start], part]
                starts += [*range(copied, start), *[start] * len(part)]
                ends += [*range(copied + 1, start + 1), *[at] * len(part)]
                copied = at
        if not parts:
            return text, None
        starts += range(copied, len(text))
        ends += range(copied + 1, len(text) + 1)
        return "".join([*parts, text[copied:]]), np.asarray([starts, ends], dtype=np.int64).T

    def _rule(self, text: str, start: int) -> tuple[int, str | None]:
        """Where the longest key at ``start`` ends, and what replaces it; None: it stays."""
        for kept in self._kept:
            if text.startswith(kept, start):
                return start + len(kept), None
        node = last = 0
        end = start + 1
        for at in range(start, len(text)):
            known = self._nodes.get((node, text[at]))
            node = self._step(node, text[at]) if known is None else known
            if node <= 0:
                break
            if self._ends(node):
                last, end = node, at + 1
        if not last:
            return end, None
        value = self._units[last ^ self._way(last)] & 0x7FFFFFFF
        return end, self._strings[value : self._strings.find(b"\0", value)].decode(errors="replace")

    def _step(self, node: int, char: str) -> int:
        """The node that a character leads to; -1 where no key goes on like this."""
        at = node
        for byte in char.encode():
            at ^= self._way(at) ^ byte
            if at >= len(self._units) or self._units[at] & 0x800000FF != byte:
                at = -1
                break
        self._nodes[node, char] = at
        return at

    def _way(self, node: int) -> int:
        unit = self._units[node]
        return (unit >> 10) << ((unit & 512) >> 6)

    def _ends(self, node: int) -> bool:
        return bool(self._units[node] & 256)
