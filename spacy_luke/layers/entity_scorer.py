"""``spacy-luke.EntityScorer.v1``: classes of single spans, by either way to ask.

``markers`` is the published form of entity typing (Yamada et al. 2020, section 4.1): one sequence
a mention. ``probe`` asks about all mentions of a document at once.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from spacy.tokens import Doc
from spacy.util import registry
from thinc.api import Model
from thinc.util import torch2xp
from torch import nn

from ..checkpoint.classes import ENTITY_TYPING
from ..model.heads import EntityTypingHead
from ..model.packing import Array
from .asking import Asking, AskSettings, GivenSpans
from .head_module import HeadModule, fresh_weights, head_of, task_node
from .session import Session
from .shim import LearnRates

NETWORK = "luke-entity-scorer"


class EntityQuery(NamedTuple):
    """docs, and the spans asked about."""

    docs: Sequence[Doc]
    spans: GivenSpans


class EntityScores(NamedTuple):
    """asked: (n_asked,) rows of the spans that could be asked about; logits: (n_asked, C)."""

    asked: Array
    logits: Any


@dataclass
class EntitySettings(AskSettings):
    """The settings of ``spacy-luke.EntityScorer.v1``; see there."""

    scorer: ClassVar[str] = "EntityScorer"

    @property
    def head_type(self) -> type["EntityModule"]:
        return EntityModule

    def head_config(self, network: Model) -> dict[str, Any]:
        return {}


class EntityModule(HeadModule):
    """The entity typing head."""

    architecture: ClassVar[str] = ENTITY_TYPING.name
    width: ClassVar[int] = ENTITY_TYPING.n_states

    def __init__(self, hidden: int, n_classes: int):
        super().__init__(hidden=hidden, n_classes=n_classes)
        self.head = EntityTypingHead(hidden, n_classes)
        fresh_weights(self)

    @property
    def classifier(self) -> nn.Linear:
        return self.head.classifier


@registry.architectures("spacy-luke.EntityScorer.v1")
def EntityScorer_v1(
    encoder: Model,
    *,
    mode: Literal["markers", "probe"] = "probe",
    view: Literal["document", "sentence"] = "document",
    typed_markers: bool = False,
    max_mention_pieces: int | None = None,
    learn_rate_factor: float = 1.0,
) -> Model[EntityQuery, EntityScores]:
    """Score the classes of spans.

    encoder: ``spacy-luke.LukeEncoder.v1``, or ``spacy-luke.LukeListener.v1`` to share one.
    mode: ``markers``: one sequence a span, between marker pieces, as published; ``probe``: all
        spans of a window at once.
    view: what a sequence of ``markers`` shows: as much of the ``document`` as the window holds, or
        only the ``sentence`` of the span.
    typed_markers: the markers also name the span's label (``markers`` only).
    max_mention_pieces: the positions of a span stop after so many pieces, its markers counted; 30
        in published models, by default all (``markers`` only).
    learn_rate_factor: learning rate of the head, relative to the config's.
    """
    settings = EntitySettings(mode, view, typed_markers, max_mention_pieces)
    return task_node(NETWORK, encoder, settings, _forward, LearnRates(learn_rate_factor))


def askable(model: Model, query: EntityQuery) -> Array:
    """(n_spans,) whether the window lets a span be asked about."""
    settings: EntitySettings = model.attrs["settings"]
    session = Session(model.layers[0], query.docs, is_train=False)
    asking = Asking(session, query.docs, query.spans)
    if settings.mode == "probe":
        return asking.shown()
    return asking.fitting(np.arange(len(query.spans))[:, None], settings.typed_markers)


def _forward(
    model: Model, query: EntityQuery, is_train: bool
) -> tuple[EntityScores, Callable[[EntityScores], list]]:
    settings: EntitySettings = model.attrs["settings"]
    module: EntityModule = head_of(model)
    module.train(is_train)
    module.set_dropout(float(model.attrs["dropout_rate"]))
    session = Session(model.layers[0], query.docs, is_train)
    with session.task():
        asked, logits = _score(session, settings, module, query)

    def backprop(d_scores: EntityScores) -> list:
        session.backprop((logits,), (d_scores.logits,))
        return []

    return EntityScores(asked, torch2xp(logits.detach())), backprop


def _score(
    session: Session, settings: EntitySettings, module: EntityModule, query: EntityQuery
) -> tuple[Array, torch.Tensor]:
    nothing = torch.zeros(0, module.n_classes, device=session.device)
    if not len(query.spans):
        return np.zeros(0, dtype=np.int64), nothing
    asking = Asking(session, query.docs, query.spans)
    if settings.mode == "probe":
        probed = asking.probe()
        asked = np.flatnonzero(probed.fits)
        return asked, module.head(probed.entities.index_select(0, session.index(asked))).float()
    questions = np.arange(len(query.spans))[:, None]
    asked = np.flatnonzero(asking.fitting(questions, settings.typed_markers))
    if not len(asked):
        return asked, nothing

    def classify(states: torch.Tensor) -> torch.Tensor:
        return module.head(states[:, 0]).float()

    typed = settings.typed_markers
    return asked, asking.marked(
        questions[asked], settings.view, typed, classify, settings.max_mention_pieces
    )
