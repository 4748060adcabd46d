"""spaCy's corpus, whose parts of documents keep relations, types and spans groups."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Corpus, Example
from spacy.vocab import Vocab

from ..annotations.relations import relation_offsets
from ..report import LOGGER


class CutCorpus(Corpus):
    """``spacy.Corpus``, but where ``max_length`` or ``gold_preproc`` cut a document into its
    sentences, these keep the relations, types and grouped spans that lie within them: spaCy leaves
    user data and groups behind. What the cuts lose is logged once, when the first pass ends."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._reported = False

    def __call__(self, nlp: Language) -> Iterator[Example]:
        self._lost: Counter[str] = Counter()
        yield from super().__call__(nlp)
        if any(self._lost.values()) and not self._reported:
            self._reported = True
            LOGGER.warning(
                "max_length and gold_preproc cut documents into sentences: %d gold relations and "
                "%d spans of groups reach beyond one and are lost; %d sentences of max_length "
                "words or more are left out, and %d documents as long without sentence starts.",
                *(self._lost[what] for what in ("relations", "spans", "sentences", "documents")),
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
        n_relations, n_spans = len(relation_offsets(doc)), sum(map(len, doc.spans.values()))
        for sent in doc.sents:
            part = sent.as_doc(copy_user_data=True)
            for key, group in doc.spans.items():
                part.spans[key] = [
                    _moved(span, part, sent.start)
                    for span in group
                    if sent.start <= span.start and span.end <= sent.end
                ]
            n_relations -= len(relation_offsets(part))
            n_spans -= sum(map(len, part.spans.values()))
            # With gold_preproc spaCy knows no longest sentence.
            if self.gold_preproc or len(part) < self.max_length:
                yield part
            else:
                self._lost["sentences"] += 1
        self._lost.update(relations=n_relations, spans=n_spans)

    def make_examples_gold_preproc(
        self, nlp: Language, reference_docs: Iterable[Doc]
    ) -> Iterator[Example]:
        for reference in reference_docs:  # are cut already
            example = self._make_example(nlp, reference, True)
            if len(example.x):
                yield example


def _moved(span: Span, doc: Doc, by: int) -> Span:
    """A span in a part of its document that begins at the word ``by``."""
    start, end = span.start - by, span.end - by
    return Span(doc, start, end, label=span.label, kb_id=span.kb_id, span_id=span.id)
