"""Which layers of documents are predicted, and which are annotated.

Documents that a pipeline wrote look like annotated ones, except that predictions have scores. To
compare predictions with such documents would be to compare them with themselves.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from spacy.language import Language
from spacy.tokens import Doc, Span

from ...annotations.annotated import is_annotated, set_annotated, spans_annotated
from ...annotations.candidates import get_candidates
from ...annotations.mentions import all_spans
from ...annotations.questions import answer_offsets, clear_answers, has_answers, n_questions
from ...annotations.relations import relation_offsets
from ...annotations.scores import scores_of
from ...annotations.types import get_types
from .counts import RELATIONS, TYPES, Written
from .links import LINKS, clear_links, has_link
from .questions import ANSWERS

ENTITIES = "doc.ents"
NAMES = {
    ENTITIES: "entities",
    TYPES: "types",
    RELATIONS: "relations",
    LINKS: "links",
    ANSWERS: "answers",
}
"""The attribute of each layer -> its name on the page."""


class Layer(NamedTuple):
    """What the page says of a layer: whether it is predicted, annotated and compared."""

    name: str
    status: str


def has_layer(doc: Doc, layer: str, written: Written | None = None) -> bool:
    """Whether a document has annotation or predictions of a layer.

    written: of the pipeline that reads the document: types and links are those of the spans that it
    writes. Default: those of any spans.
    """
    spans = partial(_spans, layer=layer, written=written)
    present: dict[str, Callable[[Doc], bool]] = {
        ENTITIES: lambda doc: spans_annotated(doc, None),
        TYPES: lambda doc: (
            is_annotated(doc, "types") and any(get_types(span) is not None for span in spans(doc))
        ),
        RELATIONS: lambda doc: is_annotated(doc, "relations") and bool(relation_offsets(doc)),
        LINKS: lambda doc: any(has_link(span) for span in spans(doc)),
        ANSWERS: has_answers,
    }
    return present[layer](doc)


def _spans(doc: Doc, layer: str, written: Written | None) -> Iterator[Span]:
    keys = [None, *doc.spans] if written is None else [key_of(layer, written)]
    return (span for key in keys for span in all_spans(doc, key))


def key_of(layer: str, written: Written) -> str | None:
    """The spans group that a layer of a pipeline belongs to; None for ``Doc.ents``."""
    return written.get(layer, {}).get("spans_key")


def written_as_it_is(docs: Sequence[Doc], layers: Iterable[str]) -> Written:
    """What a pipeline would have written that contains these layers. Types and links are those of
    ``Doc.ents``, or, if these have none, of the group of spans that has them in most documents."""
    written: Written = {layer: {} for layer in layers if layer != ENTITIES}
    for layer in written.keys() & {TYPES, LINKS}:
        n_docs = {
            key: sum(has_layer(doc, layer, {layer: {"spans_key": key}}) for doc in docs)
            for key in (None, *dict.fromkeys(key for doc in docs for key in doc.spans))
        }
        if not n_docs.pop(None):
            written[layer] = {"spans_key": max(n_docs, key=lambda key: n_docs[key])}
    return written


def scored_layers(docs: Sequence[Doc], written: Written | None = None) -> set[str]:
    """The layers of the documents of a file that have scores, so they are predictions.

    If the entities do, their links are, too. Entities that were corrected by hand have no scores.
    written: as for :func:`has_layer`.
    """
    types, links = (
        [span for doc in docs for span in _spans(doc, layer, written)] for layer in (TYPES, LINKS)
    )
    with_ents = [doc for doc in docs if doc.ents]
    scored = {
        ENTITIES: bool(with_ents) and all(map(_has_scores, with_ents)),
        TYPES: any(score != 1.0 for span in types for score in (get_types(span) or {}).values()),
        RELATIONS: any(x.score != 1.0 for doc in docs for x in relation_offsets(doc)),
        LINKS: any(get_candidates(span) is not None for span in links),
        ANSWERS: any(
            score not in (0.0, 1.0)
            for doc in docs
            for item in answer_offsets(doc)
            for score in (item.no_answer, *(x for *_, x in item.answers))
        ),
    }
    if written is None or key_of(LINKS, written) is None:
        scored[LINKS] |= scored[ENTITIES] and any(has_layer(doc, LINKS, {}) for doc in with_ents)
    return {layer for layer, predicted in scored.items() if predicted}


def _has_scores(doc: Doc) -> bool:
    scores = scores_of(doc)
    return all((ent.start_char, ent.end_char, ent.label) in scores for ent in doc.ents)


def not_annotated(doc: Doc, layers: Collection[str], written: Written) -> None:
    """Mark layers of a reference as not annotated, so that nothing is compared with them. written:
    as for :func:`has_layer`."""
    if ENTITIES in layers:
        set_annotated(doc, "ents", False)
    if TYPES in layers:
        set_annotated(doc, "types", False)
    if RELATIONS in layers:
        set_annotated(doc, "relations", False)
    if LINKS in layers:
        clear_links(doc, key_of(LINKS, written))
    if ANSWERS in layers:
        clear_answers(doc)


def predicted_layers(
    nlp: Language,
    written: Written,
    writers_of_entities: Sequence[str],
    references: Sequence[Doc],
    scored: Collection[str],
    source: str,
) -> list[Layer]:
    """What the page says of the layers that a pipeline writes.

    writers_of_entities: components; without any, the entities of the references are given. scored:
    the layers of the references that are predictions. source: of the references.
    """
    layers = []
    for attribute, name in NAMES.items():
        by = writers_of_entities if attribute == ENTITIES else _writers(nlp, attribute)
        annotated = any(has_layer(doc, attribute, written) for doc in references)
        if attribute == ENTITIES and not by:
            if annotated or attribute in scored:
                layers.append(Layer(name, f"given to the pipeline: those of {source}"))
        elif attribute == ANSWERS and not any(n_questions(doc) for doc in references):
            continue
        elif attribute == ENTITIES or attribute in written:
            status = f"predicted by {', '.join(by)}"
            if attribute in scored and annotated:
                status += (
                    f"; some documents of {source} have scores, so they are predictions, too, and "
                    "only the others are compared with it"
                )
            elif attribute in scored:
                status += (
                    f"; those of {source} have scores, so they are predictions, too, and nothing "
                    "is compared"
                )
            elif annotated:
                status += f", and compared with the annotation of {source}"
            else:
                status += "; not annotated, so nothing is compared"
            layers.append(Layer(name, status))
    return layers


def layers_as_they_are(
    docs: Sequence[Doc], present: Iterable[str], scored: Collection[str], written: Written
) -> list[Layer]:
    """What the page says of the layers of documents that are shown without a pipeline."""
    layers = []
    for attribute in present:
        status = "annotation, or predictions without scores"
        if attribute in scored:
            status = "predictions, with scores"
        key = key_of(attribute, written)
        if key is not None:
            status += f"; of the spans group {key}"
        if attribute in (TYPES, LINKS):
            shown, every = (_places(docs, attribute, x) for x in (written, None))
            if len(every) > len(shown):
                status += f"; not shown: {len(every) - len(shown):,} in other groups"
        layers.append(Layer(NAMES[attribute], status))
    return layers


def _places(docs: Sequence[Doc], layer: str, written: Written | None) -> set[tuple]:
    """Document, start, end and id of the spans that have types or links."""
    has = has_link if layer == LINKS else lambda span: get_types(span) is not None
    return {
        (i, span.start_char, span.end_char, span.kb_id_ if layer == LINKS else "")
        for i, doc in enumerate(docs)
        for span in _spans(doc, layer, written)
        if has(span)
    }


def _writers(nlp: Language, attribute: str) -> list[str]:
    return [name for name in nlp.pipe_names if attribute in nlp.get_pipe_meta(name).assigns]
