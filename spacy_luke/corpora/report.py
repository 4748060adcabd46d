"""What a reader took from one file, and all that it skipped or repaired."""

from collections import Counter
from collections import Counter as CounterType
from collections.abc import Iterable
from dataclasses import dataclass, field

from spacy.tokens import Doc, Span


@dataclass
class Event:
    """Something skipped or repaired: how many times, and where it first happened."""

    count: int
    first: str


@dataclass
class Report:
    """Counts of one converted file.

    sentences stays 0 where the format knows no sentences. scheme is empty where the format has
    none. labels counts the annotated spans of each label, relations the relations of each label,
    types how many spans have a type; typed_spans counts the spans whose types are known, be it
    that they have none. events maps a description of what was skipped or repaired to its count.
    notes are sentences for the reader of the report.
    """

    documents: int = 0
    sentences: int = 0
    tokens: int = 0
    marked_documents: int = 0
    scheme: str = ""
    labels: CounterType[str] = field(default_factory=Counter)
    relations: CounterType[str] = field(default_factory=Counter)
    types: CounterType[str] = field(default_factory=Counter)
    typed_spans: int = 0
    events: dict[str, Event] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add_doc(self, doc: Doc, spans: Iterable[Span], sentences: int = 0) -> None:
        """Count a finished document, its annotated spans and its known sentences."""
        self.documents += 1
        self.tokens += len(doc)
        self.sentences += sentences
        self.labels.update(span.label_ for span in spans)

    def count(self, what: str, where: str, times: int = 1) -> None:
        """Count something skipped or repaired; ``where`` is kept for the first time only."""
        if what in self.events:
            self.events[what].count += times
        else:
            self.events[what] = Event(times, where)
