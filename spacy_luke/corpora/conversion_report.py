"""Counts of what a reader converted, skipped and repaired in one file."""

from collections import Counter
from collections import Counter as CounterType
from collections.abc import Iterable
from dataclasses import dataclass, field

from spacy.tokens import Doc, Span

from ..kb.entity import NIL


@dataclass
class Event:
    """How often something was skipped or repaired, and the location of the first time."""

    count: int
    first: str


@dataclass
class Report:
    """Counts of one converted file.

    sentences: 0 if the format has none.
    scheme: of column files, else empty.
    labels, relations, types: spans per label, relations per label, spans per type.
    links: spans with an id of a knowledge base. nil: spans known to mean none of its entities.
    typed_spans: spans with known types, including those known to have none.
    questions, unanswerable, answers: questions, those known to have no answer, and gold answers.
    events: description of what was skipped or repaired -> its count.
    notes: further sentences for the user.
    """

    documents: int = 0
    sentences: int = 0
    tokens: int = 0
    docstart_lines: int = 0
    scheme: str = ""
    labels: CounterType[str] = field(default_factory=Counter)
    relations: CounterType[str] = field(default_factory=Counter)
    types: CounterType[str] = field(default_factory=Counter)
    links: int = 0
    nil: int = 0
    typed_spans: int = 0
    questions: int = 0
    unanswerable: int = 0
    answers: int = 0
    events: dict[str, Event] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add_doc(self, doc: Doc, spans: Iterable[Span], sentences: int = 0) -> None:
        """Count a document, its annotated spans and its sentences, if the format has them."""
        self.documents += 1
        self.tokens += len(doc)
        self.sentences += sentences
        for span in spans:
            self.labels[span.label_] += 1
            self.nil += span.kb_id_ == NIL
            self.links += span.kb_id_ not in ("", NIL)

    def count(self, what: str, location: str, times: int = 1) -> None:
        """Count something skipped or repaired; only the first ``location`` is kept."""
        if what in self.events:
            self.events[what].count += times
        else:
            self.events[what] = Event(times, location)
