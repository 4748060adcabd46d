"""The articles of finished folders, file by file."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from .manifest import File, Manifest, verified
from .tables import ARTICLES

_ARTICLES_AT_ONCE = 50


class ArticleFile(NamedTuple):
    """A file of articles, as jobs get it. language, stage, folder: of its manifest."""

    language: str
    stage: str
    folder: Path
    file: File

    @property
    def path(self) -> Path:
        return self.folder / self.file.path

    def __str__(self) -> str:
        return str(self.path)

    def verify(self) -> None:
        """Raises StageError if the file is missing or changed."""
        verified(self.folder, self.file, self.stage)


def article_files(articles: Sequence[Manifest]) -> list[ArticleFile]:
    """The files of several folders, in order."""
    return [
        ArticleFile(str(manifest.settings["language"]), manifest.stage, manifest.folder, file)
        for manifest in articles
        for file in manifest.files(ARTICLES.file)
    ]


def read_articles(path: Path, columns: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
    """The rows of a file; columns: all by default."""
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(_ARTICLES_AT_ONCE, columns=columns and [*columns]):
            yield from batch.to_pylist()
