"""The text of a document as one string in which names are looked up, aligned with its tokens."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from spacy.tokens import Doc

from ..kb.normalize import fold_name, normalize_tokens

_CACHED_TOKENS = 8
"""Longer runs of tokens without white space (of scripts that write none) are rarely repeated."""

_WITH_SPACE = frozenset("、。｡､，；：！？（）［］「」『』《》〈〉【】〔〕｢｣")
"""Punctuation of East Asian scripts, which write no white space beside it."""

Form = tuple[str, Sequence[tuple[int, int]]]
"""Of a run of tokens without white space between them: the text, and the characters of each token
in it."""


@dataclass
class Stream:
    """text: runs of tokens, with one space between them. starts: (character, token) of the tokens
    of which something is in the text. ends: character -> the token that ends there.

    dropped: the tokens, except white space, of which nothing is in the text. marks: those of them
    that are punctuation with white space beside it, or as wide, in ascending order.
    """

    text: str = ""
    starts: list[tuple[int, int]] = field(default_factory=list)
    ends: dict[int, int] = field(default_factory=dict)
    dropped: set[int] = field(default_factory=set)
    marks: list[int] = field(default_factory=list)


def written(doc: Doc) -> Stream:
    """The text as it is written; white space of any kind and length is one space."""
    return _stream(doc, _as_written)


def normalised(doc: Doc, lang: str) -> Stream:
    """The text in the normalised form of names (``normalize_name``)."""
    return _stream(doc, partial(_as_normalised, lang))


def _stream(doc: Doc, form_of: Callable[[tuple[str, ...]], Form]) -> Stream:
    stream, parts, length = Stream(), list[str](), 0
    for first, texts in _runs(doc):
        form, places = form_of(texts)
        offset = length + 1 if form and parts else length
        for i, (start, end) in enumerate(places):
            if end > start:
                stream.starts.append((offset + start, first + i))
                stream.ends[offset + end] = first + i
            else:
                stream.dropped.add(first + i)
                if _is_mark(texts, i):
                    stream.marks.append(first + i)
        if form:
            parts.append(form)
            length = offset + len(form)
    stream.text = " ".join(parts)
    return stream


def _runs(doc: Doc) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The first token and the texts of each run of tokens without white space between them."""
    texts: list[str] = []
    for i, token in enumerate(doc):
        if not token.is_space:
            texts.append(token.text)
        if texts and (token.is_space or token.whitespace_):
            yield i + (not token.is_space) - len(texts), tuple(texts)
            texts = []
    if texts:
        yield len(doc) - len(texts), tuple(texts)


def _is_mark(texts: Sequence[str], i: int) -> bool:
    """Whether a token of which nothing is left is punctuation at an edge of its run, or has its own
    space; an apostrophe may be a possessive."""
    at_edge = i in (0, len(texts) - 1) or not _WITH_SPACE.isdisjoint(texts[i])
    return at_edge and not any(x.isalnum() or x == "'" for x in fold_name(texts[i]))


def _as_written(texts: tuple[str, ...]) -> Form:
    places, parts, length = [], [], 0
    for text in texts:
        parts.append(" ".join(text.split()))
        places.append((length, length + len(parts[-1])))
        length += len(parts[-1])
    return "".join(parts), places


def _as_normalised(lang: str, texts: tuple[str, ...]) -> Form:
    if len(texts) > _CACHED_TOKENS:
        return normalize_tokens.__wrapped__(texts, lang)
    return normalize_tokens(texts, lang)
