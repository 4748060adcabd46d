"""Settings of the readers of annotated files."""

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import ConfigError
from .brackets import TABLES
from .offset_units import CHARACTERS, UTF16

AUTO = "auto"
SEPARATORS = (AUTO, "tab", "space")
SCHEMES = ("IOB1", "IOB2", "BILOU", "IOBES")
SCHEME_ALIASES = {"BIO": "IOB2", "BILUO": "BILOU", "BIOES": "IOBES"}
ALIGNMENTS = ("strict", "contract", "expand", "split")
BRACKETS = tuple(TABLES)
OFFSETS = (AUTO, CHARACTERS, UTF16)


@dataclass(frozen=True)
class ConvertOptions:
    """Settings of all formats; ``formats`` lists which format uses which.

    n_sents: sentences per document.
    documents: keep documents that begin with ``-DOCSTART-`` whole, instead of ``n_sents``.
    scheme: ``auto``, or one of ``SCHEMES`` or ``SCHEME_ALIASES`` in any case.
    separator: ``auto``, ``tab`` or ``space``.
    word_column, tag_column: column numbers from 0; negative numbers count from the last column.
    alignment: for a character span that cuts a token. ``strict`` leaves the span out, ``contract``
        and ``expand`` move its ends to token boundaries inside or outside it, ``split`` splits the
        token. ``auto`` is the format's default.
    spans_key: the key of ``Doc.spans`` for all spans, overlapping ones included.
    brackets: for ``-LRB-``, ``-LSB-``, ``-LCB-`` and their right counterparts. ``plain`` replaces
        them by round, square and curly brackets, ``round`` by round ones, ``keep`` keeps them.
        ``auto`` is the format's default.
    types: the entity types to keep; empty means all.
    ne_columns: names of the columns of HIPE whose entities are read.
    offsets: what offsets count: ``characters``, or ``utf16`` (units of UTF-16, as JavaScript does).
        ``auto`` is the format's default.
    fields: names of columns or keys that the user's file has for the format's own, as
        ``(("text", "Sentence"),)``.
    encoding: of a text file with columns. ``auto`` is UTF-8, or UTF-16 after its byte order mark.
    ignore_spacing: join all words by spaces, though the format has the spaces between them; spaCy's
        corpus reader then keeps the words as tokens.

    Raises ConfigError, with the setting, for an invalid value.
    """

    n_sents: int = 1
    documents: bool = False
    scheme: str = AUTO
    separator: str = AUTO
    word_column: int = 0
    tag_column: int = -1
    alignment: str = AUTO
    spans_key: str = "luke_ner"
    brackets: str = AUTO
    types: tuple[str, ...] = ()
    ne_columns: tuple[str, ...] = ("NE-COARSE-LIT",)
    offsets: str = AUTO
    fields: tuple[tuple[str, str], ...] = ()
    encoding: str = AUTO
    ignore_spacing: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "scheme", _canonical_scheme(self.scheme))
        _require_choice("separator", self.separator, SEPARATORS)
        _require_choice("alignment", self.alignment, (AUTO, *ALIGNMENTS))
        _require_choice("brackets", self.brackets, (AUTO, *BRACKETS))
        _require_choice("offsets", self.offsets, OFFSETS)
        if self.n_sents < 1:
            raise ConfigError(f"n_sents is {self.n_sents}; give 1 or more sentences per document.")
        if self.documents and self.n_sents != 1:
            raise ConfigError(
                f"documents and n_sents={self.n_sents} contradict each other: use one of them."
            )
        if not self.ne_columns:
            raise ConfigError("ne_columns is empty; name at least one column, as NE-COARSE-LIT.")
        if not self.spans_key:
            raise ConfigError("spans_key is empty; give the key of Doc.spans to write.")

    def alignment_or(self, default: str) -> str:
        """The setting ``alignment``; ``default`` if it is ``auto``."""
        return default if self.alignment == AUTO else self.alignment

    def brackets_or(self, default: str) -> str:
        """The setting ``brackets``; ``default`` if it is ``auto``."""
        return default if self.brackets == AUTO else self.brackets

    def field(self, name: str) -> str:
        """The name in the file of one of the format's columns or keys; empty if not given."""
        return dict(self.fields).get(name, "")

    def check_fields(self, names: Iterable[str]) -> None:
        """Raise ConfigError if ``fields`` has a name that the format does not use."""
        names = tuple(names)
        for name, _ in self.fields:
            _require_choice("fields", name, names)

    def changed(self) -> dict[str, Any]:
        """The settings that differ from their defaults, by name."""
        return {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if getattr(self, field.name) != field.default
        }

    def refuse(self, settings: Sequence[str], why: str) -> None:
        """Raise ConfigError if one of these settings was changed."""
        ignored = sorted(self.changed().keys() & set(settings))
        if ignored:
            raise ConfigError(f"{why}, for which there is no setting {', '.join(ignored)}.")


def _canonical_scheme(scheme: str) -> str:
    if scheme.lower() == AUTO:
        return AUTO
    name = scheme.upper()
    name = SCHEME_ALIASES.get(name, name)
    _require_choice("scheme", name, (AUTO, *SCHEMES), shown=scheme)
    return name


def _require_choice(setting: str, value: str, choices: tuple, shown: str = "") -> None:
    if value not in choices:
        raise ConfigError(f"{setting} is {shown or value!r}; choose one of {', '.join(choices)}.")
