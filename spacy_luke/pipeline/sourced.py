"""Checks before a training that goes on with components of other pipelines (``source``)."""

from spacy.language import Language
from thinc.api import Model

from ..errors import ConfigError
from ..layers.listener import is_listener
from ..layers.transformer_data import is_stock_listener, link_of
from ..report import LOGGER
from .classifier_pipe import ClassifierPipe
from .saving import has_weights


def check_sourced(nlp: Language) -> None:
    """Warn of blocks of ``[initialize.components]`` that are not used, because their component is
    not initialised: it is sourced, frozen or disabled; and of one that listens to an encoder that
    is new.

    Raises ConfigError if a component listens to an encoder that is not before it in this pipeline,
    because it was sourced without its ``luke``: it could be trained, and not saved.
    """
    given = nlp.config["initialize"]["components"]
    for name in nlp.disabled:
        block = given.get(name) or {}
        is_given = any(value is not None for value in block.values())
        if is_given and isinstance(nlp.get_pipe(name), ClassifierPipe):
            LOGGER.warning(
                "[initialize.components.%s] is not used: %s is not initialised (it is sourced, "
                "frozen or disabled). A sourced one keeps its labels and data; labels are added to "
                "it before: load its pipeline, call add_label, save it, and name that as source.",
                name,
                name,
            )
    before: list[Model] = []
    for name, pipe in nlp.components:
        model = getattr(pipe, "model", None)
        if not isinstance(model, Model):
            continue
        for node in model.walk():
            if not (is_listener(node) or is_stock_listener(node)):
                continue
            link = link_of(node)
            if link.encoder is None:
                continue
            if any(link.encoder is x for x in before):
                is_new = link.component not in nlp.disabled
                if is_new and name in nlp.disabled and has_weights(model):
                    LOGGER.warning(
                        "%s is not initialised (it is sourced, frozen or disabled), but the %s "
                        "that it listens to is new: it has learned with another encoder, unless "
                        "that has the same weights. Source both from one pipeline, or neither.",
                        name,
                        link.component,
                    )
                continue
            where = ' = ["model.encoder"]' if isinstance(pipe, ClassifierPipe) else ""
            own = f"; or give it an encoder of its own: replace_listeners{where} in its block"
            raise ConfigError(
                f"{name} listens to {link.component!r} of another pipeline, or of a later place in "
                f"this one: source {link.component!r}, too, before it"
                f"{own if is_listener(node) else ''}."
            )
        before.append(model)
