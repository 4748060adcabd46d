"""Components whose scores have the same names: of these, ``nlp.evaluate`` returns the last."""

from typing import Any

from spacy.language import Language

from ..report import LOGGER

_SCORED = ("spans_key", "labels_discard")
"""Settings that determine which annotations are scored."""


def warn_of_equal_score_names(nlp: Language | None, pipe: Any) -> None:
    """Log a warning if an earlier component scores other annotations under the same names.

    Compared are scorers with a setting ``prefix``. Components that are disabled are not scored.
    """
    prefix = _prefix(pipe)
    names = [] if nlp is None else nlp.pipe_names
    if nlp is None or prefix is None or pipe.name not in names:
        return
    for name in names[: names.index(pipe.name)]:
        other: Any = nlp.get_pipe(name)
        if _prefix(other) == prefix and any(
            pipe.cfg.get(setting) != getattr(other, "cfg", {}).get(setting) for setting in _SCORED
        ):
            LOGGER.warning(
                "%s and %s have scores with the same names, %s_...: nlp.evaluate and spacy train "
                "only return those of %s. Set components.%s.scorer.prefix.",
                name,
                pipe.name,
                prefix,
                pipe.name,
                pipe.name,
            )


def _prefix(pipe: Any) -> str | None:
    """The prefix of the names of a component's scores; None if its scorer has no such setting."""
    scorer = getattr(pipe, "scorer", None)
    return getattr(scorer, "keywords", {}).get("prefix")
