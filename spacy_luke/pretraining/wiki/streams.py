"""Bytes of an export, decompressed piece by piece; a file that ends too soon is an error."""

import bz2
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from ...errors import CorpusError

CHUNK = 1 << 16
MOST_PLAIN = 1 << 20
BZ2_MAGIC, GZIP_MAGIC = b"BZh", b"\x1f\x8b"
_OTHERS = {
    b"\xfd7zXZ": "xz",
    b"7z\xbc\xaf": "7z",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"PK\x03\x04": "zip",
}


class _Decompressor(Protocol):
    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


def decompressed(path: Path, start: int = 0, end: int | None = None) -> Iterator[bytes]:
    """The plain bytes of a file, or of whole compressed streams in its bytes start to end.

    bz2 (one stream or many), gzip (one member or many) and plain files are told apart by their
    first bytes. What a chunk expands to is given out in pieces of at most ``MOST_PLAIN`` bytes: a
    few thousand bytes of bz2 can hold gigabytes.

    Raises: CorpusError for a file that is empty, truncated, damaged or of another compression; it
        names the file and the byte.
    """
    with path.open("rb") as file:
        magic = file.read(6)
        if not magic:
            raise CorpusError(f"{path}: the file is empty")
        for known, name in _OTHERS.items():
            if magic.startswith(known):
                raise CorpusError(f"{path}: {name} is not read; give bz2, gzip or plain XML")
        file.seek(start)
        chunks = _limited(file.read, path, start, end)
        if magic.startswith(BZ2_MAGIC):
            yield from _streams(path, chunks, "bz2", start)
        elif magic.startswith(GZIP_MAGIC):
            yield from _streams(path, chunks, "gzip", start)
        else:
            yield from chunks


def _limited(read: "_Read", path: Path, start: int, end: int | None) -> Iterator[bytes]:
    at = start
    while end is None or at < end:
        chunk = read(CHUNK if end is None else min(CHUNK, end - at))
        if not chunk:
            if end is not None:
                raise CorpusError(f"{path}: the file ends at byte {at}, expected {end}: truncated?")
            return
        at += len(chunk)
        yield chunk


class _Read(Protocol):
    def __call__(self, size: int, /) -> bytes: ...


def _new(kind: str) -> _Decompressor:
    return bz2.BZ2Decompressor() if kind == "bz2" else zlib.decompressobj(wbits=31)


def _streams(path: Path, chunks: Iterator[bytes], kind: str, at: int) -> Iterator[bytes]:
    stream = _new(kind)
    begun = False  # bytes of this stream have been seen
    for chunk in chunks:
        data = chunk
        while data:
            if not begun and not data.strip(b"\0"):
                break  # padding after the last stream
            try:
                yield from _expanded(stream, data)
            except (OSError, EOFError, zlib.error) as error:
                raise CorpusError(f"{path}: damaged {kind} data near byte {at}: {error}") from error
            begun = True
            if not stream.eof:
                break
            data, stream, begun = stream.unused_data, _new(kind), False
        at += len(chunk)
    if begun:
        raise CorpusError(f"{path}: the {kind} data breaks off at byte {at}: truncated download?")


def _expanded(stream: _Decompressor, data: bytes) -> Iterator[bytes]:
    """What a stream makes of ``data``, piece by piece."""
    while True:
        out = stream.decompress(data, MOST_PLAIN)
        if out:
            yield out
        # bz2 keeps what it has not used yet, zlib gives it back.
        data = getattr(stream, "unconsumed_tail", b"")
        waiting = data or not getattr(stream, "needs_input", True)
        if stream.eof or not waiting and len(out) < MOST_PLAIN:
            return
