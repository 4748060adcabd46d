"""Checks before a training that goes on with components of other pipelines (``source``)."""

from spacy.language import Language

from ..errors import ConfigError
from ..layers.listener import is_listener
from ..layers.transformer_data import link_of
from ..report import LOGGER
from .classifier_pipe import ClassifierPipe


def check_sourced(nlp: Language) -> None:
    """Warn of blocks of ``[initialize.components]`` that are not used, because their component is
    not initialised: it is sourced, or frozen.

    Raises ConfigError if one of our components listens to the encoder of another pipeline, because
    it was sourced without its ``luke``: it could be trained, and not saved.
    """
    given = nlp.config["initialize"]["components"]
    for name in nlp.disabled:
        if given.get(name) and isinstance(nlp.get_pipe(name), ClassifierPipe):
            LOGGER.warning(
                "[initialize.components.%s] is not used: %s is not initialised (it is sourced, or "
                "frozen), and keeps its labels and data. Labels are added to a sourced component "
                "before: load its pipeline, call add_label, save it, and name that as source.",
                name,
                name,
            )
    models = [getattr(pipe, "model", None) for _, pipe in nlp.components]
    for name, pipe in nlp.components:
        if not isinstance(pipe, ClassifierPipe):
            continue
        for node in filter(is_listener, pipe.model.walk()):
            link = link_of(node)
            if link.encoder is not None and all(link.encoder is not x for x in models):
                raise ConfigError(
                    f"{name} listens to {link.component!r} of another pipeline: it is sourced "
                    f"without that. Source {link.component!r}, too, before it; or give {name} an "
                    f'encoder of its own: replace_listeners = ["model.encoder"] beside source in '
                    f"[components.{name}]."
                )
