"""Articles to shards: Parquet files of training sequences, one per partition of the articles."""

import hashlib
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import spacy
import srsly
from spacy.language import Language
from spacy.util import get_package_path, is_package

from ..errors import ConfigError
from ..files import sha256_of
from ..report import LOGGER
from ..vocab.entity_vocab import EntityVocab
from ..vocab.pieces import PieceTokenizer
from .article_files import ArticleFile, article_files, read_articles
from .database import database
from .engine import Engine
from .manifest import Manifest, by_input
from .sentences import sentence_starts
from .sequences import Article, SequenceLimits, cut_sequences, lay_out
from .settings import RULES, SENTENCIZER, ShardSettings
from .stage import begin
from .tables import FROM_PARQUET, HELD_OUT, TARGETS, TRAIN, literal

STAGE = "shards"


class _Pipeline(NamedTuple):
    """What sets sentence starts. location: package or folder. sha256: of its files, so that a
    long-running worker does not use an outdated one from its cache."""

    name: str
    location: str
    sha256: str


def build_shards(
    articles: Sequence[Manifest],
    entities: Manifest,
    tokenizer: PieceTokenizer,
    folder: Path,
    settings: ShardSettings,
    engine: Engine,
    show_progress: bool = True,
) -> Manifest:
    """Write ``train.parquet`` and ``held_out.parquet`` for every file of articles.

    articles: one or several languages. entities: the vocabulary, which gives the ids.
    """
    sources = by_input(articles)
    languages = [str(x.settings["language"]) for x in articles]
    missing = [x for x in languages if x not in entities.settings["languages"]]
    if missing:
        raise ConfigError(f"{entities.folder} was made without articles in {', '.join(missing)}.")
    entities.verify()
    (targets,) = entities.paths(TARGETS.file)
    files = article_files(articles)
    inputs = {name: manifest.fingerprint for name, manifest in sources.items()}
    inputs |= {"entities": entities.fingerprint, "pieces": pieces_hash(tokenizer)}
    sentences = _pipeline(settings.sentences)
    if settings.sentences == SENTENCIZER:
        _tell_missing_tokenizers(languages)
    inputs |= {"sentences": sentences.sha256} if sentences.sha256 else {}
    unk = vocabulary(entities).unk_id
    work = partial(
        _build,
        targets=targets,
        tokenizer=tokenizer,
        settings=settings,
        sentences=sentences,
        unk=unk,
    )
    with begin(STAGE, folder, asdict(settings), inputs, len(files)) as stage:
        return stage.run(files, work, engine, show_progress)


def covers_nothing(shards: Manifest) -> bool:
    """Whether no link leads to an entity of the vocabulary."""
    n_links = sum(shards.counts.get(f"entities, {side}", 0) for side in ("train", "held out"))
    return n_links <= shards.counts.get("links outside the vocabulary", 0)


def pieces_hash(tokenizer: PieceTokenizer) -> str:
    """A hash of what determines a tokenizer's pieces."""
    values = {k: v for k, v in tokenizer.to_dict().items() if k not in ("added", "settings")}
    return hashlib.sha256(srsly.json_dumps(values, sort_keys=True).encode()).hexdigest()


def vocabulary(entities: Manifest) -> EntityVocab:
    """The entity vocabulary of a finished stage."""
    files = [*entities.paths("entity_vocab.tsv"), *entities.paths("entity_vocab.jsonl")]
    return EntityVocab.from_file(files[0])


def _build(
    file: ArticleFile,
    folder: Path,
    targets: Path,
    tokenizer: PieceTokenizer,
    settings: ShardSettings,
    sentences: _Pipeline,
    unk: int,
) -> dict[str, int]:
    counts: Counter[str] = Counter()
    file.verify()
    ids = _ids(file, targets, folder)
    limits = SequenceLimits(settings.max_pieces, settings.max_entities)
    cut = partial(_sentence_starts, file.language, sentences)
    with (
        TRAIN.writer(folder) as train,
        HELD_OUT.writer(folder) as held_out,
    ):
        for row in read_articles(file.path):
            link_ids = np.asarray([ids.get(x, unk) for x in row["link_targets"]], dtype=np.int64)
            starts, ends = (
                np.asarray(row[x], dtype=np.int64) for x in ("link_starts", "link_ends")
            )
            article = lay_out(row["text"], starts, ends, tokenizer, cut, settings.max_mention)
            is_held_out = _is_held_out(file.language, row["title"], settings)
            table, side = (held_out, "held out") if is_held_out else (train, "train")
            for start, end in cut_sequences(article, limits):
                table.add(_row(row, article, link_ids, start, end))
                counts[f"sequences, {side}"] += 1
            counts.update(article.dropped)
            counts["links outside the vocabulary"] += int((link_ids[article.links] == unk).sum())
            counts[f"articles, {side}"] += 1
            counts[f"pieces, {side}"] += len(article.ids)
            counts[f"entities, {side}"] += len(article.links)
    return dict(counts)


def _row(
    row: Mapping[str, Any], article: Article, link_ids: np.ndarray, start: int, end: int
) -> tuple:
    a, b = np.searchsorted(article.starts, [start, end])
    links = article.links[a:b]
    return (
        row["page_id"],
        article.ids[start:end],
        np.flatnonzero(article.word_starts[start:end]),
        link_ids[links],
        article.starts[a:b] - start,
        article.ends[a:b] - start,
        [row["link_anchors"][i] for i in links.tolist()],
    )


def _ids(file: ArticleFile, targets: Path, folder: Path) -> dict[str, int]:
    """Title -> id, of the vocabulary's titles that the articles link to."""
    failure = f"The links of {file} cannot be looked up"
    with database(folder, failure) as db:
        rows = db.execute(
            f"SELECT title, id {FROM_PARQUET} t SEMI JOIN (SELECT DISTINCT unnest("
            f"link_targets) AS title {FROM_PARQUET}) USING (title) WHERE language = ?",
            [literal(targets), literal(file.path), file.language],
        ).fetchall()
    return dict(rows)


def _is_held_out(language: str, title: str, settings: ShardSettings) -> bool:
    drawn = hashlib.blake2b(f"{settings.seed}\t{language}\t{title}".encode(), digest_size=8)
    return int.from_bytes(drawn.digest(), "big") < settings.held_out * 2**64


def _sentence_starts(language: str, pipeline: _Pipeline, texts: Sequence[str]) -> list[list[int]]:
    if pipeline.name == RULES:
        return [sentence_starts(text, language) for text in texts]
    nlp = _sentence_pipe(language, pipeline)
    docs = list(nlp.pipe(texts))
    try:
        return [[sent.start_char for sent in doc.sents] for doc in docs]
    except ValueError as error:
        raise ConfigError(f"--sentences {pipeline.name}: it sets no sentence starts.") from error


def _tell_missing_tokenizers(languages: Sequence[str]) -> None:
    missing = [x for x in dict.fromkeys(languages) if blank_language(x).lang != x]
    if missing:
        LOGGER.warning(
            "spaCy cannot tokenize %s: the sentencizer uses the tokenizer of 'xx', which may not "
            "separate the marks at which sentences end. --sentences %s does not need one.",
            ", ".join(missing),
            RULES,
        )


def blank_language(language: str) -> Language:
    """The language's tokenizer. If spaCy lacks it or its package is missing, that of any language:
    the sentencizer only needs punctuation as tokens."""
    try:
        return spacy.blank(language)
    except ImportError:
        return spacy.blank("xx")


def _pipeline(name: str) -> _Pipeline:
    """Raises ConfigError if the pipeline does not exist."""
    if name in (RULES, SENTENCIZER):
        return _Pipeline(name, name, "")
    try:
        is_installed = is_package(name)
        folder = get_package_path(name) if is_installed else Path(name).absolute()
    except ImportError as error:
        raise ConfigError(f"--sentences {name}: {error}") from error
    if not folder.is_dir():
        raise ConfigError(f"--sentences {name}: there is no such pipeline.")
    digest = hashlib.sha256()
    walk = os.walk(folder, followlinks=True)
    for path in sorted(Path(x, y) for x, _, files in walk for y in files if y[-4:] != ".pyc"):
        digest.update(f"{path.relative_to(folder).as_posix()} {sha256_of(path)}\n".encode())
    return _Pipeline(name, name if is_installed else str(folder), digest.hexdigest())


@lru_cache(maxsize=4)
def _sentence_pipe(language: str, pipeline: _Pipeline) -> Language:
    """Raises ConfigError if the pipeline cannot be loaded."""
    try:
        if pipeline.name == SENTENCIZER:
            nlp = blank_language(language)
            nlp.add_pipe("sentencizer")
        else:
            nlp = spacy.load(pipeline.location)
    except (OSError, ImportError) as error:
        raise ConfigError(f"--sentences {pipeline.name} ({language}): {error}") from error
    nlp.max_length = 1 << 31  # a paragraph may be as long as an article
    return nlp
