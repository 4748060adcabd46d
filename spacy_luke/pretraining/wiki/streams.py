"""Decompress an export in chunks. A truncated file is an error."""

import bz2
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from ...errors import CorpusError

CHUNK = 1 << 16
MAX_PLAIN = 1 << 20
BZ2_MAGIC, GZIP_MAGIC = b"BZh", b"\x1f\x8b"
_UNSUPPORTED = {
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
    """The plain bytes of a file, or of the whole compressed streams in its bytes [start, end).

    bz2 (one or more streams), gzip (one or more members) and plain files are recognised by their
    first bytes. Yields at most ``MAX_PLAIN`` bytes at a time: a few thousand bytes of bz2 can
    expand to gigabytes.

    Raises CorpusError, with file and byte, if the file is empty, truncated, damaged or has another
    compression.
    """
    with path.open("rb") as file:
        magic = file.read(6)
        if not magic:
            raise CorpusError(f"{path}: the file is empty")
        for prefix, name in _UNSUPPORTED.items():
            if magic.startswith(prefix):
                raise CorpusError(f"{path}: {name} is not supported; use bz2, gzip or plain XML")
        file.seek(start)
        chunks = _limited(file.read, path, start, end)
        if magic.startswith(BZ2_MAGIC):
            yield from _streams(path, chunks, "bz2", start)
        elif magic.startswith(GZIP_MAGIC):
            yield from _streams(path, chunks, "gzip", start)
        else:
            yield from chunks


def _limited(read: "_Read", path: Path, start: int, end: int | None) -> Iterator[bytes]:
    position = start
    while end is None or position < end:
        chunk = read(CHUNK if end is None else min(CHUNK, end - position))
        if not chunk:
            if end is not None:
                raise CorpusError(
                    f"{path}: the file ends at byte {position}, expected {end}: truncated?"
                )
            return
        position += len(chunk)
        yield chunk


class _Read(Protocol):
    def __call__(self, size: int, /) -> bytes: ...


def _new(kind: str) -> _Decompressor:
    return bz2.BZ2Decompressor() if kind == "bz2" else zlib.decompressobj(wbits=31)


def _streams(path: Path, chunks: Iterator[bytes], kind: str, position: int) -> Iterator[bytes]:
    stream = _new(kind)
    started = False  # whether bytes of this stream were read
    for chunk in chunks:
        data = chunk
        while data:
            if not started and not data.strip(b"\0"):
                break  # padding after the last stream
            try:
                yield from _expanded(stream, data)
            except (OSError, EOFError, zlib.error) as error:
                raise CorpusError(
                    f"{path}: damaged {kind} data near byte {position}: {error}"
                ) from error
            started = True
            if not stream.eof:
                break
            data, stream, started = stream.unused_data, _new(kind), False
        position += len(chunk)
    if started:
        raise CorpusError(f"{path}: the {kind} data ends at byte {position}: truncated download?")


def _expanded(stream: _Decompressor, data: bytes) -> Iterator[bytes]:
    """Decompress ``data`` in chunks of at most MAX_PLAIN bytes."""
    while True:
        out = stream.decompress(data, MAX_PLAIN)
        if out:
            yield out
        # bz2 keeps unused input, zlib returns it.
        data = getattr(stream, "unconsumed_tail", b"")
        has_input = data or not getattr(stream, "needs_input", True)
        if stream.eof or not has_input and len(out) < MAX_PLAIN:
            return
