"""Spans by characters, put on the tokens of a document."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple

from spacy.language import Language
from spacy.tokens import Doc, Span

from ..errors import CorpusError
from .report import Report


@dataclass(frozen=True)
class CharSpan:
    """An annotated span: character offsets (end exclusive), label and ids.

    types: None where nothing is said about them. They are no part of what the span is.
    """

    start: int
    end: int
    label: str
    kb_id: str = ""
    span_id: str = ""
    types: tuple[str, ...] | None = field(default=None, compare=False)


class Placed(NamedTuple):
    """A document, the spans that found a place in it, and the tokens under those that did not."""

    doc: Doc
    spans: dict[CharSpan, Span]
    unknown: set[int]


def check_offsets(owner: str, start: int, end: int, text: str) -> None:
    """Raise CorpusError for a span that is empty, inverted or not inside the text."""
    if not 0 <= start < end <= len(text):
        raise CorpusError(
            f"{owner} goes from {start} to {end}, in a text of {len(text)} characters."
        )


def make_text_doc(nlp: Language, text: str) -> Doc:
    """The tokenised text. Raises CorpusError for a tokenizer that changes it."""
    doc = nlp.make_doc(text)
    if doc.text != text:
        raise CorpusError(
            f"the tokenizer of {nlp.lang!r} changes the text, so character offsets would shift."
        )
    return doc


def place_spans(
    doc: Doc, items: Sequence[CharSpan], alignment: str, report: Report, where: str
) -> Placed:
    """Put spans on tokens and count what was moved, split or left out.

    alignment: ``strict`` leaves out a span that cuts a token, ``contract`` and ``expand`` move
    its ends to token boundaries, ``split`` splits the token, for which the document is made
    anew, and takes white space off the span's ends.
    """
    wanted = {item: item for item in items}
    repeats = len(items) - len(wanted)
    if repeats:
        report.count("repeated spans taken once", where, repeats)
    if alignment == "split":
        wanted = {item: _trim(doc.text, item) for item in items}
        moved = sum(item != trimmed for item, trimmed in wanted.items())
        if moved:
            report.count("spans with white space taken off their ends", where, moved)
        doc, n_split = split_tokens(
            doc, {edge for item in wanted.values() for edge in (item.start, item.end)}
        )
        if n_split:
            report.count("tokens split where a span begins or ends inside", where, n_split)
    spans: dict[CharSpan, Span] = {}
    unknown: set[int] = set()
    for item, target in wanted.items():
        span = _char_span(doc, target, alignment, report, where)
        if span is None:
            report.count(f"spans left out: they cut a token (alignment {alignment})", where)
            unknown.update(_touched(doc, item))
        else:
            spans[item] = span
    return Placed(doc, spans, unknown)


def split_tokens(doc: Doc, cuts: Iterable[int]) -> tuple[Doc, int]:
    """A document in which a token begins at every cut, and how many tokens were split for it.

    cuts: character offsets; those between tokens change nothing. The text stays the same, any
    annotation is lost.
    """
    text = doc.text
    words: list[str] = []
    spaces: list[bool] = []
    n_split = 0
    cuts = sorted(set(cuts))
    for token in doc:
        end = token.idx + len(token)
        inside = [cut for cut in cuts if token.idx < cut < end]
        words.extend(text[a:b] for a, b in pairwise([token.idx, *inside, end]))
        spaces.extend([False] * len(inside))
        spaces.append(bool(token.whitespace_))
        n_split += bool(inside)
    return (Doc(doc.vocab, words=words, spaces=spaces) if n_split else doc), n_split


def _trim(text: str, item: CharSpan) -> CharSpan:
    """The span without white space at its ends; the span itself where nothing else is in it."""
    inner = text[item.start : item.end]
    start = item.start + len(inner) - len(inner.lstrip())
    end = item.end - len(inner) + len(inner.rstrip())
    return replace(item, start=start, end=end) if start < end else item


def _char_span(doc: Doc, item: CharSpan, alignment: str, report: Report, where: str) -> Span | None:
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
                report.count(f"spans moved to token boundaries ({alignment})", where)
            return span
    return None


def _touched(doc: Doc, item: CharSpan) -> Iterable[int]:
    return (t.i for t in doc if t.idx < item.end and item.start < t.idx + len(t))
