"""Documents as they will be when training asks about them."""

from collections.abc import Iterable, Iterator
from typing import Any

from spacy.language import Language
from spacy.training import Example


def as_in_training(
    nlp: Language | None, name: str, examples: Iterable[Example]
) -> Iterator[Example]:
    """Examples whose predicted sides went through the ``annotating_components`` of
    ``[training]`` before the component ``name``, as far as these know already what they will say:
    those that do not train, such as a sentencizer. The examples given are left as they are."""
    annotating = _known(nlp, name) if nlp is not None else []
    for eg in examples:
        if annotating:
            doc = eg.predicted.copy()
            for pipe in annotating:
                doc = pipe(doc)
            eg = Example(doc, eg.reference)
        yield eg


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
