"""The table of file formats that ``spacy luke convert`` reads.

It also reads the articles of pretraining, which are files of a floor above this one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from spacy.language import Language
from spacy.tokens import Doc

from ..errors import ConfigError
from .columns import read_columns
from .conversion_report import Report
from .docred import read_docred
from .elevant import read_elevant
from .hipe import read_hipe
from .jsonl import read_jsonl
from .lines import Advance
from .options import ConvertOptions
from .prodigy_links import read_prodigy_links
from .pubtator import read_pubtator
from .record import read_record
from .semeval import read_semeval
from .spert import read_conll04
from .squad import read_squad
from .tacred import read_tacred
from .typed_mentions import read_figer, read_openentity, read_ufet


class Reader(Protocol):
    """Yields the documents of one file and fills the report meanwhile."""

    def __call__(
        self, path: Path, nlp: Language, options: ConvertOptions, report: Report, advance: Advance
    ) -> Iterator[Doc]: ...


@dataclass(frozen=True)
class CorpusFormat:
    """A format's name, its reader, and the settings and file suffixes that it supports.

    folder: its input is a folder as a whole, not a file.
    """

    name: str
    reader: Reader
    options: frozenset[str]
    suffixes: frozenset[str]
    aliases: tuple[str, ...] = ()
    folder: bool = False

    def check(self, options: ConvertOptions) -> None:
        """Raise ConfigError if a setting was changed that this format ignores."""
        ignored = sorted(set(options.changed()) - self.options)
        if ignored:
            raise ConfigError(
                f"format {self.name!r} does not take the setting {', '.join(ignored)}; "
                f"it takes {', '.join(sorted(self.options)) or 'none'}."
            )


COLUMN_SUFFIXES = frozenset(
    {".conll", ".tsv", ".txt", ".annotated", ".iob", ".iob1", ".iob2", ".bio"}
    | {".bilou", ".biluo", ".iobes", ".bioes"}
)
JSON = frozenset({".json"})
JSON_LINES = frozenset({".jsonl", ".ndjson"})
# Settings of formats with spans by characters, and by words.
CHARACTERS = frozenset({"alignment", "spans_key"})
WORDS = frozenset({"spans_key"})
BRACKETS = frozenset({"brackets"})
TYPES = frozenset({"types"})

FORMATS: tuple[CorpusFormat, ...] = (
    CorpusFormat(
        "columns",
        read_columns,
        frozenset({"n_sents", "documents", "scheme", "separator", "word_column", "tag_column"}),
        COLUMN_SUFFIXES,
        aliases=("conll", "iob"),
    ),
    CorpusFormat("jsonl", read_jsonl, CHARACTERS, JSON_LINES),
    CorpusFormat("prodigy-links", read_prodigy_links, CHARACTERS, JSON_LINES),
    CorpusFormat("elevant", read_elevant, CHARACTERS, JSON_LINES),
    CorpusFormat("pubtator", read_pubtator, CHARACTERS, frozenset({".txt", ".pubtator"})),
    CorpusFormat("hipe", read_hipe, WORDS | {"ne_columns", "ignore_spacing"}, frozenset({".tsv"})),
    CorpusFormat("semeval", read_semeval, CHARACTERS, frozenset({".txt"})),
    CorpusFormat("tacred", read_tacred, WORDS | BRACKETS, JSON),
    CorpusFormat("docred", read_docred, WORDS, JSON),
    CorpusFormat("conll04", read_conll04, WORDS, JSON, aliases=("spert",)),
    CorpusFormat("ufet", read_ufet, WORDS | BRACKETS | TYPES, JSON | JSON_LINES),
    CorpusFormat("openentity", read_openentity, CHARACTERS | BRACKETS | TYPES, JSON),
    CorpusFormat("figer", read_figer, WORDS | TYPES, JSON | JSON_LINES),
    CorpusFormat("squad", read_squad, frozenset(), JSON),
    CorpusFormat("record", read_record, CHARACTERS, JSON | JSON_LINES),
)


def get_format(name: str, formats: Sequence[CorpusFormat] = FORMATS) -> CorpusFormat:
    """Look up a format by name or alias. Raises ConfigError, with all names, if unknown."""
    for candidate in formats:
        if name.lower() in (candidate.name, *candidate.aliases):
            return candidate
    names = ", ".join(format_names(formats))
    raise ConfigError(f"format {name!r} is unknown; choose one of {names}.")


def format_names(formats: Sequence[CorpusFormat] = FORMATS) -> tuple[str, ...]:
    """The names of the formats, each followed by its aliases, if any, in brackets."""
    return tuple(
        f"{item.name} ({', '.join(item.aliases)})" if item.aliases else item.name
        for item in formats
    )
