"""The Parquet files that stages exchange: their names and schemas, and their writers."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from glob import escape
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 2_000
"""Rows per row group, which readers load at once."""

_CHARACTERS = 1 << 25
"""Text per row group, if ROWS rows have more."""


@dataclass(frozen=True)
class Table:
    """A table that a stage writes. file: its name, in the folder of each partition."""

    file: str
    schema: pa.Schema

    def writer(self, folder: Path) -> "TableWriter":
        return TableWriter(folder / self.file, self.schema)


def _table(file: str, **columns: pa.DataType) -> Table:
    return Table(file, pa.schema(columns))


RAW_PAGES = _table(
    "pages.parquet",
    page_id=pa.int64(),
    title=pa.string(),
    namespace=pa.int32(),
    redirect=pa.string(),
    text=pa.large_string(),
    model=pa.string(),
    timestamp=pa.string(),
)
"""Pages of all namespaces (``wiki.export.Page``). text: only of namespaces with articles."""

REPEATED = _table("repeated.parquet", part=pa.int32(), row=pa.int64())
"""Rows of RAW_PAGES whose title has a newer page. part: of the dump, from 0."""

PAGES = _table("pages.parquet", title=pa.string(), kind=pa.string(), target=pa.string())
"""Pages of namespaces with articles. kind: ``article``, ``redirect`` or ``disambiguation``. target:
of redirects."""

EXCLUDED = _table("excluded.parquet", title=pa.string(), reason=pa.string())
"""Pages that are neither articles with text nor redirects."""

LEFT_OUT = _table(
    "left_out.parquet",
    template=pa.string(),
    uses=pa.int64(),
    links=pa.int64(),
    characters=pa.int64(),
)
"""Templates whose text was left out, with the links and characters of markup in them."""

ARTICLES = _table(
    "articles.parquet",
    page_id=pa.int64(),
    title=pa.string(),
    text=pa.large_string(),
    link_starts=pa.list_(pa.int32()),
    link_ends=pa.list_(pa.int32()),
    link_targets=pa.list_(pa.string()),
    link_anchors=pa.list_(pa.string()),
)
"""Text with links. starts, ends: characters [start, end), in text order. targets: linked titles,
with redirects unresolved. anchors: ``text[start:end]``."""

FACTS = _table(
    "facts.parquet",
    page_id=pa.int64(),
    title=pa.string(),
    template=pa.string(),
    number=pa.int32(),
    field=pa.string(),
    value=pa.large_string(),
    markup=pa.large_string(),
    targets=pa.list_(pa.string()),
)
"""Fields of templates such as infoboxes (``wiki.facts``). targets: as in ARTICLES."""

CATEGORIES = _table(
    "categories.parquet", page_id=pa.int64(), title=pa.string(), category=pa.string()
)
"""Categories that the markup of an article names, without their namespace."""

TARGETS = _table("targets.parquet", language=pa.string(), title=pa.string(), id=pa.int32())
"""Titles and redirects of the entities of a vocabulary."""

ANCHORS = _table(
    "anchors.parquet",
    language=pa.string(),
    anchor=pa.string(),
    title=pa.string(),
    count=pa.int64(),
)
"""How often a text links to an article, with redirects resolved."""

LINKS = replace(ANCHORS, file="links.parquet")
"""The same of texts that are normalised (``normalize_words``)."""

OCCURRENCES = _table(
    "occurrences.parquet",
    language=pa.string(),
    text=pa.string(),
    title=pa.string(),
    count=pa.int64(),
    occurrences=pa.int64(),
)
"""Linked texts, normalised (``normalize_words``). count: how often a text links to an article.
occurrences: how often the text occurs in all articles, linked or not."""

TRAIN = _table(
    "train.parquet",
    page_id=pa.int64(),
    word_ids=pa.list_(pa.uint32()),
    word_starts=pa.list_(pa.uint16()),
    entity_ids=pa.list_(pa.uint32()),
    entity_starts=pa.list_(pa.uint16()),
    entity_ends=pa.list_(pa.uint16()),
    entity_anchors=pa.list_(pa.string()),
)
"""Training sequences without special pieces. word_ids: pieces. word_starts: indices of pieces that
start a word. entity_ids: [UNK] for links outside the vocabulary. entity_starts, entity_ends: pieces
[start, end). entity_anchors: linked text."""

HELD_OUT = replace(TRAIN, file="held_out.parquet")
"""Sequences for evaluation."""


NO_COLUMNS = "hive_partitioning = false"
"""Otherwise DuckDB adds columns for folders named ``key=value``."""
FROM_PARQUET = f"FROM read_parquet(?, {NO_COLUMNS})"
"""Its parameter is a ``literal`` path, or a list of them."""


def literal(path: Path) -> str:
    """Escape a path for DuckDB, which expands ``*``, ``?`` and ``[``."""
    return escape(str(path))


def write_table(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> int:
    """Write batches as row groups of ROWS rows, whatever the sizes of the batches. Returns the
    number of rows."""
    n_rows = 0
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        rest = schema.empty_table()
        for batch in batches:
            rest = pa.concat_tables([rest, pa.Table.from_batches([batch]).cast(schema)])
            while len(rest) >= ROWS:
                writer.write_table(rest.slice(0, ROWS).combine_chunks())
                n_rows, rest = n_rows + ROWS, rest.slice(ROWS)
        if len(rest):
            writer.write_table(rest.combine_chunks())
    return n_rows + len(rest)


class TableWriter:
    """Writes a table row by row, with a limited number of rows and characters in memory."""

    def __init__(self, path: Path, schema: pa.Schema):
        self._schema = schema
        self._block: list[tuple] = []
        self._n_characters = 0
        self._writer = pq.ParquetWriter(path, schema, compression="zstd")

    def add(self, row: tuple) -> None:
        """Add a row: a value, array or list per field."""
        self._block.append(row)
        self._n_characters += sum(len(x) for x in row if isinstance(x, str))
        if len(self._block) == ROWS or self._n_characters > _CHARACTERS:
            self._flush()

    def __enter__(self) -> "TableWriter":
        return self

    def __exit__(self, *exception: object) -> None:
        if self._block and exception[0] is None:
            self._flush()
        self._writer.close()

    def _flush(self) -> None:
        columns = zip(zip(*self._block), self._schema)
        arrays = [pa.array(column, field.type) for column, field in columns]
        self._writer.write_table(pa.Table.from_arrays(arrays, schema=self._schema))
        self._block, self._n_characters = [], 0
