"""The NER data sets: column files to ``.spacy`` files, once a work folder."""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path

import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Corpus, Example
from spacy.util import registry

from spacy_luke.annotations.relations import set_relations
from spacy_luke.annotations.types import clear_types
from spacy_luke.corpora.columns import read_columns
from spacy_luke.corpora.conversion_report import Report
from spacy_luke.corpora.options import ConvertOptions

SPANS_KEY = "sc"
READER = "spacy-luke.benchmarks.SentencesCorpus.v1"
GIVEN_READER = "spacy-luke.benchmarks.GivenCorpus.v1"


@dataclass(frozen=True)
class DataSet:
    """train, dev, test: files below the data folder. epochs: passes over the training data."""

    train: str
    dev: str
    test: str
    epochs: int


DATA_SETS = {
    "wnut17": DataSet(
        "wnut17/wnut17train.conll",
        "wnut17/emerging.dev.conll",
        "wnut17/emerging.test.annotated",
        epochs=3,
    ),
    "politics": DataSet(
        "crossner/politics/train.txt",
        "crossner/politics/dev.txt",
        "crossner/politics/test.txt",
        epochs=25,
    ),
    "ai": DataSet(
        "crossner/ai/train.txt",
        "crossner/ai/dev.txt",
        "crossner/ai/test.txt",
        epochs=50,
    ),
    "literature": DataSet(
        "crossner/literature/train.txt",
        "crossner/literature/dev.txt",
        "crossner/literature/test.txt",
        epochs=50,
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


def prepare(name: str, folder: Path, work: Path, n_sents: int = 1, limit: int = 0) -> Corpora:
    """Convert a data set. n_sents: sentences a document. limit: documents kept of each file,
    0 for all. The entities are also written as a spans group, for span categorisers."""
    source = DATA_SETS[name]
    target = work / "corpora" / f"{name}.n{n_sents}.limit{limit}"
    target.mkdir(parents=True, exist_ok=True)
    paths = {part: target / f"{part}.spacy" for part in ("train", "dev", "test")}
    for part, path in paths.items():
        if not path.exists():
            store(path, islice(read(folder / getattr(source, part), n_sents), limit or None))
    return Corpora(**paths, n_train=len(load(paths["train"])))


def read(path: Path, n_sents: int = 1) -> Iterator[Doc]:
    """Documents of a column file, with their entities also under ``SPANS_KEY``."""
    options = ConvertOptions(n_sents=n_sents)
    for doc in read_columns(path, _blank(), options, Report()):
        doc.spans[SPANS_KEY] = list(doc.ents)
        yield doc


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
