"""Pictures of relations: one per range of sentences, with arcs over its words."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from spacy.tokens import Doc, Span

from ...annotations.group_spans import row_of, rows_of
from .arcs import Arc, Cell, Word, draw
from .relations import MARKS, ShownRelation, links
from .text import Place

MAX_WORDS = 30
"""Maximum words shown completely. In longer ranges, words far from relations are omitted."""
CONTEXT = 3
"""Words kept on each side of a mention in a long range."""
MAX_ARCS = 12
"""Arcs of a picture. In a range with more, only relations within sentences have arcs, and none in
sentences with more."""
MAX_WORD, MAX_LABEL = 40, 30
"""Characters of a word and its label, and of the label of an arc. Longer ones are cut; the whole
label of an arc is then on a line below the picture."""
_WORDS = {"agreed": "annotated alike", "spurious": "only predicted", "missed": "only annotated"}


class Line(NamedTuple):
    """A relation without an arc, because its mentions share words or there are too many arcs, or
    whose label is too long for one. end: the last character of both mentions, exclusive. counts:
    False if an arc counts it, too."""

    kind: str
    head: str
    label: str
    tail: str
    end: int
    counts: bool = True


class Picture(NamedTuple):
    """A range of sentences with arcs. text: the same in words. end: the character at which the
    range ends. n_errors: arcs that are spurious or missed."""

    cells: list[Cell]
    text: str
    end: int
    n_errors: int


class Drawn(NamedTuple):
    """The relations of a document."""

    pictures: list[Picture]
    lines: list[Line]

    @property
    def n_errors(self) -> int:
        wrong = sum(line.counts and line.kind in MARKS for line in self.lines)
        return wrong + sum(picture.n_errors for picture in self.pictures)


class _Placed(NamedTuple):
    """A relation with the tokens of its mentions."""

    relation: ShownRelation
    head: Place
    tail: Place


def draw_relations(
    doc: Doc, reference: Doc, compare: bool, scores: bool = True, **settings: Any
) -> Drawn:
    """Pictures of the predicted and gold relations of a document.

    A picture shows a sentence, or several sentences that relations connect. If sentences are not
    set, it shows the words around relations.

    compare: whether relations are annotated. scores: whether they are shown. settings: passed to
    :func:`.links`.
    """
    shown = links(doc, reference, compare, **settings)
    if not scores:
        shown = [relation._replace(score=None) for relation in shown]
    text = doc.text  # spaCy joins the tokens at every access
    placed, rest = _place(doc, text, shown)
    divided, crowded = _divide(doc, placed)
    long = [row.relation for _, rows in divided for row in rows if _is_long(row.relation)]
    rest += [row.relation for row in crowded]
    # A missed relation may be outside the predicted text.
    texts = {"missed": reference.text}
    lines = [_line(x, texts.get(x.kind, text), counts=True) for x in rest]
    lines += [_line(x, texts.get(x.kind, text), counts=False) for x in long]
    pictures = _pictures(doc, divided, _labels(doc, reference, text))
    return Drawn(list(pictures), sorted(lines, key=lambda line: line.end))


def _place(
    doc: Doc, text: str, shown: Iterable[ShownRelation]
) -> tuple[list[_Placed], list[ShownRelation]]:
    """Relations between different words, and the others."""
    aligned = [(x, _tokens(doc, text, x.head), _tokens(doc, text, x.tail)) for x in shown]
    merged = _merge(side for _, *sides in aligned for side in sides if side is not None)
    word_of = {i: number for number, tokens in enumerate(merged) for i in range(*tokens)}
    placed, rest = [], []
    for relation, head, tail in aligned:
        if head and tail and word_of[head[0]] != word_of[tail[0]]:
            placed.append(_Placed(relation, head, tail))
        else:
            rest.append(relation)
    return placed, rest


def _divide(
    doc: Doc, placed: Sequence[_Placed]
) -> tuple[list[tuple[Place, list[_Placed]]], list[_Placed]]:
    """Ranges with their relations, and relations that would crowd them."""
    divided, crowded = [], []
    for place, rows in _by_range(doc, placed):
        if len(rows) <= MAX_ARCS:
            divided.append((place, rows))
            continue
        inside = [row for row in rows if _in_a_sentence(doc, row)]
        crowded += [row for row in rows if not _in_a_sentence(doc, row)]
        for sentence, of_it in _by_range(doc, inside):
            if len(of_it) <= MAX_ARCS:
                divided.append((sentence, of_it))
            else:
                crowded += of_it
    return divided, crowded


def _by_range(doc: Doc, placed: Sequence[_Placed]) -> Iterable[tuple[Place, list[_Placed]]]:
    ranges = sentence_ranges(doc, [(head, tail) for _, head, tail in placed])
    by_range: dict[Place, list[_Placed]] = {place: [] for place in ranges}
    starts = [start for start, _ in ranges]
    for row in placed:
        by_range[ranges[bisect_right(starts, row.head[0]) - 1]].append(row)
    return by_range.items()


def _in_a_sentence(doc: Doc, row: _Placed) -> bool:
    if not doc.has_annotation("SENT_START"):
        return False
    start, end = min(row.head[0], row.tail[0]), max(row.head[1], row.tail[1])
    return doc[start].sent.end >= end


def _pictures(
    doc: Doc, divided: Iterable[tuple[Place, list[_Placed]]], labels: dict[Place, str]
) -> Iterator[Picture]:
    ents = sorted(doc.ents, key=lambda ent: ent.start)
    first = [ent.start for ent in ents]
    for (start, end), rows in divided:
        sides = [side for _, head, tail in rows for side in (head, tail)]
        inside = ents[bisect_left(first, start) : bisect_left(first, end)]
        whole = [ent for ent in inside if ent.end <= end]
        words = shorten(make_words(doc, start, end, sides, labels, whole))
        last = doc[end - 1]
        yield Picture(
            draw(words, make_arcs(words, rows)),
            "; ".join(_described(doc, row) for row in rows),
            last.idx + len(last),
            sum(row.relation.kind in MARKS for row in rows),
        )


def _described(doc: Doc, row: _Placed) -> str:
    head, tail = (doc[start:end].text for start, end in (row.head, row.tail))
    kind = _WORDS.get(row.relation.kind)
    return f"{head}, {row.relation.label}, {tail}" + (f" ({kind})" if kind else "")


def _is_long(relation: ShownRelation) -> bool:
    return len(relation.label) > MAX_LABEL


def _line(relation: ShownRelation, text: str, counts: bool) -> Line:
    head, tail = (text[slice(*place)] for place in (relation.head, relation.tail))
    end = max(relation.head[1], relation.tail[1])
    return Line(relation.kind, head, relation.text, tail, end, counts)


def sentence_ranges(doc: Doc, pairs: Iterable[tuple[Place, Place]]) -> list[Place]:
    """Disjoint token ranges [start, end) of whole sentences that contain the relations."""
    sentences = doc.has_annotation("SENT_START")
    ranges = []
    for pair in pairs:
        start, end = min(side[0] for side in pair), max(side[1] for side in pair)
        if sentences:
            ranges.append((doc[start].sent.start, doc[end - 1].sent.end))
        else:
            ranges.append((max(start - CONTEXT, 0), min(end + CONTEXT, len(doc))))
    return _merge(ranges)


def make_words(
    doc: Doc,
    start: int,
    end: int,
    sides: Sequence[Place],
    labels: dict[Place, str],
    ents: Iterable[Span],
) -> list[Word]:
    """The words of a range: heads and tails of relations (``sides``), its other entities
    (``ents``), other tokens except white space.

    Overlapping sides become one word, tagged with all their labels.
    """
    words = []
    for first, last in _merge(sides):
        parts = sorted({side for side in sides if first <= side[0] < last})
        tag = " / ".join(dict.fromkeys(labels[part] for part in parts if labels.get(part)))
        tag = _shortened(tag, MAX_WORD)
        words.append(Word(doc[first:last].text, first, last, tag, linked=True))
    taken = {i for word in words for i in range(word.start, word.end)}
    for ent in ents:
        tokens = set(range(ent.start, ent.end))
        if not tokens & taken:
            tag = _shortened(ent.label_, MAX_WORD)
            words.append(Word(ent.text, ent.start, ent.end, tag))
            taken |= tokens
    words += [
        Word(doc[i].text, i, i + 1)
        for i in range(start, end)
        if i not in taken and not doc[i].is_space
    ]
    for word in words:
        word.text = _shortened(" ".join(word.text.split()), MAX_WORD)
        after = doc[word.end : word.end + 1].text  # white space may be a token
        word.space = bool(doc[word.end - 1].whitespace_) or after.isspace()
    return sorted(words, key=lambda word: word.start)


def shorten(words: list[Word]) -> list[Word]:
    """Omit words of a long range that are far from relations."""
    if len(words) <= MAX_WORDS:
        return words
    near = {
        j
        for i, word in enumerate(words)
        if word.linked
        for j in range(i - CONTEXT, i + CONTEXT + 1)
    }
    kept: list[Word] = []
    for i, word in enumerate(words):
        if i in near:
            kept.append(word)
        elif i == 0 or i - 1 in near:
            kept.append(Word("\N{HORIZONTAL ELLIPSIS}", word.start, word.end))
    return kept


def make_arcs(words: Iterable[Word], placed: Iterable[_Placed]) -> list[Arc]:
    """Arcs of relations, given with the tokens of heads and tails."""
    of_token = {i: word for word in words if word.linked for i in range(word.start, word.end)}
    arcs = []
    for link, head, tail in placed:
        left, right = (of_token[start] for start, _ in sorted((head, tail)))
        arcs.append(Arc(left, right, _short_text(link), link.kind, forward=head < tail))
    return arcs


def _labels(doc: Doc, reference: Doc, text: str) -> dict[Place, str]:
    """Token range -> entity label. Predicted labels take precedence over annotated ones."""
    labels: dict[Place, str] = {}
    for source in (doc, reference):
        for rows in (map(row_of, source.ents), *map(rows_of, source.spans.values())):
            for start, end, label in rows:
                tokens = _tokens(doc, text, (start, end))
                if tokens is not None and label:
                    labels.setdefault(tokens, source.vocab.strings[label])
    return labels


def _tokens(doc: Doc, text: str, place: Place) -> Place | None:
    """The tokens that overlap a range of characters. text: of the document."""
    if not 0 <= place[0] < place[1] <= len(text):
        return None
    span = doc.char_span(*place, alignment_mode="expand")
    return None if span is None else (span.start, span.end)


def _merge(ranges: Iterable[Place]) -> list[Place]:
    """Merge overlapping ranges: [0, 3), [2, 5), [7, 8) -> [0, 5), [7, 8)."""
    merged: list[Place] = []
    for start, end in sorted(ranges):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"


def _short_text(relation: ShownRelation) -> str:
    return relation._replace(label=_shortened(relation.label, MAX_LABEL)).text
