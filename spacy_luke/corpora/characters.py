"""Align character spans with the tokens of a document."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple

from spacy.language import Language
from spacy.tokens import Doc, Span

from ..errors import CorpusError
from ..kb.whole_words import UNSPACED_LANGUAGES
from .conversion_report import Report

_OF_LANGUAGES = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]")
"""Letters of Thai, Japanese and Chinese, for which spaCy has tokenizers."""
LANGUAGE_REMEDY = "--lang with the language of the text cuts it into tokens as that is written"


@dataclass(frozen=True)
class CharSpan:
    """An annotated span: character offsets (end exclusive), label and ids.

    types: None if unknown. They do not take part in comparisons.
    """

    start: int
    end: int
    label: str
    kb_id: str = ""
    span_id: str = ""
    types: tuple[str, ...] | None = field(default=None, compare=False)


class AlignedSpans(NamedTuple):
    """A document, its aligned spans, and the tokens that the other spans overlap."""

    doc: Doc
    spans: dict[CharSpan, Span]
    unknown: set[int]


def check_offsets(owner: str, start: int, end: int, text: str) -> None:
    """Raise CorpusError if a span is empty, inverted or not inside the text."""
    if not 0 <= start < end <= len(text):
        raise CorpusError(
            f"{owner} goes from {start} to {end}, in a text of {len(text)} characters."
        )


def tokenise(nlp: Language, text: str) -> Doc:
    """The tokens of a text of any length."""
    nlp.max_length = max(nlp.max_length, len(text) + 1)
    return nlp.make_doc(text)


def make_text_doc(nlp: Language, text: str) -> Doc:
    """Tokenise a text of any length. Raises CorpusError if the tokenizer changes it."""
    doc = tokenise(nlp, text)
    if doc.text != text:
        raise CorpusError(
            f"the tokenizer of {nlp.lang!r} changes the text, so character offsets would shift."
        )
    return doc


def align_spans(
    doc: Doc, items: Sequence[CharSpan], alignment: str, report: Report, location: str
) -> AlignedSpans:
    """Align spans with tokens and count those that were moved, split a token or were left out.

    White space is first taken off the ends of spans.

    alignment: ``strict`` leaves out a span that cuts a token. ``contract`` and ``expand`` move
        its ends to token boundaries. ``split`` splits the token, which needs a new document.
    """
    text = doc.text  # spaCy joins the tokens at every access
    trimmed = {item: _trim(text, item) for item in items}
    if len(trimmed) < len(items):
        report.count("repeated spans taken once", location, len(items) - len(trimmed))
    n_trimmed = sum(item != inner for item, inner in trimmed.items())
    if n_trimmed:
        report.count("spans with white space taken off their ends", location, n_trimmed)
    if alignment == "split":
        doc, n_split = split_tokens(
            doc, {edge for item in trimmed.values() for edge in (item.start, item.end)}
        )
        if n_split:
            report.count("tokens split where a span begins or ends inside", location, n_split)
    spans: dict[CharSpan, Span] = {}
    unknown: set[int] = set()
    for item, inner in trimmed.items():
        span = _char_span(doc, inner, alignment, report, location)
        if span is None:
            _count_left_out(doc, inner, alignment, report, location)
            unknown.update(overlapping_tokens(doc, item))
        else:
            spans[item] = span
    return AlignedSpans(doc, spans, unknown)


def needs_language(doc: Doc, start: int, end: int) -> bool:
    """Whether some of a span is in a script for which another language has a tokenizer."""
    is_known = doc.vocab.lang in UNSPACED_LANGUAGES
    return not is_known and _OF_LANGUAGES.search(doc.text, start, end) is not None


def _count_left_out(
    doc: Doc, item: CharSpan, alignment: str, report: Report, location: str
) -> None:
    """Count a span that cuts a token; with the first one under ``strict``, note the remedy."""
    what = f"spans left out: they cut a token (alignment {alignment})"
    if alignment == "strict" and what not in report.events:
        remedy = (
            "--alignment expand moves them to token boundaries, --alignment split splits the token"
        )
        if needs_language(doc, item.start, item.end):
            remedy = f"{LANGUAGE_REMEDY}; {remedy}"
        report.notes.append(f"spans that cut a token were left out: {remedy}")
    report.count(what, location)


def split_tokens(doc: Doc, cuts: Iterable[int]) -> tuple[Doc, int]:
    """Split tokens so that one begins at every cut. Returns the document and how many were split.

    cuts: character offsets; those between tokens have no effect. The text stays the same. If a
        token was split, annotation is lost.

    Example: "Paris-based" as one token with cuts {0, 5} becomes "Paris", "-based".
    """
    text = doc.text
    words: list[str] = []
    spaces: list[bool] = []
    n_split = 0
    cuts = sorted(set(cuts))
    for token in doc:
        end = token.idx + len(token)
        inside = cuts[bisect_right(cuts, token.idx) : bisect_left(cuts, end)]
        words.extend(text[a:b] for a, b in pairwise([token.idx, *inside, end]))
        spaces.extend([False] * len(inside))
        spaces.append(bool(token.whitespace_))
        n_split += bool(inside)
    return (Doc(doc.vocab, words=words, spaces=spaces) if n_split else doc), n_split


def _trim(text: str, item: CharSpan) -> CharSpan:
    """Remove white space from the span's ends, unless the span contains nothing else."""
    inner = text[item.start : item.end]
    start = item.start + len(inner) - len(inner.lstrip())
    end = item.end - len(inner) + len(inner.rstrip())
    return replace(item, start=start, end=end) if start < end else item


def _char_span(
    doc: Doc, item: CharSpan, alignment: str, report: Report, location: str
) -> Span | None:
    modes = ["strict", alignment] if alignment in ("contract", "expand") else ["strict"]
    for mode in modes:
        span = doc.char_span(
            item.start,
            item.end,
            label=item.label,
            kb_id=item.kb_id,
            span_id=item.span_id,
            alignment_mode=mode,
        )
        if span is not None and len(span):
            if mode != "strict":
                report.count(f"spans moved to token boundaries ({alignment})", location)
            return span
    return None


def overlapping_tokens(doc: Doc, item: CharSpan) -> Iterable[int]:
    """The indices of the tokens that have a character of the span."""
    return (t.i for t in doc if t.idx < item.end and item.start < t.idx + len(t))
