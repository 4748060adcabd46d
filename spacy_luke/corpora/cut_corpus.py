"""spaCy's corpus reader, extended to keep relations, types and spans groups of cut documents."""

from collections import Counter
from collections.abc import Iterable, Iterator
from copy import copy
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Corpus, Example
from spacy.vocab import Vocab

from ..report import LOGGER
from .parts import cut

_COUNTED = (
    "relations",
    "entities",
    "types",
    "spans",
    "questions",
    "categories",
    "sentences",
    "documents",
)


class CutCorpus(Corpus):
    """``spacy.Corpus`` that keeps all annotation within a sentence if ``max_length`` or
    ``gold_preproc`` cut a document into sentences. (spaCy drops user data and spans groups.)
    Annotation lost by cuts is counted, and logged once at the end of the first pass."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._reported = False
        self._lost: Counter[str] = Counter()

    def __call__(self, nlp: Language) -> Iterator[Example]:
        one_pass = copy(self)  # each pass has its own counts
        one_pass._lost = Counter()
        yield from Corpus.__call__(one_pass, nlp)
        if any(one_pass._lost.values()) and not self._reported:
            self._reported = True
            LOGGER.warning(
                "max_length and gold_preproc cut documents into sentences. Annotation across "
                "sentences is lost: %d relations, %d entities, types of %d places, %d spans of "
                "groups, queries or questions about whole documents: %d, and the categories "
                "(Doc.cats; textcat learns from their parts that none is true) of %d documents. "
                "Left out: %d sentences of max_length words or more, and %d documents of that "
                "length without sentence starts.",
                *(one_pass._lost[what] for what in _COUNTED),
            )

    def read_docbin(self, vocab: Vocab, locs: Iterable[Any]) -> Iterator[Doc]:
        for doc in super().read_docbin(vocab, locs):
            too_long = 0 < self.max_length <= len(doc)
            if not doc.has_annotation("SENT_START"):
                if too_long and not self.gold_preproc:
                    self._lost["documents"] += 1
                else:
                    yield doc
            elif self.gold_preproc or too_long:
                yield from self._parts(doc)
            else:
                yield doc

    def _parts(self, doc: Doc) -> Iterator[Doc]:
        parts, lost = cut(doc, [sent.start for sent in doc.sents])
        self._lost.update(lost)
        for part in parts:
            # With gold_preproc spaCy does not limit the length of sentences.
            if self.gold_preproc or len(part) < self.max_length:
                yield part
            else:
                self._lost["sentences"] += 1

    def make_examples_gold_preproc(
        self, nlp: Language, reference_docs: Iterable[Doc]
    ) -> Iterator[Example]:
        for reference in reference_docs:  # already cut by read_docbin
            example = self._make_example(nlp, reference, True)
            if len(example.x):
                yield example
