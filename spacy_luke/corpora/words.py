"""Documents of given words, and spans by word numbers."""

from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise

from spacy.language import Language
from spacy.tokens import Doc, Span

from ..errors import CorpusError
from ..kb.whole_words import UNSPACED_LANGUAGES, is_unspaced
from .characters import tokenise
from .conversion_report import Report


def spaces_between(nlp: Language, words: Sequence[str], report: Report) -> list[bool] | None:
    """Whether a space follows each of the words of a file that does not say so; None if unknown.

    In languages without spaces between words there is one only between words of other scripts, such
    as ``New York`` and ``Mr. Smith``, and not if both are single characters, as where a file has
    one in each line.
    """
    if nlp.lang not in UNSPACED_LANGUAGES:
        return None
    note = (
        f"words are joined without spaces, as {nlp.lang} is written (--lang xx joins them by "
        "spaces, and readers keep them as tokens)"
    )
    if note not in report.notes:
        report.notes.append(note)
    return [*(_is_apart(*pair) for pair in pairwise(words)), False]


def _is_apart(word: str, following: str) -> bool:
    if word[-1] in ".,;:!?":
        word = word[:-1]  # nothing is left of a mark alone, as in "3 . 14" and "x . com"
    are_letters = all(x.isalnum() and not is_unspaced(x) for x in (word[-1:], following[0]))
    return are_letters and len(word) + len(following) > 2


def count_cut(tokens: Doc, spans: Iterable[Span], report: Report, location: str) -> None:
    """Count spans that begin or end inside a token of the tokenizer, with which readers cut a text
    whose spaces are known. tokens: of the tokenizer, for the text of the spans' document."""
    n_cut = sum(tokens.char_span(x.start_char, x.end_char) is None for x in spans)
    if n_cut:
        report.count(
            f"entities that begin or end inside a token of the {tokens.vocab.lang!r} tokenizer, "
            "which spaCy's corpus reader uses: set its gold_preproc, or convert with --lang xx "
            "(hipe: --ignore-spacing)",
            location,
            n_cut,
        )


class WordDoc:
    """A document of given words, and the mapping from words to its tokens.

    If the spaces between words are unknown, the text joins the words by single spaces (spaCy's
    corpus reader keeps such words instead of tokenising the text), but see
    :func:`spaces_between`. An empty word cannot be a token:
    it is left out and counted, and the ends of spans are adjusted.
    """

    def __init__(
        self,
        nlp: Language,
        words: Sequence[str],
        report: Report,
        location: str,
        sentences: Iterable[int] | None = None,
        spaces: Sequence[bool] | None = None,
        keep_words: bool = False,
    ) -> None:
        """sentences: the first word of each sentence; None if unknown. spaces: whether a space
        follows each word; None if the file does not say so. keep_words: spaces stay unknown, in
        any language.

        Raises CorpusError if there are no words.
        """
        self.n_words = len(words)
        # Words ["a", "", "b"] have the edges [0, 1, 1, 2]: words [0, 3) are tokens [0, 2).
        self._edges = list(accumulate((bool(word) for word in words), initial=0))
        self._report = report
        self._where = location
        kept = [word for word in words if word]
        if not kept:
            raise CorpusError("the record has no words.")
        if len(kept) < len(words):
            report.count("empty words left out", location, len(words) - len(kept))
        starts: list[bool | int | None] | None = None
        if sentences is not None:
            firsts = {self._edges[i] for i in sentences}
            starts = [i in firsts for i in range(len(kept))]
        if spaces is not None:
            spaces = [space for word, space in zip(words, spaces) if word]
        elif not keep_words:
            spaces = spaces_between(nlp, kept, report)
        self.doc = Doc(nlp.vocab, words=kept, spaces=spaces, sent_starts=starts)
        self._tokens = None if spaces is None else tokenise(nlp, self.doc.text)

    def span(
        self, start: int, end: int, label: str, owner: str, kb_id: str = "", span_id: str = ""
    ) -> Span | None:
        """The span of words [start, end); None, and counted, if all of them are empty. One that the
        tokenizer cuts is counted, too.

        Raises CorpusError, with the owner, if the range is invalid.
        """
        if not 0 <= start < end <= self.n_words:
            raise CorpusError(
                f"{owner} goes from word {start} to {end}, but the record has {self.n_words} words."
            )
        first, last = self._edges[start], self._edges[end]
        if first == last:
            self._report.count("spans left out: their words are empty", self._where)
            return None
        span = Span(self.doc, first, last, label=label, kb_id=kb_id, span_id=span_id)
        if self._tokens is not None:
            count_cut(self._tokens, [span], self._report, self._where)
        return span
