"""``spacy-luke.EntityScorer.v1``: scores the classes of given spans, in one of two modes.

``markers`` is the published form of entity typing (Yamada et al. 2020, section 4.1): one sequence
per mention. ``probe`` scores all mentions of a window together.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from spacy.tokens import Doc
from spacy.util import registry
from thinc.api import Model
from torch import nn

from ..checkpoint.classes import ENTITY_TYPING
from ..model.heads import LinearHead
from ..model.packing import Array
from .encoder_run import EncoderRun
from .given_spans import ClassScores, GivenScorer, GivenSpans, span_states
from .shim import LearnRates
from .task_head import Head, HeadKind
from .task_layer import task_layer


@dataclass(frozen=True)
class EntityQuery:
    """Documents, and the spans whose classes are scored."""

    docs: Sequence[Doc]
    spans: GivenSpans

    @property
    def of_doc(self) -> Array:
        """(n_spans,) the document of each span."""
        return self.spans.of_doc


def _parts(hidden: int, n_classes: int) -> Mapping[str, nn.Module]:
    return {"head": LinearHead(hidden, 1, n_classes)}


ENTITY_HEAD = HeadKind(_parts, ENTITY_TYPING.n_states, ENTITY_TYPING.name)


@dataclass
class EntityScorer(GivenScorer[EntityQuery]):
    """The settings of ``spacy-luke.EntityScorer.v1``; see there."""

    node: ClassVar[str] = "luke-entity-scorer"
    name: ClassVar[str] = "EntityScorer"
    kind: ClassVar[HeadKind] = ENTITY_HEAD

    def fits(self, encoder: Model, query: EntityQuery) -> Array:
        placed = query.spans.place(encoder, query.docs)
        if self.mode == "probe":
            return placed.fits
        return self.marked(encoder, query.spans, placed).fits(_each(query.spans))

    def score(self, run: EncoderRun, head: Head, query: EntityQuery) -> ClassScores:
        spans, linear = query.spans, head.part("head", LinearHead)
        if not len(spans):
            return ClassScores(np.zeros(0, dtype=np.int64), run.zeros(0, head.n_classes))
        placed = spans.place(run.node, query.docs)
        if self.mode == "probe":
            rows = np.flatnonzero(placed.fits)
            states = span_states(run, spans, placed).entities
            logits = linear(states.index_select(0, run.index(rows))[:, None]).float()
            return ClassScores(rows, logits)
        marked = self.marked(run.node, spans, placed)
        rows = np.flatnonzero(marked.fits(_each(spans)))
        if not len(rows):
            return ClassScores(rows, run.zeros(0, head.n_classes))
        logits = marked.classify(run, rows[:, None], linear, self.view, self.max_mention_pieces)
        return ClassScores(rows, logits)


def _each(spans: GivenSpans) -> Array:
    """(n, 1) rows of one span each."""
    return np.arange(len(spans))[:, None]


@registry.architectures("spacy-luke.EntityScorer.v1")
def EntityScorer_v1(
    encoder: Model,
    *,
    mode: Literal["markers", "probe"] = "probe",
    view: Literal["document", "sentence"] = "document",
    typed_markers: bool = False,
    max_mention_pieces: int | None = None,
    learn_rate_factor: float = 1.0,
) -> Model[EntityQuery, ClassScores]:
    """Score the classes of spans.

    encoder: ``spacy-luke.LukeEncoder.v1``, or ``spacy-luke.LukeListener.v1`` to share one.
    mode: ``markers``: one sequence per span, between marker pieces, as published; ``probe``: all
        spans of a window together.
    view: (``markers`` only) the text of a sequence: as much of the ``document`` as fits the window,
        or only the ``sentence`` of the span.
    typed_markers: (``markers`` only) the markers contain the span's label.
    max_mention_pieces: (``markers`` only) the number of a span's first pieces, markers included,
        that its positions use; 30 in published models, by default all.
    learn_rate_factor: learning rate of the head, relative to the config's.
    """
    scorer = EntityScorer(mode, view, typed_markers, max_mention_pieces)
    return task_layer(encoder, scorer, LearnRates(learn_rate_factor))
