"""Temporary DuckDB databases: joins of any size with limited memory."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..errors import StageError
from .settings import VocabSettings
from .tables import Table, write_table

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection as Database
else:
    Database = Any

_BLOCK = 10_000


@contextmanager
def database(folder: Path, failure: str, memory: str | None = None) -> Iterator[Database]:
    """An empty database, which writes what exceeds its memory to a temporary folder in ``folder``.
    Results have no order unless a query asks for one.

    failure: what an error of a query means, in words. memory: with a unit, for example 4GB, where
    it is an option of the command.

    Raises StageError for any error of a query.
    """
    import duckdb  # here: Dask workers that import it print its leaks when they end

    spill = folder / "spill"
    try:
        with duckdb.connect() as db:
            db.execute(f"SET memory_limit = '{memory or VocabSettings.memory}'")
            db.execute(f"SET temp_directory = '{quoted(str(spill))}'")
            db.execute("SET preserve_insertion_order = false")
            yield db
    except duckdb.Error as error:
        reason = str(error).partition("\n")[0]  # the other lines advise on settings of DuckDB
        is_temporary = folder.parent == Path(gettempdir())
        other = "set TMPDIR to" if is_temporary else "choose"
        remedies = [*(["change --memory"] if memory else []), "free space"]
        raise StageError(
            f"{failure}: {reason}. Temporary files are written to {folder.parent}. If memory or "
            f"disk is insufficient, {', '.join(remedies)}, or {other} a folder on another disk."
        ) from error
    finally:
        shutil.rmtree(spill, ignore_errors=True)


def rows_of(db: Database, query: str) -> Iterator[tuple[Any, ...]]:
    """The rows of a query, fetched in blocks."""
    result = db.execute(query)
    while rows := result.fetchmany(_BLOCK):
        yield from rows


def write_query(db: Database, query: str, folder: Path, table: Table) -> int:
    """Write the rows of a query to a folder, as that table. Returns their number."""
    return write_table(
        folder / table.file, table.schema, pa.RecordBatchReader.from_stream(db.sql(query))
    )


def drop_tables(db: Database, *tables: str) -> None:
    """Drop tables that are not needed any longer, because they take memory and disk."""
    for table in tables:
        db.execute(f"DROP TABLE {table}")


def count_rows(db: Database, source: str) -> int:
    """The number of rows of ``FROM …``."""
    return int(value_of(db, f"SELECT count(*) {source}"))


def value_of(db: Database, query: str) -> int:
    """The number that a query returns; 0 if it returns none."""
    row = db.execute(query).fetchone()
    return int(row[0] or 0) if row else 0


def quoted(text: str) -> str:
    """A text as it is written between single quotes in SQL."""
    return text.replace("'", "''")
