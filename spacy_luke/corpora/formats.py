"""The table of file formats that ``spacy luke convert`` reads.

It also reads the articles of pretraining, which are files of a floor above this one.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from spacy.language import Language
from spacy.tokens import Doc

from ..errors import ConfigError, CorpusError
from .brat import read_brat
from .columns import read_columns
from .conversion_report import Report
from .doccano import is_doccano, read_doccano
from .docred import read_docred
from .elevant import is_elevant, read_elevant
from .hipe import read_hipe
from .jsonl import is_jsonl, read_jsonl
from .label_studio import read_label_studio
from .label_studio_tasks import is_label_studio
from .lines import Advance
from .objects import read_json_values
from .options import ConvertOptions
from .prodigy_links import is_prodigy_links, read_prodigy_links
from .pubtator import read_pubtator
from .record import read_record
from .semeval import read_semeval
from .spacy_tuples import is_spacy_tuples, read_spacy_tuples
from .spert import read_conll04
from .squad import is_squad, read_squad
from .tables import read_tables
from .tacred import read_tacred
from .typed_mentions import read_figer, read_openentity, read_ufet


class Reader(Protocol):
    """Yields the documents of one file and fills the report meanwhile."""

    def __call__(
        self, path: Path, nlp: Language, options: ConvertOptions, report: Report, advance: Advance
    ) -> Iterator[Doc]: ...


Looks = Callable[[Any], bool]


def has(*keys: str) -> Looks:
    """A test of whether a JSON value is an object with these keys."""
    return lambda value: isinstance(value, dict) and all(key in value for key in keys)


@dataclass(frozen=True)
class CorpusFormat:
    """A format's name, its reader, and the settings and file suffixes that it supports.

    folder: its input is a folder as a whole, not a file.
    looks: whether a JSON value looks like its first record; for messages about other formats.
    """

    name: str
    reader: Reader
    options: frozenset[str]
    suffixes: frozenset[str]
    aliases: tuple[str, ...] = ()
    folder: bool = False
    looks: Looks | None = None

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
ANY_JSON = JSON | JSON_LINES
# Settings of formats with spans by characters, and by words.
CHARACTERS = frozenset({"alignment", "spans_key"})
WORDS = frozenset({"spans_key"})
BRACKETS = frozenset({"brackets"})
TYPES = frozenset({"types"})
OFFSETS = frozenset({"offsets"})

FORMATS: tuple[CorpusFormat, ...] = (
    CorpusFormat(
        "columns",
        read_columns,
        frozenset({"n_sents", "documents", "scheme", "separator", "word_column", "tag_column"}),
        COLUMN_SUFFIXES,
        aliases=("conll", "iob"),
    ),
    CorpusFormat("jsonl", read_jsonl, CHARACTERS, ANY_JSON, aliases=("prodigy",), looks=is_jsonl),
    CorpusFormat("prodigy-links", read_prodigy_links, CHARACTERS, ANY_JSON, looks=is_prodigy_links),
    CorpusFormat("elevant", read_elevant, CHARACTERS, JSON_LINES, looks=is_elevant),
    CorpusFormat("doccano", read_doccano, CHARACTERS | OFFSETS, ANY_JSON, looks=is_doccano),
    CorpusFormat(
        "label-studio",
        read_label_studio,
        CHARACTERS | OFFSETS | {"fields"},
        ANY_JSON,
        looks=is_label_studio,
    ),
    CorpusFormat(
        "spacy-tuples",
        read_spacy_tuples,
        CHARACTERS | OFFSETS,
        ANY_JSON,
        aliases=("tuples",),
        looks=is_spacy_tuples,
    ),
    CorpusFormat(
        "csv",
        read_tables,
        CHARACTERS | OFFSETS | {"fields", "encoding", "n_sents", "scheme"},
        frozenset({".csv", ".tsv"}),
        aliases=("tsv",),
    ),
    CorpusFormat("brat", read_brat, CHARACTERS, frozenset(), aliases=("standoff",), folder=True),
    CorpusFormat("pubtator", read_pubtator, CHARACTERS, frozenset({".txt", ".pubtator"})),
    CorpusFormat("hipe", read_hipe, WORDS | {"ne_columns", "ignore_spacing"}, frozenset({".tsv"})),
    CorpusFormat("semeval", read_semeval, CHARACTERS, frozenset({".txt"})),
    CorpusFormat(
        "tacred", read_tacred, WORDS | BRACKETS, JSON, looks=has("token", "subj_start", "obj_start")
    ),
    CorpusFormat("docred", read_docred, WORDS, JSON, looks=has("sents", "vertexSet")),
    CorpusFormat(
        "conll04",
        read_conll04,
        WORDS,
        JSON,
        aliases=("spert",),
        looks=has("tokens", "entities", "relations"),
    ),
    CorpusFormat(
        "ufet",
        read_ufet,
        WORDS | BRACKETS | TYPES,
        JSON | JSON_LINES,
        looks=has("left_context_token", "mention_span"),
    ),
    CorpusFormat(
        "openentity",
        read_openentity,
        CHARACTERS | BRACKETS | TYPES,
        JSON,
        looks=has("sent", "start", "end", "labels"),
    ),
    CorpusFormat("figer", read_figer, WORDS | TYPES, ANY_JSON, looks=has("tokens", "mentions")),
    CorpusFormat("squad", read_squad, frozenset(), JSON, looks=is_squad),
    CorpusFormat(
        "record", read_record, CHARACTERS | OFFSETS, ANY_JSON, looks=has("passage", "qas")
    ),
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


def looks_like(path: Path, formats: Sequence[CorpusFormat] = FORMATS) -> str:
    """The name of the format whose keys the first JSON value of a file has; empty if none, or if
    the file does not begin with JSON."""
    try:
        _, value = next(read_json_values(path))
    except (CorpusError, StopIteration):
        return ""
    return next((x.name for x in formats if x.looks is not None and x.looks(value)), "")
