"""Mentions of articles in documents, found by the texts that link to the articles."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from spacy.tokens import Doc, Span
from spacy.util import registry

from ..errors import ConfigError
from ..validation import Count, Probability, check_settings
from .link_table import LinkTable
from .whole_words import normalize_words, occurrences

MAX_TOKENS = 30


class LinkedMentions:
    """Finds mentions with a link table, which is opened when it is first needed.

    path: folder of ``spacy luke link-table``. It is not read if a saved table is loaded.
    min_probability: minimum link probability of a mention, above that of the table.
    max_tokens: maximum tokens of a mention.
    """

    def __init__(self, path: Path, min_probability: float = 0.0, max_tokens: int = MAX_TOKENS):
        self.path, self.min_probability, self.max_tokens = Path(path), min_probability, max_tokens
        self._table: LinkTable | None = None
        self._folder = self.path.absolute()  # the current directory may change until it is needed

    @property
    def table(self) -> LinkTable:
        """Raises ConfigError if the folder does not exist, and KnowledgeBaseError if it is damaged
        or not a link table."""
        if self._table is None:
            if not self._folder.is_dir():
                raise ConfigError(
                    f"linked_mentions.path is {str(self.path)!r}, which is not a folder. Make it "
                    "with 'spacy luke link-table'."
                )
            self._table = LinkTable.open(self._folder)
        return self._table

    def find(self, docs: Sequence[Doc]) -> list[list[Span]]:
        """The mentions of each document in text order, without overlap. ``kb_id_`` is the title;
        the label is empty.

        From left to right, the longest text of the table that starts at a token is a mention.
        Texts are compared in lower case, with one space for any white space. A mention starts and
        ends both at a token and at a word (``whole_words.words``): if the tokenizer of a language
        without spaces joins a text with what surrounds it, it is not found.
        """
        table = self.table
        return [self._find(doc, table) for doc in docs]

    def _find(self, doc: Doc, table: LinkTable) -> list[Span]:
        text, starts, ends = _laid_out(doc)
        longest: dict[int, tuple[int, int]] = {}  # start token -> end token, row
        for start, end, row in occurrences(table.texts, text):
            if start in starts and end in ends:
                first, last = starts[start], ends[end]
                is_probable = table.probabilities[row] >= self.min_probability
                if last - first <= self.max_tokens and is_probable:
                    longest[first] = last, row  # ends ascend
        spans, at = [], 0
        for first, (last, row) in longest.items():  # starts ascend
            if first >= at:
                spans.append(Span(doc, first, last, kb_id=table.title(row)))
                at = last
        return spans

    def to_disk(self, path: Path | str, *, exclude: Iterable[str] = ()) -> None:
        self.table.save(Path(path))

    def from_disk(self, path: Path | str, *, exclude: Iterable[str] = ()) -> "LinkedMentions":
        self._table = LinkTable.open(Path(path))
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        return self.table.to_bytes()

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> "LinkedMentions":
        self._table = LinkTable.from_bytes(data)
        return self


def _laid_out(doc: Doc) -> tuple[str, dict[int, int], dict[int, int]]:
    """The normalised text of a document; character at which a token starts -> the token; character
    at which it ends -> the next token."""
    parts: list[str] = []
    starts: dict[int, int] = {}
    ends: dict[int, int] = {}
    at, spaced = 0, True
    for token in doc:
        text = normalize_words(token.text)
        if text:
            starts[at] = token.i
            at += len(text)
            ends[at] = token.i + 1
            parts.append(text)
            spaced = False
        if not spaced and (token.whitespace_ or not text):
            parts.append(" ")
            at, spaced = at + 1, True
    return "".join(parts), starts, ends


@registry.misc("spacy-luke.linked_mentions.v1")
def build_linked_mentions(
    path: Path, min_probability: Probability = 0.0, max_tokens: Count = MAX_TOKENS
) -> LinkedMentions:
    """A source of entities: mentions found with a link table (settings: ``LinkedMentions``)."""
    values = {"min_probability": min_probability, "max_tokens": max_tokens}
    check_settings("linked_mentions", build_linked_mentions, values)
    return LinkedMentions(path, min_probability, max_tokens)
