"""Relations on the page: one picture per range of sentences with relations."""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from spacy.tokens import Doc, Span

from ...annotations.annotated import annotated_labels
from ...annotations.relations import relation_offsets
from .arcs import Arc, Cell, Word, draw
from .text import Place

MAX_WORDS = 30
"""Maximum words shown completely. In longer ranges, words far from relations are omitted."""
CONTEXT = 3
"""Words kept on each side of a mention in a long range."""
MAX_WORD, MAX_LABEL = 40, 30
"""Characters of a word and of the label of an arc. Longer ones are cut; the whole label is then on
a line below the picture."""
_MARKS = {"spurious": "\N{BALLOT X} ", "missed": "missed "}
_WORDS = {"agreed": "annotated alike", "spurious": "only predicted", "missed": "only annotated"}


class ShownRelation(NamedTuple):
    """A predicted or gold relation. kind: "plain" without annotation, else "agreed", "spurious" or
    "missed". score: None if missed or not shown."""

    kind: str
    head: Place
    tail: Place
    label: str
    score: float | None

    @property
    def text(self) -> str:
        score = "" if self.score is None else f" {self.score:.2f}"
        return _MARKS.get(self.kind, "") + self.label + score

    @property
    def short_text(self) -> str:
        return self._replace(label=_shortened(self.label, MAX_LABEL)).text


class Line(NamedTuple):
    """A relation without an arc, because its mentions share words, or whose label is too long for
    one. place: of the mention that ends last. counts: False if an arc counts it, too."""

    kind: str
    head: str
    label: str
    tail: str
    place: Place
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
        wrong = sum(line.counts and line.kind in _MARKS for line in self.lines)
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
    :func:`links`.
    """
    drawn = Drawn([], [])
    text, gold_text = doc.text, reference.text  # spaCy joins the tokens at every access
    aligned = [
        (
            link if scores else link._replace(score=None),
            _tokens(doc, text, link.head),
            _tokens(doc, text, link.tail),
        )
        for link in links(doc, reference, compare, **settings)
    ]
    merged = _merge(side for _, *sides in aligned for side in sides if side is not None)
    word_of = {i: number for number, tokens in enumerate(merged) for i in range(*tokens)}
    placed: list[_Placed] = []
    for link, head, tail in aligned:
        has_arc = bool(head and tail and word_of[head[0]] != word_of[tail[0]])
        if head and tail and has_arc:
            placed.append(_Placed(link, head, tail))
        if not has_arc or len(link.label) > MAX_LABEL:
            # A missed relation may be outside the predicted text.
            source = gold_text if link.kind == "missed" else text
            head_text, tail_text = (source[slice(*place)] for place in (link.head, link.tail))
            last = max(link.head, link.tail, key=lambda place: place[1])
            drawn.lines.append(
                Line(link.kind, head_text, link.text, tail_text, last, counts=not has_arc)
            )
    drawn.pictures.extend(_pictures(doc, placed, _labels(doc, reference, text)))
    return drawn


def _pictures(doc: Doc, placed: Sequence[_Placed], labels: dict[Place, str]) -> Iterable[Picture]:
    ranges = sentence_ranges(doc, [(head, tail) for _, head, tail in placed])
    by_range: dict[Place, list[_Placed]] = {place: [] for place in ranges}
    starts = [start for start, _ in ranges]
    for row in placed:
        by_range[ranges[bisect_right(starts, row.head[0]) - 1]].append(row)
    ents = sorted(doc.ents, key=lambda ent: ent.start)
    first = [ent.start for ent in ents]
    for (start, end), rows in by_range.items():
        sides = [side for _, head, tail in rows for side in (head, tail)]
        inside = ents[bisect_left(first, start) : bisect_left(first, end)]
        whole = [ent for ent in inside if ent.end <= end]
        words = shorten(make_words(doc, start, end, sides, labels, whole))
        last = doc[end - 1]
        yield Picture(
            draw(words, make_arcs(words, rows)),
            "; ".join(_described(doc, row) for row in rows),
            last.idx + len(last),
            sum(row.relation.kind in _MARKS for row in rows),
        )


def _described(doc: Doc, row: _Placed) -> str:
    head, tail = (doc[start:end].text for start, end in (row.head, row.tail))
    kind = _WORDS.get(row.relation.kind)
    return f"{head}, {row.relation.label}, {tail}" + (f" ({kind})" if kind else "")


def links(
    doc: Doc,
    reference: Doc,
    compare: bool,
    *,
    symmetric: Collection[str] = (),
    spans_key: str | None = None,
    merge_entities: bool = False,
) -> list[ShownRelation]:
    """Predicted relations, then missed ones, without repetitions. The settings are those of the
    component that predicted them."""
    # Imported here because it imports torch, which other commands do not need.
    from ...annotations.mentions import first_mentions
    from ...metrics.relations import one_mention

    firsts = [first_mentions(x, spans_key) if merge_entities else {} for x in (doc, reference)]

    def keyed(doc: Doc) -> dict[tuple[Place, Place, str], float]:
        scores = {}
        for item in sorted(relation_offsets(doc), key=lambda x: x.score):
            head, tail = (one_mention(place, *firsts) for place in (item.head, item.tail))
            if item.label in symmetric and tail < head:
                head, tail = tail, head
            scores[head, tail, item.label] = item.score
        return scores

    labels = annotated_labels(reference, "relations") if compare else frozenset()
    predicted, gold = keyed(doc), keyed(reference)
    shown = []
    for key, score in sorted(predicted.items()):
        compared = labels is None or key[-1] in labels
        kind = ("agreed" if key in gold else "spurious") if compared else "plain"
        shown.append(ShownRelation(kind, *key, score))
    missed = sorted(
        key for key in gold.keys() - predicted.keys() if labels is None or key[-1] in labels
    )
    return shown + [ShownRelation("missed", *key, None) for key in missed]


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
        words.append(Word(doc[first:last].text, first, last, tag, linked=True))
    taken = {i for word in words for i in range(word.start, word.end)}
    for ent in ents:
        tokens = set(range(ent.start, ent.end))
        if not tokens & taken:
            words.append(Word(ent.text, ent.start, ent.end, ent.label_))
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
        arcs.append(Arc(left, right, link.short_text, link.kind, forward=head < tail))
    return arcs


def _labels(doc: Doc, reference: Doc, text: str) -> dict[Place, str]:
    """Token range -> entity label. Predicted labels take precedence over annotated ones."""
    labels: dict[Place, str] = {}
    for source in (doc, reference):
        for spans in (source.ents, *source.spans.values()):
            for span in spans:
                tokens = _tokens(doc, text, (span.start_char, span.end_char))
                if tokens is not None and span.label_:
                    labels.setdefault(tokens, span.label_)
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
