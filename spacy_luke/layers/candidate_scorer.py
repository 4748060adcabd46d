"""``spacy-luke.CandidateScorer.v1``: scores the entities of a knowledge base that a mention may
mean, and that it means none of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from spacy.tokens import Doc
from spacy.util import registry
from thinc.api import Model
from torch import nn

from ..errors import ConfigError
from ..inputs.placed_spans import PlacedSpans, span_pieces
from ..model.candidate_head import CandidateHead, MentionStates
from ..model.network import AttentionPattern
from ..model.packing import Array
from ..model.ranges import range_means
from ..model.row_head import RowHead, RowLogits
from ..report import LOGGER
from ..validation import Count, Positive, check_settings
from .encoder_module import Encoder
from .encoder_run import EncoderRun
from .entity_rows import entity_rows, has_entity_rows, load_transform
from .entity_scorer import EntityQuery
from .given_spans import ClassScores, EntityInputs, span_states
from .global_inference import Accepts, resolve
from .mention_sentences import sentence_table
from .shim import LearnRates
from .task_head import Head, HeadKind
from .task_layer import Scorer, encoder_of, head_of, scorer_of, task_layer
from .text_vectors import learned_vectors

FEATURES = ("prior", "likeness", "type")
"""Of a candidate, computed without the text: the logarithm of its prior, that of the likeness of
alias and mention, and of its type: agreement with that of the mention, plus its bias."""
CANDIDATES, ROWS = "candidates", "rows"
"""The part of a head that scores candidates: by all terms, or by entity rows alone."""


@dataclass(frozen=True)
class CandidateQuery(EntityQuery):
    """Mentions with their candidates.

    entities: (n_spans, K) rows of ``vectors`` or ``texts``; -1 where a mention has fewer than K
    candidates, and in training where a mention teaches nothing.
    features: (n_spans, K, len(FEATURES)). prior_known: (n_spans, K) whether the prior tells how
    often the mention's text means the entity. vectors: (m, H) of length 1. described: (m,) whether
    an entity has a description. known_rows: (m,) of the same entities in the encoder's table, or
    -1. texts: of the same entities, given instead of ``vectors`` if these are to be learned.
    nil_bias: what will be subtracted from the logit of "none of the candidates". accepts: which
    candidates will be links, as for :func:`.resolve`.
    """

    entities: Array
    features: Array
    prior_known: Array
    vectors: Array
    described: Array
    known_rows: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64), kw_only=True)
    nil_bias: float = field(default=0.0, kw_only=True)
    accepts: Accepts | None = field(default=None, kw_only=True)
    texts: Sequence[Doc] | None = field(default=None, kw_only=True)


def _parts(
    hidden: int,
    n_classes: int,
    temperature: float,
    similarity: float,
    row_size: int = 0,
    row_eps: float = 0.0,
    only_rows: bool = False,
) -> Mapping[str, nn.Module]:
    """row_size: width of the entity table; 0: rows are not used. row_eps: of the LayerNorm."""
    rows = RowLogits(hidden, row_size, row_eps) if row_size else None
    if rows is not None and only_rows:
        return {ROWS: RowHead(rows)}
    return {CANDIDATES: CandidateHead(hidden, len(FEATURES), temperature, similarity, rows)}


@dataclass
class CandidateScorer(Scorer[CandidateQuery, ClassScores]):
    """The settings of ``spacy-luke.CandidateScorer.v1``; see there."""

    temperature: Positive = 0.03
    similarity: float = 0.0
    rows: bool | Literal["only"] = True
    attention: AttentionPattern = "probe"
    inference: Literal["local", "global"] = "local"
    max_rounds: Count = 128
    max_entities: Count = 128
    max_mention_pieces: Count | None = None

    node: ClassVar[str] = "luke-candidate-scorer"
    fixed: ClassVar[tuple[str, ...]] = ("temperature", "similarity", "rows")
    kind: ClassVar[HeadKind] = HeadKind(_parts)

    def __post_init__(self) -> None:
        check_settings("CandidateScorer", CandidateScorer, vars(self))
        if self.inference == "global" and self.attention != "full":
            raise ConfigError(
                "CandidateScorer.inference is 'global', in which mentions see each other; set "
                f"attention to 'full' (it is {self.attention!r})."
            )

    def head_config(self, encoder: Encoder) -> dict[str, Any]:
        config: dict[str, Any] = {"temperature": self.temperature, "similarity": self.similarity}
        if self.rows and has_entity_rows(encoder):
            network = encoder.network.config
            config.update(row_size=network.entity_emb_size, row_eps=network.layer_norm_eps)
            config.update(only_rows=self.rows == "only")
        elif self.rows == "only":
            raise ConfigError(
                f"CandidateScorer.rows is 'only', and {encoder.source.name} has no masked-entity "
                "head (entity_predictions), or no entities besides the special ones."
            )
        return config

    def fits(self, encoder: Model, query: CandidateQuery) -> Array:
        return query.spans.place(encoder, query.docs).fits

    def score(self, run: EncoderRun, head: Head, query: CandidateQuery) -> ClassScores:
        """Logits: (n_scored, 1 + K), first of "none of the candidates"."""
        placed = query.spans.place(run.node, query.docs)
        rows = np.flatnonzero(placed.fits)
        if not len(rows):
            return ClassScores(rows, run.zeros(0, 1 + query.entities.shape[1]))
        inputs = EntityInputs(self.attention, self.max_entities, self.max_mention_pieces)
        states = span_states(run, query.spans, placed, inputs)
        candidates = _Candidates(run, head, query, placed, rows, states.pieces)
        logits = candidates.logits(states.entities, np.arange(len(rows)))
        if self.inference == "local" or run.is_train:
            return ClassScores(rows, logits)
        of_candidates = np.append(query.known_rows, -1)[query.entities[rows]]

        def encode_again(shown: Array, which: Array) -> torch.Tensor:
            ids = np.full(len(query.spans), run.encoder.mask_id)
            ids[rows] = np.where(shown >= 0, shown, run.encoder.mask_id)
            again = span_states(run, query.spans, placed, inputs, ids, rows[which])
            return candidates.logits(again.entities, which)

        resolved, n_open = resolve(
            logits,
            of_candidates,
            states.sequences[rows],
            encode_again,
            query.nil_bias,
            self.max_rounds,
            query.accepts,
        )
        if n_open and run.encoder.reports_first("max_rounds"):
            LOGGER.warning(
                "Global inference stopped after max_rounds (%d), before %d mentions of this batch "
                "were resolved: these have the scores of the last round. This warning is logged "
                "once per encoder.",
                self.max_rounds,
                n_open,
            )
        return ClassScores(rows, resolved)


class _Candidates:
    """The candidates of the mentions that fit, ``rows`` of a query. States of words are those of
    the first pass."""

    def __init__(
        self,
        run: EncoderRun,
        head: Head,
        query: CandidateQuery,
        placed: PlacedSpans,
        rows: Array,
        pieces: torch.Tensor,
    ):
        self.run, self.head, self.query, self.rows = run, head, query, rows
        self.table = entity_rows(run, query.known_rows) if "row_size" in head.config else None
        if not _scores_rows_only(head):
            if query.texts is None:
                self.vectors = run.values(query.vectors)
            else:
                self.vectors = learned_vectors(run, query.texts)
            sentences = sentence_table(query.docs, placed.spans[rows], placed.of_doc[rows])
            of_sentences = span_pieces(placed.pieces, sentences, placed.of_doc[rows])
            of_words = placed.starts[rows], placed.ends[rows]
            self.words = range_means(pieces, *map(run.index, of_words))
            self.sentences = range_means(pieces, *map(run.index, of_sentences))

    def logits(self, masks: torch.Tensor, which: Array) -> torch.Tensor:
        """(len(which), 1 + K) logits of some of the mentions. masks: (n_spans, H)."""
        run, query, rows = self.run, self.query, self.rows[which]
        own_masks = masks.index_select(0, run.index(rows))
        entities = run.index(query.entities[rows])
        if _scores_rows_only(self.head):
            assert self.table is not None
            return self.head.part(ROWS, RowHead)(own_masks, self.table, entities).float()
        chosen = run.index(which)
        states = MentionStates(
            self.words.index_select(0, chosen), self.sentences.index_select(0, chosen), own_masks
        )
        return self.head.part(CANDIDATES, CandidateHead)(
            states,
            self.vectors,
            run.values(query.described),
            entities,
            run.values(query.features[rows]),
            run.values(query.prior_known[rows]),
            self.table,
        ).float()


def _scores_rows_only(head: Head) -> bool:
    return bool(head.config.get("only_rows"))


def only_rows(model: Model) -> bool:
    """Whether a component's model scores candidates by entity rows alone: it uses no vectors of
    entities, and "none of the candidates" is impossible."""
    return _scores_rows_only(head_of(model))


def uses_rows(model: Model) -> bool:
    """Whether a component's model uses entity rows, as a term of scores or as inputs."""
    return "row_size" in head_of(model).config or scorer_of(model).inference == "global"


def row_logits(head: Head) -> RowLogits | None:
    """The part of a head that scores by rows; None if there is none."""
    if _scores_rows_only(head):
        return head.part(ROWS, RowHead).rows
    return head.part(CANDIDATES, CandidateHead).rows


def load_row_logits(model: Model) -> None:
    """Initialise the part that scores by rows from the encoder's masked-entity head."""
    rows = row_logits(head_of(model))
    if rows is not None:
        load_transform(encoder_of(model), rows.transform)


@registry.architectures("spacy-luke.CandidateScorer.v1")
def CandidateScorer_v1(
    encoder: Model,
    *,
    temperature: float = 0.03,
    similarity: float = 0.0,
    rows: bool | Literal["only"] = True,
    attention: Literal["probe", "full"] = "probe",
    inference: Literal["local", "global"] = "local",
    max_rounds: int = 128,
    max_entities: int = 128,
    max_mention_pieces: int | None = None,
    learn_rate_factor: float = 1.0,
) -> Model[CandidateQuery, ClassScores]:
    """Score the candidates of mentions; see :class:`.CandidateHead`.

    encoder: ``spacy-luke.LukeEncoder.v1``, or ``spacy-luke.LukeListener.v1`` to share one.
    temperature: cosines are divided by it, and added to the logarithm of the prior.
    similarity: an untrained head scores "none of the candidates" like a candidate with this cosine
        and a prior of 1.
    rows: use what the encoder knows of entities, if it has a masked-entity head and rows: the
        head's logits of candidates (:class:`.RowLogits`). ``only``: these alone count, and "none of
        the candidates" is impossible, as in published disambiguation models. Used by
        ``nlp.initialize()``; not to be changed later.
    attention: ``probe`` (mentions do not see each other) or ``full`` (as pretrained).
    inference: ``local`` is one pass, as in training; ``global``, with full attention, resolves the
        mentions of a sequence one after the other, and shows the entity of each to the others.
    max_rounds: most passes of ``global``; a sequence needs at most one per mention.
    max_entities: (``full`` only) most mentions of a sequence; windows with more are repeated.
    max_mention_pieces: the number of a mention's first pieces that its positions use; 30 in
        published models, by default all.
    learn_rate_factor: learning rate of the head, relative to the config's.
    """
    scorer = CandidateScorer(
        temperature,
        similarity,
        rows,
        attention,
        inference,
        max_rounds,
        max_entities,
        max_mention_pieces,
    )
    return task_layer(encoder, scorer, LearnRates(learn_rate_factor))
