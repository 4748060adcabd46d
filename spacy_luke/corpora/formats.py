"""The table of file formats that ``spacy luke convert`` reads."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from spacy.language import Language
from spacy.tokens import Doc

from ..errors import ConfigError
from .columns import read_columns
from .docred import read_docred
from .jsonl import read_jsonl
from .lines import Advance
from .options import ConvertOptions
from .report import Report
from .semeval import read_semeval
from .spert import read_conll04
from .tacred import read_tacred
from .typed_mentions import read_figer, read_openentity, read_ufet


class Reader(Protocol):
    """A reader yields the documents of one file and fills the report as they are taken."""

    def __call__(
        self, path: Path, nlp: Language, options: ConvertOptions, report: Report, advance: Advance
    ) -> Iterator[Doc]: ...


@dataclass(frozen=True)
class Format:
    """A format's name, its reader, the settings it takes and the file suffixes it has."""

    name: str
    reader: Reader
    options: frozenset[str]
    suffixes: frozenset[str]
    aliases: tuple[str, ...] = ()

    def check(self, options: ConvertOptions) -> None:
        """Raise ConfigError for a setting that this format would leave unread."""
        unread = sorted(set(options.changed()) - self.options)
        if unread:
            raise ConfigError(
                f"format {self.name!r} does not take the setting {', '.join(unread)}; "
                f"it takes {', '.join(sorted(self.options))}."
            )


COLUMN_SUFFIXES = frozenset(
    {".conll", ".tsv", ".txt", ".annotated", ".iob", ".iob1", ".iob2", ".bio"}
    | {".bilou", ".biluo", ".iobes", ".bioes"}
)
JSON = frozenset({".json"})
JSON_LINES = frozenset({".jsonl", ".ndjson"})
# What formats of spans take: by characters, and by the words of the file.
CHARACTERS = frozenset({"alignment", "spans_key"})
WORDS = frozenset({"spans_key"})
BRACKETS = frozenset({"brackets"})
TYPES = frozenset({"types"})

FORMATS: tuple[Format, ...] = (
    Format(
        "columns",
        read_columns,
        frozenset({"n_sents", "documents", "scheme", "separator", "word_column", "tag_column"}),
        COLUMN_SUFFIXES,
        aliases=("conll", "iob"),
    ),
    Format("jsonl", read_jsonl, CHARACTERS, JSON_LINES),
    Format("semeval", read_semeval, CHARACTERS, frozenset({".txt"})),
    Format("tacred", read_tacred, WORDS | BRACKETS, JSON),
    Format("docred", read_docred, WORDS, JSON),
    Format("conll04", read_conll04, WORDS, JSON, aliases=("spert",)),
    Format("ufet", read_ufet, WORDS | BRACKETS | TYPES, JSON | JSON_LINES),
    Format("openentity", read_openentity, CHARACTERS | BRACKETS | TYPES, JSON),
    Format("figer", read_figer, WORDS | TYPES, JSON | JSON_LINES),
)


def get_format(name: str) -> Format:
    """The format of a name or an alias. Raises ConfigError naming the formats there are."""
    for candidate in FORMATS:
        if name.lower() in (candidate.name, *candidate.aliases):
            return candidate
    raise ConfigError(f"format {name!r} is not known; choose one of {', '.join(format_names())}.")


def format_names() -> tuple[str, ...]:
    """The names of the formats, each followed by its aliases in brackets where it has some."""
    return tuple(
        f"{item.name} ({', '.join(item.aliases)})" if item.aliases else item.name
        for item in FORMATS
    )
