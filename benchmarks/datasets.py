"""The NER data sets: column files to ``.spacy`` files, once a work folder."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import spacy
from spacy.language import Language
from spacy.pipeline import Sentencizer
from spacy.tokens import Doc, DocBin
from spacy.training import Corpus, Example
from spacy.util import registry

from spacy_luke.annotations.relations import set_relations
from spacy_luke.annotations.types import clear_types
from spacy_luke.corpora.conversion_report import Report
from spacy_luke.corpora.formats import get_format
from spacy_luke.corpora.lines import ignore_progress
from spacy_luke.corpora.options import ConvertOptions
from spacy_luke.errors import ConfigError

SPANS_KEY = "sc"
READER = "spacy-luke.benchmarks.SentencesCorpus.v1"
GIVEN_READER = "spacy-luke.benchmarks.GivenCorpus.v1"


class Part(NamedTuple):
    """A file below the data folder; of its sentences those from share ``low`` to share ``high``, or
    those of the documents whose number modulo ``of`` is in ``kept`` (where a file is ordered by
    source)."""

    file: str
    low: float = 0.0
    high: float = 1.0
    kept: tuple[int, ...] = (0,)
    of: int = 1


@dataclass(frozen=True)
class DataSet:
    """epochs: passes over the training data. format: of ``spacy luke convert``. options: its."""

    train: Part
    dev: Part
    test: Part
    epochs: int
    format: str = "columns"
    options: dict[str, Any] = field(default_factory=dict)


def _crossner(name: str, epochs: int) -> DataSet:
    train, dev, test = (Part(f"crossner/{name}/{x}.txt") for x in ("train", "dev", "test"))
    return DataSet(train, dev, test, epochs)


_BC5CDR = "bc5cdr/CDR_DevelopmentSet.PubTator.txt"
_FEW_NERD = "few-nerd/dev.txt"
_GERMEVAL = "germeval2014/NER-de-dev.tsv"
_HIPE = "hipe2022-ccby/HIPE-2022-v2.1-ajmc-{}-de.tsv"
_BIORED = "biored/Train.PubTator"
_REDOCRED = "redocred/dev_revised.json"
_NCBI = "disease-linking/NCBItrainset_corpus.txt"

# Of sets with fewer than three parts at hand one part is divided.
DATA_SETS = {
    "wnut17": DataSet(
        Part("wnut17/wnut17train.conll"),
        Part("wnut17/emerging.dev.conll"),
        Part("wnut17/emerging.test.annotated"),
        epochs=3,
    ),
    "politics": _crossner("politics", epochs=25),
    "ai": _crossner("ai", epochs=50),
    "literature": _crossner("literature", epochs=50),
    "bc5cdr": DataSet(
        Part("bc5cdr/CDR_TrainingSet.PubTator.txt"),
        Part(_BC5CDR, 0, 1 / 3),
        Part(_BC5CDR, 1 / 3),
        epochs=4,
        format="pubtator",
    ),
    "few-nerd": DataSet(
        Part(_FEW_NERD, 0, 0.84), Part(_FEW_NERD, 0.84, 0.9), Part(_FEW_NERD, 0.9), epochs=2
    ),
    "germeval": DataSet(
        Part(_GERMEVAL, 0, 0.6),
        Part(_GERMEVAL, 0.6, 0.7),
        Part(_GERMEVAL, 0.7),
        epochs=12,
        options={"word_column": 1, "tag_column": 2},
    ),
    "hipe-de": DataSet(
        Part(_HIPE.format("train")),
        Part(_HIPE.format("dev"), 0, 1 / 3),
        Part(_HIPE.format("dev"), 1 / 3),
        epochs=20,
        format="hipe",
        options={"ignore_spacing": True},
    ),
    "biored": DataSet(
        Part(_BIORED, kept=(0, 1, 2), of=4),
        Part(_BIORED, kept=(3,), of=4),
        Part("biored/Dev.PubTator"),
        epochs=4,
        format="pubtator",
    ),
    "ncbi": DataSet(
        Part(_NCBI, kept=(0,), of=5),
        Part(_NCBI, kept=(1, 2), of=5),
        Part(_NCBI, kept=(3, 4), of=5),
        epochs=4,
        format="pubtator",
    ),
    "redocred": DataSet(
        Part(_REDOCRED, 0, 0.4),
        Part(_REDOCRED, 0.4, 0.7),
        Part(_REDOCRED, 0.7),
        epochs=8,
        format="docred",
    ),
}


def default_folder() -> Path:
    """``$SPACY_LUKE_DATA``, or ``shared/data`` beside the repository."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    return Path(os.environ.get("SPACY_LUKE_DATA") or beside)


@dataclass(frozen=True)
class Corpora:
    """``.spacy`` files of one data set. n_train: its training documents."""

    train: Path
    dev: Path
    test: Path
    n_train: int

    def docs(self, part: str) -> list[Doc]:
        """Gold documents of ``train``, ``dev`` or ``test``."""
        return load(getattr(self, part))


def prepare(
    name: str, folder: Path, work: Path, n_sents: int = 1, limit: int = 0, train_limit: int = 0
) -> Corpora:
    """Convert a data set. n_sents: sentences a document. limit: documents kept of each file,
    0 for all; train_limit: of the training data. The entities are also written as a spans group,
    for span categorisers."""
    source = DATA_SETS[name]
    if not folder.is_dir():
        raise ConfigError(
            f"{folder} is not a folder. Public corpora are not part of the project: set "
            "SPACY_LUKE_DATA, or --data, to a folder that contains them (docs/corpora.md)."
        )
    target = work / "corpora" / f"{name}.n{n_sents}.limit{limit}.train{train_limit}"
    target.mkdir(parents=True, exist_ok=True)
    paths = {part: target / f"{part}.spacy" for part in ("train", "dev", "test")}
    for part, path in paths.items():
        if not path.exists():
            most = (train_limit if part == "train" else 0) or limit
            store(path, islice(_part_of(source, part, folder, n_sents), most or None))
    return Corpora(**paths, n_train=len(load(paths["train"])))


def _part_of(source: DataSet, name: str, folder: Path, n_sents: int) -> Sequence[Doc]:
    part: Part = getattr(source, name)
    docs = [sent for doc in _read(source, part, folder, n_sents) for sent in doc]
    return docs[round(part.low * len(docs)) : round(part.high * len(docs))]


def documents(name: str, part_name: str, folder: Path) -> list[list[Doc]]:
    """The documents of ``train``, ``dev`` or ``test``, each as its sentences. Those of ``columns``
    are sentences. Where a part is a share of a file, no document is divided: parts differ a little
    from those of :func:`prepare`."""
    source = DATA_SETS[name]
    part: Part = getattr(source, part_name)
    docs = list(_read(source, part, folder, n_sents=1))
    return docs[round(part.low * len(docs)) : round(part.high * len(docs))]


def _read(source: DataSet, part: Part, folder: Path, n_sents: int) -> Iterator[list[Doc]]:
    chosen = (part.kept, part.of)
    return _documents(folder / part.file, n_sents, source.format, chosen, **source.options)


def read(path: Path, n_sents: int = 1, format: str = "columns", **options: Any) -> Iterator[Doc]:
    """Sentences of a file, with their entities also under ``SPANS_KEY``, and ``n_sents`` to a
    document where the format is ``columns``. They are by spaCy's rules unless the file has them."""
    return chain.from_iterable(_documents(path, n_sents, format, **options))


def _documents(
    path: Path,
    n_sents: int,
    format: str,
    chosen: tuple[tuple[int, ...], int] = ((0,), 1),
    **options: Any,
) -> Iterator[list[Doc]]:
    """See :func:`read`. chosen: ``kept`` and ``of`` of :class:`Part`."""
    given = ConvertOptions(n_sents=n_sents, **options)
    kept, of = chosen
    docs = get_format(format).reader(path, _blank(), given, Report(), ignore_progress)
    for doc in (doc for i, doc in enumerate(docs) if i % of in kept):
        sentences = [doc] if format == "columns" else list(_sentences(doc))
        for sentence in sentences:
            sentence.spans[SPANS_KEY] = list(sentence.ents)
        yield sentences


def _sentences(doc: Doc) -> Iterator[Doc]:
    if not doc.has_annotation("SENT_START", require_complete=True):
        doc = Sentencizer()(doc)
    # A sentence does not end inside an entity.
    for ent in doc.ents:
        for token in ent[1:]:
            token.is_sent_start = False
    for sent in doc.sents:
        yield sent.as_doc()


def store(path: Path, docs: Iterable[Doc]) -> None:
    """Write documents with their relations and types."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Several processes may convert at once: each writes a file of its own and moves it.
    partial = path.with_suffix(f".{os.getpid()}")
    DocBin(docs=docs, store_user_data=True).to_disk(partial)
    partial.replace(path)


@cache
def _blank() -> Language:
    return spacy.blank("en")


def load(path: Path) -> list[Doc]:
    return list(DocBin().from_disk(path).get_docs(_blank().vocab))


def bare(nlp: Language, doc: Doc) -> Doc:
    """The words and sentence starts of a document, without its annotation."""
    starts: list[bool | int | None] = [token.is_sent_start for token in doc]
    return Doc(nlp.vocab, words=[token.text for token in doc], sent_starts=starts)


@registry.readers(READER)
def sentences_corpus(path: Path, limit: int = 0) -> Callable[[Language], Iterable[Example]]:
    """A corpus whose predicted documents have the gold sentence starts: needed where documents
    hold several sentences, because spaCy's own corpus leaves the starts out."""
    corpus = Corpus(path, limit=limit)

    def examples(nlp: Language) -> Iterator[Example]:
        for example in corpus(nlp):
            yield Example(bare(nlp, example.reference), example.reference)

    return examples


def unanswered(doc: Doc) -> Doc:
    """A copy with its tokens and entities, and without the relations and types to be found."""
    copy = doc.copy()
    set_relations(copy, ())
    clear_types(copy)
    return copy


@registry.readers(GIVEN_READER)
def given_corpus(path: Path, limit: int = 0) -> Callable[[Language], Iterable[Example]]:
    """A corpus whose predicted documents have the gold tokens, sentence starts, entities and
    spans: spaCy's own would tokenise them anew, and not split a token where a nominal ends."""

    def examples(nlp: Language) -> Iterator[Example]:
        docs = DocBin().from_disk(path).get_docs(nlp.vocab)
        for doc in islice(docs, limit or None):
            yield Example(unanswered(doc), doc)

    return examples
