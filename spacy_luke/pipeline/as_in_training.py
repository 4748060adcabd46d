"""Documents as they will be when training asks about them."""

from collections.abc import Iterable, Iterator
from typing import Any

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
    that the predicted sides do not have."""
    annotating = _known(nlp, name) if nlp is not None else []
    for eg in examples:
        doc = _gold(eg) if gold else eg.predicted
        if annotating:
            doc = doc.copy()
            for pipe in annotating:
                doc = pipe(doc)
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


def _known(nlp: Language, name: str) -> list[Any]:
    settings = nlp.config["training"]
    frozen = settings["frozen_components"]
    found = []
    for before, pipe in nlp.components:  # also those that are not initialised again
        if before == name:
            break
        learns = getattr(pipe, "is_trainable", False) and before not in frozen
        if before in settings["annotating_components"] and not learns:
            found.append(pipe)
    return found
