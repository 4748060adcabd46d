"""Relations on the page: displaCy's arcs, one picture per range of sentences with relations."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup
from spacy.tokens import Doc

from ..annotations.relations import relation_offsets
from .page_arcs import Arc, Word, draw
from .page_text import Place

MAX_WORDS = 30
"""Maximum words shown completely. In longer ranges, words far from relations are omitted."""
CONTEXT = 3
"""Words kept on each side of a mention in a long range."""


class ShownRelation(NamedTuple):
    """A predicted or gold relation. kind: "plain" without annotation, else "agreed", "spurious" or
    "missed". score: None if missed."""

    kind: str
    head: Place
    tail: Place
    label: str
    score: float | None

    @property
    def text(self) -> str:
        mark = {"spurious": "\N{BALLOT X} ", "missed": "missed "}.get(self.kind, "")
        return mark + self.label + ("" if self.score is None else f" {self.score:.2f}")


class Line(NamedTuple):
    """A relation without an arc: its mentions share words."""

    kind: str
    head: str
    label: str
    tail: str


class Drawn(NamedTuple):
    """The relations of a document."""

    pictures: list[Markup]
    lines: list[Line]


def draw_relations(doc: Doc, reference: Doc, compare: bool, name: str, **settings: Any) -> Drawn:
    """Pictures of the predicted and gold relations of a document.

    A picture shows a sentence, or several sentences that relations connect. If sentences are not
    set, it shows the words around relations.

    compare: whether relations are annotated. name: prefix of the pictures' ids. settings: passed to
    :func:`links`.
    """
    drawn = Drawn([], [])
    aligned = [
        (link, _tokens(doc, link.head), _tokens(doc, link.tail))
        for link in links(doc, reference, compare, **settings)
    ]
    merged = _merge(side for _, *sides in aligned for side in sides if side is not None)
    word_of = {i: number for number, tokens in enumerate(merged) for i in range(*tokens)}
    placed: list[tuple[ShownRelation, Place, Place]] = []
    for link, head, tail in aligned:
        if head and tail and word_of[head[0]] != word_of[tail[0]]:
            placed.append((link, head, tail))
        else:
            # A missed relation may be outside the predicted text.
            source = reference if link.kind == "missed" else doc
            head_text, tail_text = (source.text[slice(*p)] for p in (link.head, link.tail))
            drawn.lines.append(Line(link.kind, head_text, link.text, tail_text))
    labels = _labels(doc, reference)
    for start, end in sentence_ranges(doc, [(head, tail) for _, head, tail in placed]):
        in_range = [row for row in placed if start <= row[1][0] < end]
        sides = [side for _, head, tail in in_range for side in (head, tail)]
        words = shorten(make_words(doc, start, end, sides, labels))
        arcs = make_arcs(words, in_range)
        direction = doc.vocab.writing_system.get("direction", "ltr")
        svg_id = f"{name}-{len(drawn.pictures)}"
        drawn.pictures.append(draw(words, arcs, svg_id, direction))
    return drawn


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
    from ..annotations.mentions import first_mentions
    from ..metrics.relations import one_mention

    firsts = [first_mentions(x, spans_key) if merge_entities else {} for x in (doc, reference)]

    def keyed(doc: Doc) -> dict[tuple[Place, Place, str], float]:
        scores = {}
        for item in sorted(relation_offsets(doc), key=lambda x: x.score):
            head, tail = (one_mention(place, *firsts) for place in (item.head, item.tail))
            if item.label in symmetric and tail < head:
                head, tail = tail, head
            scores[head, tail, item.label] = item.score
        return scores

    predicted = keyed(doc)
    gold = keyed(reference) if compare else predicted
    shown = []
    for key, score in sorted(predicted.items()):
        kind = ("agreed" if key in gold else "spurious") if compare else "plain"
        shown.append(ShownRelation(kind, *key, score))
    missed = sorted(gold.keys() - predicted.keys())
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
    doc: Doc, start: int, end: int, sides: Sequence[Place], labels: dict[Place, str]
) -> list[Word]:
    """The words of a range: heads and tails of relations (``sides``), other entities, other tokens
    except white space.

    Overlapping sides become one word, tagged with all their labels.
    """
    words = []
    for first, last in _merge(sides):
        parts = sorted({side for side in sides if first <= side[0] < last})
        tag = " / ".join(dict.fromkeys(labels[part] for part in parts if labels.get(part)))
        words.append(Word(doc[first:last].text, first, last, tag, linked=True))
    taken = {i for word in words for i in range(word.start, word.end)}
    for ent in doc.ents:
        tokens = set(range(ent.start, ent.end))
        if start <= ent.start and ent.end <= end and not tokens & taken:
            words.append(Word(ent.text, ent.start, ent.end, ent.label_))
            taken |= tokens
    words += [
        Word(doc[i].text, i, i + 1)
        for i in range(start, end)
        if i not in taken and not doc[i].is_space
    ]
    for word in words:
        text = " ".join(word.text.split())
        word.text = text if len(text) <= 40 else f"{text[:39]}\N{HORIZONTAL ELLIPSIS}"
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


def make_arcs(
    words: Iterable[Word], placed: Iterable[tuple[ShownRelation, Place, Place]]
) -> list[Arc]:
    """Arcs of relations, given with the tokens of heads and tails."""
    of_token = {i: word for word in words if word.linked for i in range(word.start, word.end)}
    arcs = []
    for link, head, tail in placed:
        left, right = (of_token[start] for start, _ in sorted((head, tail)))
        arcs.append(Arc(left, right, link.text, link.kind, forward=head < tail))
    return arcs


def _labels(doc: Doc, reference: Doc) -> dict[Place, str]:
    """Token range -> entity label. Predicted labels take precedence over annotated ones."""
    labels: dict[Place, str] = {}
    for source in (doc, reference):
        for spans in (source.ents, *source.spans.values()):
            for span in spans:
                tokens = _tokens(doc, (span.start_char, span.end_char))
                if tokens is not None and span.label_:
                    labels.setdefault(tokens, span.label_)
    return labels


def _tokens(doc: Doc, place: Place) -> Place | None:
    """The tokens that overlap a range of characters."""
    if not 0 <= place[0] < place[1] <= len(doc.text):
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
