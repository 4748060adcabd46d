"""Shared by commands that compare a pipeline with annotation: files that are predictions."""

from collections.abc import Iterable
from pathlib import Path

from spacy.language import Language
from spacy.training import Example

from ..report import LOGGER
from .loading import predicts_entities
from .pages.counts import what_is_written
from .pages.layers import ENTITIES, NAMES, scored_layers


def warn_of_predictions(nlp: Language, examples: Iterable[Example], source: Path) -> None:
    """Warn if references have scores of what the pipeline predicts: a pipeline has written them
    (``spacy apply``). Entities that were corrected by hand have none."""
    written = what_is_written(nlp)
    own = {*written, *([ENTITIES] if predicts_entities(nlp) else [])}
    scored = scored_layers([eg.reference for eg in examples], written) & own
    if scored:
        LOGGER.warning(
            "%s: %s have scores, so they are predictions of a pipeline. Figures say how far this "
            "pipeline agrees with that one, and not how often it is right; scores that are tuned "
            "on them are wrong. Give annotated documents.",
            source,
            " and ".join(NAMES[x] for x in NAMES if x in scored),
        )
