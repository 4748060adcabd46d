"""How often linked texts occur in articles, linked or not.

The texts are a trie in a file that all workers map into memory. So memory grows with the number of
distinct texts, and not with the articles.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from marisa_trie import Trie

from ..errors import ConfigError
from ..files import remove_folder
from ..kb.whole_words import MAX_CHARACTERS, is_whole, normalize_words, occurrences
from ..mapped_array import save_array
from .article_files import ArticleFile, article_files, read_articles
from .database import database, rows_of, write_query
from .engine import Engine
from .manifest import Manifest, by_input, read_manifest
from .settings import VocabSettings
from .stage import Stage, begin
from .tables import ANCHORS, LINKS, OCCURRENCES

STAGE, TEXTS, COUNTS = "occurrences", "texts", "counts"
_TRIE, _COUNTS = "texts.marisa", "counts.npy"
_BLOCK = 1 << 20
_COLUMNS = ["text", "link_starts", "link_ends"]


def count_occurrences(
    articles: Sequence[Manifest],
    entities: Manifest,
    folder: Path,
    engine: Engine,
    memory: str = VocabSettings.memory,
    show_progress: bool = True,
) -> Manifest:
    """Count how often the texts of links occur in articles, linked or not.

    entities: made from the same articles. memory: limit of joins. Writes ``occurrences.parquet``.

    Texts are compared in lower case, with one space for any white space (``normalize_words``). A
    text occurs where it stands as whole words in one line of an article; articles have a line per
    paragraph and item of a list. A link is an occurrence even if it is not whole words, as in
    ``un[[linked]]``, or extends over lines. So a text does not occur less often than it is linked.
    Texts that are empty or longer than 250 characters are left out, and their links are counted.
    """
    sources = by_input(articles)
    inputs = {name: manifest.fingerprint for name, manifest in sources.items()}
    if inputs != {k: v for k, v in entities.inputs.items() if k.startswith("articles ")}:
        raise ConfigError(
            f"{entities.folder} was not made from these articles: name the same folders in the "
            "same order."
        )
    inputs["entities"] = entities.fingerprint
    files = article_files(articles)
    folder = folder.absolute()
    with begin(STAGE, folder, {"languages": entities.settings["languages"]}, inputs) as stage:
        if not stage.finished:
            texts = _texts(stage, entities, memory, show_progress)
            counts = _counts(stage, texts, files, engine, show_progress)
            total = partial(_total, texts=texts, files=files)
            stage.run([counts], total, Engine(workers=1), show_progress)
        for name in (TEXTS, COUNTS):  # large, and not needed any longer
            if _hidden(folder, name).exists():
                remove_folder(_hidden(folder, name))
    return read_manifest(folder, STAGE)


def _hidden(folder: Path, name: str) -> Path:
    return folder / f".{name}"


def _texts(stage: Stage, entities: Manifest, memory: str, show_progress: bool) -> Manifest:
    """The normalised texts: a trie, and their links."""
    folder = _hidden(stage.folder, TEXTS)
    with begin(TEXTS, folder, stage.settings, stage.inputs) as texts:
        work = partial(_write_texts, memory=memory)
        return texts.run([entities], work, Engine(workers=1), show_progress)


def _write_texts(entities: Manifest, folder: Path, memory: str) -> dict[str, int]:
    entities.verify()
    (anchors,) = entities.paths(ANCHORS.file)
    counts: Counter[str] = Counter()
    with database(folder, f"The texts of {entities.folder} cannot be counted", memory) as db:
        db.execute(
            "CREATE TABLE links (language VARCHAR, anchor VARCHAR, title VARCHAR, count BIGINT)"
        )
        for batch in _normalized(anchors, counts):
            db.register("batch", batch)
            db.execute("INSERT INTO links FROM batch")
        write_query(
            db,
            "SELECT language, anchor, title, sum(count) AS count FROM links GROUP BY ALL "
            "ORDER BY language, anchor, count DESC, title",
            folder,
            LINKS,
        )
        keys = rows_of(db, "SELECT DISTINCT anchor FROM links")
        # Not Trie.save, whose errors are no OSError.
        (folder / _TRIE).write_bytes(Trie(key for (key,) in keys).tobytes())
    return dict(counts)


def _normalized(anchors: Path, counts: Counter[str]) -> Iterator[pa.Table]:
    with pq.ParquetFile(anchors) as file:
        for batch in file.iter_batches():
            columns = batch.to_pydict()
            texts = [normalize_words(x) for x in columns["anchor"]]
            kept = []
            for i, (text, n) in enumerate(zip(texts, columns["count"])):
                if not text:
                    counts["links left out: empty text"] += n
                elif "\0" in text:  # a trie knows a text up to there
                    counts["links left out: text with the character NUL"] += n
                elif len(text) > MAX_CHARACTERS:
                    counts[f"links left out: text of over {MAX_CHARACTERS} characters"] += n
                else:
                    kept.append(i)
            table = pa.Table.from_batches([batch]).set_column(1, "anchor", pa.array(texts))
            yield table.take(pa.array(kept, pa.int64()))


def _counts(
    stage: Stage,
    texts: Manifest,
    files: Sequence[ArticleFile],
    engine: Engine,
    show_progress: bool,
) -> Manifest:
    """The occurrences of texts in each file of articles."""
    (trie,) = texts.paths(_TRIE)
    folder = _hidden(stage.folder, COUNTS)
    with begin(COUNTS, folder, stage.settings, stage.inputs, len(files)) as counts:
        return counts.run(files, partial(_count, trie=trie), engine, show_progress)


def _count(file: ArticleFile, folder: Path, trie: Path) -> dict[str, int]:
    """Write the ids of texts, and how often they occur: (2, n)."""
    file.verify()
    texts = _open(trie)
    totals = np.zeros(len(texts), np.int64)
    block: list[int] = []
    for row in read_articles(file.path, _COLUMNS):
        block += _rows_in(texts, *(row[name] for name in _COLUMNS))
        if len(block) > _BLOCK:
            totals += np.bincount(block, minlength=len(texts))
            block.clear()
    totals += np.bincount(np.array(block, np.int64), minlength=len(texts))
    rows = totals.nonzero()[0]
    save_array(folder / _COUNTS, np.stack([rows, totals[rows]]))
    return {"occurrences of linked texts": int(totals.sum())}


def _rows_in(texts: Trie, text: str, starts: Sequence[int], ends: Sequence[int]) -> Iterator[int]:
    """The id of each occurrence in an article. starts, ends: of its links."""
    for line in text.split("\n"):
        for _, _, row in occurrences(texts, normalize_words(line)):
            yield row
    for start, end in zip(starts, ends):
        linked = text[start:end]
        key = normalize_words(linked)
        if key in texts:
            start += len(linked) - len(linked.lstrip())
            end -= len(linked) - len(linked.rstrip())
            if "\n" in text[start:end] or not is_whole(text, start, end):
                yield texts[key]


def _total(
    counts: Manifest, folder: Path, texts: Manifest, files: Sequence[ArticleFile]
) -> dict[str, int]:
    (trie,), (links,) = texts.paths(_TRIE), texts.paths(LINKS.file)
    keys = _open(trie)
    totals = Counter(texts.counts)
    with OCCURRENCES.writer(folder) as table:
        for language, rows in groupby(_links(links), itemgetter(0)):
            paths = (x for x, y in zip(counts.paths(_COUNTS), files) if y.language == language)
            n = _sum(paths, len(keys))
            for text, group in groupby(rows, itemgetter(1)):
                row = keys[text]
                totals.update({"texts": 1, "occurrences": int(n[row])})
                for _, _, title, count in group:
                    table.add((language, text, title, count, int(n[row])))
                    totals["links"] += count
    return dict(totals)


def _sum(paths: Iterator[Path], n: int) -> np.ndarray:
    total = np.zeros(n, np.int64)
    for path in paths:
        rows, counts = np.load(path)
        total[rows] += counts
    return total


def _links(path: Path) -> Iterator[tuple[str, str, str, int]]:
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches():
            yield from zip(*(column.to_pylist() for column in batch.columns))


def _open(path: Path) -> Trie:
    trie = Trie()
    trie.mmap(str(path))
    return trie
