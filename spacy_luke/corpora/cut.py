"""spaCy's corpus, whose parts of documents keep relations, types and spans groups."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Corpus, Example
from spacy.vocab import Vocab

from ..annotations.relations import relation_offsets
from ..annotations.types import ATTRIBUTE as TYPES
from ..report import LOGGER

_COUNTED = ("relations", "entities", "types", "spans", "sentences", "documents")


class CutCorpus(Corpus):
    """``spacy.Corpus``, but where ``max_length`` or ``gold_preproc`` cut a document into its
    sentences, these keep the relations, types and grouped spans that lie within them: spaCy leaves
    user data and groups behind. What the cuts lose is logged once, when the first pass ends."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._reported = False
        self._lost: Counter[str] = Counter()

    def __call__(self, nlp: Language) -> Iterator[Example]:
        one = copy(self)  # each pass counts for itself
        one._lost = Counter()
        yield from Corpus.__call__(one, nlp)
        if any(one._lost.values()) and not self._reported:
            self._reported = True
            LOGGER.warning(
                "max_length and gold_preproc cut documents into sentences. What reaches beyond one "
                "is lost: %d relations, %d entities, types of %d places, %d spans of groups. Left "
                "out: %d sentences of max_length words or more, and %d documents as long without "
                "sentence starts.",
                *(one._lost[what] for what in _COUNTED),
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
        sents = list(doc.sents)
        data = self._user_data(doc, sents)
        n_relations, n_ents = len(relation_offsets(doc)), len(doc.ents)
        n_spans = sum(map(len, doc.spans.values()))
        for sent, own in zip(sents, data):
            part = sent.as_doc()
            part.user_data.update(own)
            for key, group in doc.spans.items():
                part.spans[key] = [
                    _moved(span, part, sent.start)
                    for span in group
                    if sent.start <= span.start and span.end <= sent.end
                ]
            n_relations -= len(relation_offsets(part))
            n_ents -= len(part.ents)
            n_spans -= sum(map(len, part.spans.values()))
            # With gold_preproc spaCy knows no longest sentence.
            if self.gold_preproc or len(part) < self.max_length:
                yield part
            else:
                self._lost["sentences"] += 1
        self._lost.update(relations=n_relations, entities=n_ents, spans=n_spans)

    def _user_data(self, doc: Doc, sents: Sequence[Span]) -> list[dict[Any, Any]]:
        """What is said about the document, for each sentence; about a span, for that which holds
        it. (``Span.as_doc`` would give all to all.)"""
        found: list[dict[Any, Any]] = [{} for _ in sents]
        data: dict[Any, Any] = doc.user_data
        starts = [sent.start_char for sent in sents]
        for key, value in data.items():
            name, start, end = key[1:] if _of_span(key) else ("", None, None)
            if start is None:
                for own in found:
                    own[key] = value
                continue
            i = max(bisect_right(starts, start) - 1, 0)
            at = sents[i].start_char
            if start >= at and (end is None or end <= sents[i].end_char):
                found[i]["._.", name, start - at, None if end is None else end - at] = value
            elif name == TYPES:
                self._lost["types"] += 1
        return found

    def make_examples_gold_preproc(
        self, nlp: Language, reference_docs: Iterable[Doc]
    ) -> Iterator[Example]:
        for reference in reference_docs:  # are cut already
            example = self._make_example(nlp, reference, True)
            if len(example.x):
                yield example


def _of_span(key: Any) -> bool:
    return isinstance(key, tuple) and len(key) == 4 and key[0] == "._."


def _moved(span: Span, doc: Doc, by: int) -> Span:
    """A span in a part of its document that begins at the word ``by``."""
    start, end = span.start - by, span.end - by
    return Span(doc, start, end, label=span.label, kb_id=span.kb_id, span_id=span.id)
