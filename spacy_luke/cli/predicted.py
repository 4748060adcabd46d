"""Shared by commands that compare a pipeline with annotation: files that are predictions."""

from collections.abc import Iterable
from pathlib import Path

from spacy.language import Language
from spacy.training import Example

from ..annotations.queries import completion_offsets
from ..annotations.scores import SCORES
from ..report import LOGGER
from .loading import group_keys, predicts_entities, writes_groups
from .pages.counts import what_is_written
from .pages.layers import ENTITIES, NAMES, scored_layers


def warn_of_predictions(nlp: Language, examples: Iterable[Example], source: Path) -> None:
    """Warn if references have scores of what the pipeline predicts: a pipeline has written them
    (``spacy apply``). Entities that were corrected by hand have none."""
    docs = [eg.reference for eg in examples]
    written = what_is_written(nlp)
    own = {*written, *([ENTITIES] if predicts_entities(nlp) else [])}
    layers = scored_layers(docs, written) & own
    scored = [name for layer, name in NAMES.items() if layer in layers]
    for key in group_keys(nlp, writes_groups(nlp)):
        if any(key in doc.spans and SCORES in doc.spans[key].attrs for doc in docs):
            scored.append(f"spans of the group {key!r}")
    if any("doc._.completions" in nlp.get_pipe_meta(name).assigns for name in nlp.pipe_names):
        items = (x for doc in docs for query in completion_offsets(doc) for x in query)
        scored += ["completions"] if any(x.score not in (0.0, 1.0) for x in items) else []
    if scored:
        LOGGER.warning(
            "%s: %s have scores, so they are predictions of a pipeline. Figures say how far this "
            "pipeline agrees with that one, and not how often it is right; scores that are tuned "
            "on them are wrong. Give annotated documents.",
            source,
            " and ".join(scored),
        )
