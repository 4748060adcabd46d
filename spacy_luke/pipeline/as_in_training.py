"""Examples as a component gets them in training."""

from collections.abc import Iterable, Iterator

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from ..annotations.alignment import set_sent_starts


def as_in_training(
    nlp: Language | None, name: str, examples: Iterable[Example], gold: bool = False
) -> Iterator[Example]:
    """Examples whose predicted sides were annotated by the ``annotating_components`` of
    ``[training]`` that come before the component ``name``. Only components that do not train, such
    as a sentencizer, are run. The given examples are not changed.

    gold: start from the references, with all of their annotation except sentence starts that the
        predicted sides do not have; components that write entities or spans are not run."""
    to_run = []
    for before, learns in _annotating(nlp, name):
        if not learns and not (gold and _writes(nlp, before) & {"doc.ents", "doc.spans"}):
            to_run.append(before)
    components = dict(nlp.components) if nlp is not None else {}
    for eg in examples:
        doc = _gold_doc(eg) if gold else eg.predicted
        if to_run:
            doc = doc.copy()
            for before in to_run:
                doc = components[before](doc)
        yield eg if doc is eg.predicted else Example(doc, eg.reference)


def _gold_doc(eg: Example) -> Doc:
    """The reference, without sentence starts if the predicted side has none."""
    doc = eg.reference
    parsed = doc.has_annotation("DEP")  # spaCy does not allow sentence starts to be set then
    if eg.predicted.has_annotation("SENT_START") or parsed or not doc.has_annotation("SENT_START"):
        return doc
    doc = doc.copy()
    set_sent_starts(doc, [None] * len(doc))
    return doc


def entities_are_learned(nlp: Language | None, name: str, spans_key: str | None) -> bool:
    """Whether an annotating component before ``name`` is trained to write ``Doc.ents``, or spans
    groups if ``spans_key`` is set."""
    attribute = "doc.ents" if spans_key is None else "doc.spans"
    annotating = _annotating(nlp, name)
    return any(learns and attribute in _writes(nlp, before) for before, learns in annotating)


def is_annotated_by_trained(nlp: Language | None, name: str) -> bool:
    """Whether any annotating component before ``name`` trains, whatever it assigns."""
    return any(learns for _, learns in _annotating(nlp, name))


def _annotating(nlp: Language | None, name: str) -> list[tuple[str, bool]]:
    """The names of the annotating components before ``name``, and whether they are trained."""
    if nlp is None:
        return []
    settings = nlp.config.interpolate()["training"]  # they may be ${variables}
    frozen = settings["frozen_components"]
    annotating = []
    for before, pipe in nlp.components:  # disabled components included
        if before == name:
            break
        if before in settings["annotating_components"]:
            learns = getattr(pipe, "is_trainable", False) and before not in frozen
            annotating.append((before, learns))
    return annotating


def _writes(nlp: Language | None, name: str) -> set[str]:
    """The attributes that a component assigns, according to its factory."""
    return set() if nlp is None else set(nlp.get_pipe_meta(name).assigns)
