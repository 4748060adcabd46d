"""A document of the page: what is shown of it."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from spacy.tokens import Doc
from spacy.training import Example

from ...annotations.annotated import spans_annotated
from ...annotations.mentions import characters
from ...annotations.scores import scores_of
from ...metrics.ner import compared_spans
from .counts import RELATIONS, TYPES, Counts, Written, count
from .documents import TITLE
from .links import LINKS, show_links
from .passages import WRONG, Passage, make_passages, passage_ends
from .pictures import Drawn, draw_relations
from .questions import ANSWERS, ShownQuestion, show_questions
from .text import Chip, Entity, Place, cut_text, type_chips

if TYPE_CHECKING:
    from ...kb.knowledge_base import MappedKB


class View(NamedTuple):
    """What is shown of all documents.

    written: what is predicted. kb: of links. compared: attributes that are annotated in the corpus.
        A predicted relation or type that a document lacks is then spurious.
    given: whether the entities are given, not predicted. unscored: attributes whose scores are not
        shown, because they are those of an annotation.
    """

    written: Written
    kb: "MappedKB | None"
    compared: Collection[str]
    given: bool
    unscored: Collection[str] = ()


@dataclass
class ShownDoc:
    """A document of the page. counts: None if its entities are not annotated."""

    id: str
    title: str
    counts: Counts | None
    n_words: int
    passages: list[Passage]
    questions: list[ShownQuestion]

    @property
    def errors(self) -> dict[str, int]:
        """What differs from the annotation -> how often, without zeros."""
        errors: dict[str, int] = {}
        for passage in self.passages:
            for name, n in passage.errors.items():
                errors[name] = errors.get(name, 0) + n
        errors["questions"] = sum(question.kind in WRONG for question in self.questions)
        return {name: n for name, n in errors.items() if n}

    @property
    def n_right(self) -> int:
        """Questions whose best answer, or that there is none, is right."""
        return sum(question.kind == "agreed" for question in self.questions)

    @property
    def n_compared(self) -> int:
        """Questions with annotation."""
        return sum(question.kind != "plain" for question in self.questions)


def gold_entities(doc: Doc) -> list[Entity] | None:
    """The annotated entities, or None if the document's entities are not annotated."""
    return entities_of(doc) if spans_annotated(doc, None) else None


def entities_of(doc: Doc) -> list[Entity]:
    """The entities, with scores if a spans group has them."""
    scores = scores_of(doc)
    return [
        Entity(e.start_char, e.end_char, e.label_, scores.get((e.start_char, e.end_char, e.label)))
        for e in doc.ents
    ]


def predicted_entities(eg: Example) -> list[Entity]:
    """The predicted entities of an example. Those of other tokens than the reference's are compared
    as by the scorer: of several with equal tokens there and an equal label, the first may be
    right."""
    compared = compared_spans(eg, eg.predicted.ents)
    entities: list[Entity] = []
    seen: set[tuple[Place, str]] = set()
    for entity, span in zip(entities_of(eg.predicted), compared, strict=True):
        place = None if span is None else (characters(span), entity.label)
        is_first = place is not None and place not in seen
        tokens = place[0] if place is not None and is_first else None
        entities.append(entity._replace(compared=span is not None, tokens=tokens))
        seen |= set() if place is None else {place}
    return entities


def show(
    doc: Doc,
    reference: Doc,
    predicted: Sequence[Entity],
    gold: Sequence[Entity] | None,
    number: int,
    view: View,
) -> ShownDoc:
    """One document, cut into pieces at entity boundaries, and into passages if it is long."""
    title = str(reference.user_data.get(TITLE) or f"Document {number}")
    written = view.written
    chips = _chips(doc, reference, view) if TYPES in written else {}
    questions = []
    if ANSWERS in written:
        questions = show_questions(doc, reference, f"question-{number}", **written[ANSWERS])
        if ANSWERS in view.unscored:
            questions = [question.without_scores() for question in questions]
    answers = [answer for question in questions for answer in question.marks]
    ends = passage_ends(doc)
    pieces = cut_text(
        doc.text,
        predicted,
        entities_of(reference) if view.given else gold,
        chips,
        answers,
        ends,
        alike="plain" if view.given else "agreed",
    )
    drawn = Drawn([], [])
    if RELATIONS in written:
        compare, scores = RELATIONS in view.compared, RELATIONS not in view.unscored
        drawn = draw_relations(doc, reference, compare, scores, **written[RELATIONS])
    links = show_links(doc, reference, view.kb, **written[LINKS]) if LINKS in written else []
    passages = make_passages(ends, pieces, drawn, links)
    counts = None if gold is None else count(predicted, gold)
    return ShownDoc(f"document-{number}", title, counts, len(doc), passages, questions)


def _chips(doc: Doc, reference: Doc, view: View) -> dict[Place, list[Chip]]:
    written = view.written[TYPES]
    settings = {name: x for name, x in written.items() if name in ("ancestors", "spans_key")}
    chips = type_chips(doc, reference, TYPES in view.compared, **settings)
    if TYPES in view.unscored:
        return {place: [x._replace(score=None) for x in row] for place, row in chips.items()}
    return chips
