"""Temporary DuckDB databases: joins of any size with limited memory."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from ..errors import StageError
from .tables import write_table

_BLOCK = 10_000


@contextmanager
def database(memory: str, folder: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """An empty database, which writes what exceeds its memory to a temporary folder in ``folder``.
    Results have no order unless a query asks for one.

    memory: with a unit, for example 4GB.
    """
    spill = folder / "spill"
    try:
        with duckdb.connect() as db:
            db.execute(f"SET memory_limit = '{memory}'")
            db.execute(f"SET temp_directory = '{quoted(str(spill))}'")
            db.execute("SET preserve_insertion_order = false")
            yield db
    finally:
        shutil.rmtree(spill, ignore_errors=True)


def failed(what: str, error: duckdb.Error, folder: Path) -> StageError:
    """The error of a query with a database in ``folder``."""
    reason = str(error).partition("\n")[0]  # the other lines advise on settings of DuckDB
    return StageError(
        f"{what}: {reason}. Temporary files are written to {folder.parent}. If memory or disk is "
        "insufficient, change --memory, free space, or choose a folder on another disk."
    )


def rows_of(db: duckdb.DuckDBPyConnection, query: str) -> Iterator[tuple[Any, ...]]:
    """The rows of a query, fetched in blocks."""
    result = db.execute(query)
    while rows := result.fetchmany(_BLOCK):
        yield from rows


def write_query(db: duckdb.DuckDBPyConnection, query: str, path: Path, schema: pa.Schema) -> int:
    """Write the rows of a query to a Parquet file. Returns their number."""
    return write_table(path, schema, pa.RecordBatchReader.from_stream(db.sql(query)))


def quoted(text: str) -> str:
    """A text as it is written between single quotes in SQL."""
    return text.replace("'", "''")
