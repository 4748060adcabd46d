"""Documents made of a file's own words, and spans by the numbers of those words."""

from collections.abc import Iterable, Sequence
from itertools import accumulate

from spacy.language import Language
from spacy.tokens import Doc, Span

from ..errors import CorpusError
from .report import Report


class WordDoc:
    """A document of given words, and the place of every word's edge among its tokens.

    The spaces between the words are not known: the text joins them by single spaces, and
    spaCy's corpus reader keeps the words instead of tokenising that text. A word without any
    character cannot be a token; it is left out and counted, and ends of spans beside it move
    with it.
    """

    def __init__(
        self,
        nlp: Language,
        words: Sequence[str],
        report: Report,
        where: str,
        sentences: Iterable[int] | None = None,
    ) -> None:
        """sentences: the numbers of the words that begin one; None where that is not known.

        Raises CorpusError for a document without words.
        """
        self.n_words = len(words)
        self._edges = list(accumulate((bool(word) for word in words), initial=0))
        self._report = report
        self._where = where
        kept = [word for word in words if word]
        if not kept:
            raise CorpusError("the record has no words.")
        if len(kept) < len(words):
            report.count("empty words left out", where, len(words) - len(kept))
        starts: list[bool | int | None] | None = None
        if sentences is not None:
            firsts = {self._edges[i] for i in sentences}
            starts = [i in firsts for i in range(len(kept))]
        self.doc = Doc(nlp.vocab, words=kept, sent_starts=starts)

    def span(
        self, start: int, end: int, label: str, owner: str, kb_id: str = "", span_id: str = ""
    ) -> Span | None:
        """The span of words [start, end), or None, counted, where they are all empty.

        Raises CorpusError, naming the owner, for words that are not there.
        """
        if not 0 <= start < end <= self.n_words:
            raise CorpusError(
                f"{owner} goes from word {start} to {end}, in a record of {self.n_words} words."
            )
        first, last = self._edges[start], self._edges[end]
        if first == last:
            self._report.count("spans left out: their words are empty", self._where)
            return None
        return Span(self.doc, first, last, label=label, kb_id=kb_id, span_id=span_id)
