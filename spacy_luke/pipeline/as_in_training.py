"""Documents as a component will get them in training."""

from collections.abc import Iterable, Iterator

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example


def as_in_training(
    nlp: Language | None, name: str, examples: Iterable[Example], gold: bool = False
) -> Iterator[Example]:
    """Examples whose predicted sides went through the ``annotating_components`` of
    ``[training]`` before the component ``name``, as far as these know already what they will say:
    those that do not train, such as a sentencizer. The examples given are left as they are.

    gold: start from the references instead, with all that is annotated there but sentence starts
    that the predicted sides do not have; no component then writes other entities or spans."""
    annotating = []
    for before, learns in _annotating(nlp, name):
        if not learns and not (gold and _writes(nlp, before) & {"doc.ents", "doc.spans"}):
            annotating.append(before)
    components = dict(nlp.components) if nlp is not None else {}
    for eg in examples:
        doc = _gold(eg) if gold else eg.predicted
        if annotating:
            doc = doc.copy()
            for before in annotating:
                doc = components[before](doc)
        yield eg if doc is eg.predicted else Example(doc, eg.reference)


def _gold(eg: Example) -> Doc:
    doc = eg.reference
    parsed = doc.has_annotation("DEP")  # spaCy then refuses to write sentence starts
    if eg.predicted.has_annotation("SENT_START") or parsed or not doc.has_annotation("SENT_START"):
        return doc
    doc = doc.copy()
    for token in doc:
        token.is_sent_start = None
    return doc


def entities_are_learned(nlp: Language | None, name: str, spans_key: str | None) -> bool:
    """Whether an annotating component before ``name`` learns to write ``Doc.ents``, or groups."""
    what = "doc.ents" if spans_key is None else "doc.spans"
    found = _annotating(nlp, name)
    return any(learns and what in _writes(nlp, before) for before, learns in found)


def _annotating(nlp: Language | None, name: str) -> list[tuple[str, bool]]:
    """The annotating components before ``name``, and whether they learn."""
    if nlp is None:
        return []
    settings = nlp.config["training"]
    frozen = settings["frozen_components"]
    found = []
    for before, pipe in nlp.components:  # also those that are not initialised again
        if before == name:
            break
        if before in settings["annotating_components"]:
            found.append((before, getattr(pipe, "is_trainable", False) and before not in frozen))
    return found


def _writes(nlp: Language | None, name: str) -> set[str]:
    return set() if nlp is None else set(nlp.get_pipe_meta(name).assigns)
