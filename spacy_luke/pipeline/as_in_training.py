"""Documents as they will be when training asks about them."""

from collections.abc import Iterable, Iterator
from typing import Any

from spacy.language import Language
from spacy.training import Example


def as_in_training(
    nlp: Language | None, name: str, examples: Iterable[Example], gold: bool = False
) -> Iterator[Example]:
    """Examples whose predicted sides went through the ``annotating_components`` of
    ``[training]`` before the component ``name``, as far as these know already what they will say:
    those that do not train, such as a sentencizer. The examples given are left as they are.

    gold: start from the references instead, with all that is annotated there."""
    annotating = _known(nlp, name) if nlp is not None else []
    for eg in examples:
        doc = eg.reference if gold else eg.predicted
        if annotating:
            doc = doc.copy()
            for pipe in annotating:
                doc = pipe(doc)
        yield eg if doc is eg.predicted else Example(doc, eg.reference)


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
