"""Decompress an export in chunks, and find streams of bz2. A truncated file is an error."""

import bz2
import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from ...errors import CorpusError

CHUNK = 1 << 16
MAX_PLAIN = 1 << 20
BZ2_MAGIC, GZIP_MAGIC = b"BZh", b"\x1f\x8b"
MAX_RATIO, MIN_EXPANDED = 1_000, 1 << 30
"""A file may expand to so many times its size, and to MIN_EXPANDED in any case. Exports expand to
some 5 to 50 times their size."""
_STREAM = re.compile(rb"BZh[1-9]1AY&SY")
_SEARCHED = 64 << 20
"""Bytes in which the next stream is searched for: some hundred times as long as one."""
_UNSUPPORTED = {
    b"\xfd7zXZ": "xz",
    b"7z\xbc\xaf": "7z",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"PK\x03\x04": "zip",
}


class TruncatedError(CorpusError):
    """A file ends too early."""


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
    kind = compression(path)
    with path.open("rb") as file:
        file.seek(start)
        chunks = _limited(file.read, path, start, end)
        if kind:
            length = (path.stat().st_size if end is None else end) - start
            yield from _bounded(_streams(path, chunks, kind, start), path, length)
        else:
            yield from chunks


def compression(path: Path) -> str:
    """``bz2``, ``gzip``, or empty for a plain file. Raises CorpusError if the file is empty or has
    another compression."""
    with path.open("rb") as file:
        magic = file.read(6)
    if not magic:
        raise CorpusError(f"{path}: the file is empty")
    for prefix, name in _UNSUPPORTED.items():
        if magic.startswith(prefix):
            raise CorpusError(f"{path}: {name} is not supported; use bz2, gzip or plain XML")
    if magic.startswith(BZ2_MAGIC):
        return "bz2"
    return "gzip" if magic.startswith(GZIP_MAGIC) else ""


def next_stream(path: Path, start: int, accepts: Callable[[bytes], bool]) -> int | None:
    """The first byte, from ``start`` on, of a bz2 stream whose first plain bytes are accepted; None
    if there is none near, or the file is not bz2."""
    if compression(path) != "bz2":
        return None
    with path.open("rb") as file:
        file.seek(start)
        position, rest = start, b""
        while position < start + _SEARCHED and (block := file.read(MAX_PLAIN)):
            data = rest + block
            for match in _STREAM.finditer(data):
                offset = position - len(rest) + match.start()
                if accepts(_beginning(path, offset)):
                    return offset
            position += len(block)
            rest = data[-9:]  # a magic number may stand across two blocks
    return None


def _beginning(path: Path, start: int) -> bytes:
    """The first plain bytes of the stream at a byte, if it is one."""
    stream = bz2.BZ2Decompressor()
    with path.open("rb") as file:
        file.seek(start)
        try:
            while not stream.eof and (block := file.read(CHUNK)):
                if plain := stream.decompress(block, CHUNK):
                    return plain
        except OSError:
            pass  # the magic number was data
    return b""


def _bounded(chunks: Iterator[bytes], path: Path, length: int) -> Iterator[bytes]:
    n_plain = 0
    for chunk in chunks:
        n_plain += len(chunk)
        if n_plain > max(MAX_RATIO * length, MIN_EXPANDED):
            raise CorpusError(
                f"{path}: {length} bytes expand to more than {n_plain >> 20} MiB. This is not an "
                "export of a wiki."
            )
        yield chunk


def _limited(read: "_Read", path: Path, start: int, end: int | None) -> Iterator[bytes]:
    position = start
    while end is None or position < end:
        chunk = read(CHUNK if end is None else min(CHUNK, end - position))
        if not chunk:
            if end is not None:
                raise TruncatedError(
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
        raise TruncatedError(
            f"{path}: the {kind} data ends at byte {position}: truncated download?"
        )


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
