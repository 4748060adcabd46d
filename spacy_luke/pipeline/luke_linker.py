"""``luke_linker``: links entities to a knowledge base, or says that they are not in it."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import srsly
from pydantic import Field
from spacy.kb import KnowledgeBase
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import minibatch
from spacy.vocab import Vocab
from thinc.api import Config, Model

from ..annotations.attributes import require
from ..annotations.candidates import set_candidates
from ..errors import ConfigError
from ..forked_locks import ForkedLock
from ..kb.entity import NIL, Entity, Findings
from ..kb.knowledge_base import MappedKB
from ..layers.candidate_scorer import CandidateQuery, CandidateScorer, load_row_logits, only_rows
from ..layers.given_spans import ClassScores
from ..layers.task_layer import encoder_below, fits, has_head
from ..metrics.answers import Answer, Answers
from ..metrics.links import SETTINGS, link_answers, link_score
from ..validation import Count, Name, setting
from .class_loss import Targets
from .entity_task import EntityTask, given_spans
from .entity_vectors import EntityVectors, Text
from .learned_settings import LearnedSettings
from .leave_one_out import leave_out
from .link_candidates import (
    GetCandidates,
    GetCandidatesBatch,
    candidate_arrays,
    find_candidates,
)
from .link_query import LinkQuery, with_entities
from .link_scores import ranked
from .links import (
    FIRST,
    count_links,
    gold_ids,
    link_targets,
    report_links,
    spans_to_link,
    write_links,
)
from .tokenizer import Tokenizer
from .type_bias import TypeBias
from .vocab_candidates import VocabCandidates
from .without_labels import WithoutLabels

Array = np.ndarray
KBLoader = Callable[[Vocab], KnowledgeBase]

_EDITING = ForkedLock()
"""Of all linkers, because a component with a lock could not be copied."""

LINK = "link"
"""What all answers are, for calibration and thresholds."""

_NOT_GIVEN = {"from_vocabulary": None, "type_bias": None, "leave_one_out": None}
"""Settings that files of earlier versions lack."""

DEFAULT_CONFIG = Config().from_str(
    """
[luke_linker]
spans_key = null
labels_discard = []
incl_prior = true
type_bias = null
leave_one_out = null
entity_text = "description"
max_vector_age = 0
threshold = 0.0
nil_bias = 0.0
overwrite = true
get_candidates = null
get_candidates_batch = {"@misc":"spacy-luke.alias_candidates_batch.v1"}
candidates_batch_size = 1000
nearest = 30
from_vocabulary = null
generate_empty_kb = {"@misc":"spacy-luke.EmptyKB.v1"}
scorer = {"@scorers":"spacy-luke.luke_linker_scorer.v1"}

[luke_linker.model]
@architectures = "spacy-luke.CandidateScorer.v1"

[luke_linker.model.encoder]
@architectures = "spacy-luke.LukeEncoder.v1"
name = "studio-ousia/luke-base"
"""
)


@Language.factory(
    "luke_linker",
    requires=["doc.ents", "token.ent_iob", "token.ent_type"],
    assigns=["token.ent_kb_id", "span._.candidates"],
    default_config=DEFAULT_CONFIG["luke_linker"],
    default_score_weights={"nel_micro_f": 1.0, "nel_micro_r": None, "nel_micro_p": None},
)
def make_luke_linker(
    nlp: Language,
    name: str,
    model: Model[CandidateQuery, ClassScores],
    spans_key: str | None,
    labels_discard: list[str],
    incl_prior: bool,
    type_bias: dict[str, float] | None,
    leave_one_out: bool | None,
    entity_text: Text,
    max_vector_age: int,
    threshold: float,
    nil_bias: float,
    overwrite: bool,
    get_candidates: GetCandidates | None,
    get_candidates_batch: GetCandidatesBatch,
    candidates_batch_size: int,
    nearest: int,
    from_vocabulary: int | None,
    generate_empty_kb: Callable[[Vocab, int], KnowledgeBase],
    scorer: Callable | None,
) -> "LukeLinker":
    """Construct an entity linking component.

    model: ``spacy-luke.CandidateScorer.v1``.
    spans_key: the spans group to link; by default ``Doc.ents``.
    labels_discard: mentions with these labels are not linked.
    incl_prior: whether the prior of an alias counts.
    type_bias: type of entities -> what is added to their logits where candidates have several
        types. If it is null, ``initialize`` learns it from the links of the training data.
    leave_one_out: whether in training a mention is left out of the counts that make its prior. If
        it is null, ``initialize`` sets it: true if the counts contain the training data's links.
    entity_text: what stands for an entity: its ``name``, or its name and ``description``.
    max_vector_age: if the encoder is trained, it changes with every update. With 0, an update makes
        the vectors of its candidates, and learns them, too; with a number, they are used for so
        many updates, which is cheaper and teaches less. They are never old in predictions.
    threshold: least score of a link; below it a mention gets "NIL".
    nil_bias: subtracted from the logit of "NIL"; ``spacy luke tune`` chooses it.
    overwrite: replace existing links; if false, a mention that has one keeps it.
    get_candidates_batch: gives the candidates of many mentions; see ``spacy-luke.
        alias_candidates_batch.v1``. get_candidates: of one mention; used instead if it is not null.
    candidates_batch_size: mentions per call of ``get_candidates_batch``.
    nearest: candidates by the nearest vectors of names, for mentions that are not equal to an
        alias, if the knowledge base has such vectors.
    from_vocabulary: candidates that the encoder's masked-entity head predicts, of all entities that
        the knowledge base and its vocabulary share, whatever their names. It costs another pass.
    generate_empty_kb: makes the knowledge base to which a saved one is read.
    """
    return LukeLinker(
        nlp.vocab,
        model,
        name,
        nlp.tokenizer,
        get_candidates_batch,
        get_candidates,
        generate_empty_kb,
        scorer,
        spans_key=spans_key,
        labels_discard=labels_discard,
        incl_prior=incl_prior,
        type_bias=type_bias,
        leave_one_out=leave_one_out,
        entity_text=entity_text,
        max_vector_age=max_vector_age,
        threshold=threshold,
        nil_bias=nil_bias,
        overwrite=overwrite,
        candidates_batch_size=candidates_batch_size,
        nearest=nearest,
        from_vocabulary=from_vocabulary,
    )


class LukeLinker(WithoutLabels[LinkQuery, ClassScores], EntityTask[LinkQuery]):
    """Link given entities to a knowledge base.

    kb: the knowledge base; it is saved with the component.
    """

    architecture = "spacy-luke.CandidateScorer.v1"
    node = CandidateScorer.node
    layer = "ents"
    classes = ("candidate",)  # beside them "none of the candidates", which has no row
    answer_label = LINK
    out_of_reach = ("no mention", "too long", "unknown id", "no candidate", "counted only there")
    learned_settings = ("type_bias", "leave_one_out")

    labels_discard: list[Name] = setting()
    incl_prior: bool = setting()
    type_bias: TypeBias | None = setting()
    leave_one_out: bool | None = setting()
    entity_text: Text = setting()
    max_vector_age: Annotated[int, Field(ge=0)] = setting()
    nil_bias: float = setting()
    overwrite: bool = setting()
    candidates_batch_size: Count = setting()
    nearest: Count = setting()
    from_vocabulary: Count | None = setting()

    kb: MappedKB
    get_candidates: GetCandidates | None
    get_candidates_batch: GetCandidatesBatch
    generate_empty_kb: Callable[[Vocab, int], KnowledgeBase]

    def __init__(
        self,
        vocab: Vocab,
        model: Model,
        name: str,
        tokenizer: Tokenizer,
        get_candidates_batch: GetCandidatesBatch,
        get_candidates: GetCandidates | None = None,
        generate_empty_kb: Callable[[Vocab, int], KnowledgeBase] = MappedKB,
        scorer: Callable | None = link_score,
        **cfg: Any,
    ) -> None:
        super().__init__(vocab, model, name, scorer, **{**_NOT_GIVEN, **cfg})
        self.get_candidates, self.get_candidates_batch = get_candidates, get_candidates_batch
        self.generate_empty_kb = generate_empty_kb
        self._vectors, self._vocab = EntityVectors(tokenizer, self), VocabCandidates()
        self._learned = LearnedSettings(self)
        self._strangers: set[str] = set()  # candidates that the knowledge base lacks
        self.kb = self._checked(self._empty_kb())
        require("candidates", "allowed_ids", "types")

    # The knowledge base

    def set_kb(self, kb_loader: KBLoader) -> None:
        """Use another knowledge base; nothing is trained again."""
        self.kb = self._checked(kb_loader(self.vocab))

    def edit_kb(self, add: Iterable[Entity] = (), remove: Iterable[str] = ()) -> Findings:
        """Add, change (if their id exists) or remove entities; nothing is trained again. Returns
        what was changed and left out. See
        :meth:`spacy_luke.kb.knowledge_base.MappedKB.edited`."""
        findings = Findings()
        with _EDITING:  # another thread's edit would be lost
            self.kb = self.kb.edited(add, remove, findings=findings)
        return findings

    def _checked(self, kb: KnowledgeBase) -> MappedKB:
        if not isinstance(kb, MappedKB):
            raise ConfigError(
                f"{self.name} needs a knowledge base of spacy-luke, not {type(kb).__name__}. "
                "'spacy luke kb' makes one of spaCy's, and spacy-luke.KBFromFile.v1 reads it."
            )
        return kb

    def _filled_kb(self) -> MappedKB:
        if self.kb.is_empty():
            raise ConfigError(
                f"The knowledge base of {self.name} is empty. Make one with 'spacy luke kb', and "
                f"set [initialize.components.{self.name}] kb_loader, or call set_kb."
            )
        return self.kb

    # Queries

    def _query(self, docs: Sequence[Doc]) -> LinkQuery:
        query = self._mentions(docs, learning=False)
        return with_entities(query, self.model, self._vectors)

    def _query_to_learn(self, docs: Sequence[Doc]) -> LinkQuery:
        """What the encoder says of entities follows in ``_before_update``, for the mentions that
        teach something."""
        return self._mentions(docs, learning=True)

    def _mentions(self, docs: Sequence[Doc], learning: bool) -> LinkQuery:
        """The mentions and their candidates, without what the encoder says of these."""
        kb, discarded = self._filled_kb(), set(self.labels_discard)
        found = [spans_to_link(doc, self.spans_key, discarded) for doc in docs]
        by_doc = [spans for spans, _ in found]
        mentions = [span for spans in by_doc for span in spans]
        labels = [names for _, of_spans in found for names in of_spans]
        candidates = find_candidates(
            kb,
            mentions,
            self.get_candidates,
            self.get_candidates_batch,
            self.candidates_batch_size,
            lambda texts: self._vectors.nearest(
                kb, encoder_below(self.model), texts, self.nearest, learning
            ),
            partial(self._predicted, kb, k=self.from_vocabulary) if self.from_vocabulary else None,
            self._strangers,
        )
        rows, features, prior_known = candidate_arrays(
            kb, mentions, labels, candidates, self.incl_prior, self.type_bias or {}
        )
        empty = np.zeros(0)
        return LinkQuery(
            docs,
            given_spans(by_doc),
            rows,
            features,
            prior_known,
            empty,
            empty,
            by_doc,
            rows,
            kb,
            nil_bias=self.nil_bias,
            accepts=self._accepts,
        )

    def _accepts(self, probabilities: np.ndarray) -> np.ndarray:
        """Which best candidates (n,) are links, whose scores are not below the threshold."""
        of_label = np.zeros(len(probabilities), dtype=np.int64)
        return self._confidence.accepts(of_label, self._confidence.scores(of_label, probabilities))

    def _predicted(self, kb: MappedKB, mentions: Sequence[Span], k: int) -> list[list[int]]:
        return self._vocab.find(kb, self.model, mentions, k)

    def _part(self, query: LinkQuery, low: int, high: int) -> LinkQuery:
        by_doc, own = query.by_doc[low:high], (query.of_doc >= low) & (query.of_doc < high)
        return replace(
            query,
            docs=query.docs[low:high],
            spans=given_spans(by_doc),
            entities=query.entities[own],
            features=query.features[own],
            prior_known=query.prior_known[own],
            by_doc=by_doc,
            rows=query.rows[own],
        )

    # Prediction

    def set_annotations(self, docs: Iterable[Doc], scores: tuple[LinkQuery, ClassScores]) -> None:
        """Write ``kb_id_`` and ``Span._.candidates`` of the mentions. A mention that was not scored
        gets "NIL"."""
        query, values = scores
        scored = ranked(
            values.logits,
            query.rows[values.rows],
            query.kb.tables.ids,
            self._confidence,
            self.nil_bias,
        )
        found = dict(zip(values.rows.tolist(), scored))
        row = 0
        for doc, mentions in zip(query.docs, query.by_doc):
            ids = {}
            for span in mentions:
                is_link, candidates = found.get(row, (False, []))
                row += 1
                if self.overwrite or not span.kb_id:
                    ids[span.start, span.end] = candidates[0][0] if is_link else NIL
                    set_candidates(span, candidates)
            write_links(doc, ids, self.cfg)

    def answers(self, examples: Iterable[Example]) -> Answers:
        answers = link_answers(examples, **{name: self.cfg[name] for name in SETTINGS})
        return Answers(
            [Answer(LINK, x.score, x.right) for x in answers.found],
            Counter({LINK: answers.n_gold.total()}),
        )

    # Training

    def _targets(self, examples: Sequence[Example], query: LinkQuery) -> Targets:
        gold = gold_ids(examples, query.by_doc, self.spans_key, self.labels_discard)
        return link_targets(gold, query.rows, query.kb.tables.ids, not only_rows(self.model))

    def _before_update(self, query: LinkQuery, targets: Targets) -> tuple[LinkQuery, Targets]:
        query, targets = super()._before_update(query, targets)
        if self.leave_one_out and not only_rows(self.model):  # rows alone need no prior
            query, targets = leave_out(query, targets)
        return with_entities(query, self.model, self._vectors, teaches=targets[1]), targets

    def initialize(  # type: ignore[override]  # spaCy passes each component its own settings
        self,
        get_examples: Callable[[], Iterable[Example]] | None = None,
        *,
        nlp: Language | None = None,
        kb_loader: KBLoader | None = None,
    ) -> None:
        """Read the encoder's weights and the knowledge base, and count what cannot be linked.

        get_examples: not needed for a linker that is not trained. kb_loader: by default the present
        knowledge base is used.

        Raises ConfigError if it is empty, and if there are gold links, and none of them nor any
        "NIL" can be learned.
        """
        if kb_loader is not None:
            self.set_kb(kb_loader)
        self._filled_kb()
        if nlp is not None:  # whose tokenizer may be another than when the component was made
            self._vectors.tokenizer = nlp.tokenizer
        super().initialize(get_examples or self._no_examples, nlp=nlp)

    def _no_examples(self) -> list[Example]:
        """One that says nothing: spaCy requires one."""
        return [Example(Doc(self.vocab, words=["x"]), Doc(self.vocab, words=["x"]))]

    def _initialize_classes(self, names: set[str], **config: Any) -> None:
        super()._initialize_classes(names, **config)
        load_row_logits(self.model)

    def _count_limits(self, examples: Iterable[Example]) -> dict[str, int]:
        """Count and log the gold links that cannot be predicted, and the recall of candidates."""
        n_docs = 0
        names = ("mentions", "NIL", "NIL out of reach", "gold", *self.out_of_reach)
        counts = dict.fromkeys((*names, FIRST), 0)
        k = 0
        key, ids = self.spans_key, self.kb.tables.ids
        learns = not only_rows(self.model)  # scores have no other terms
        if learns:
            self._learned.start()
        for batch in minibatch(examples, 64):
            examples = list(batch)
            n_docs += len(examples)
            query = self._mentions([eg.predicted for eg in examples], learning=False)
            fit, k = fits(self.model, query), max(k, query.rows.shape[1])
            discard = self.labels_discard
            count_links(counts, examples, query.by_doc, query.rows, fit, ids, key, discard)
            if learns:
                self._learned.add(query, self._targets(examples, query))
        report_links(self.name, counts, n_docs, key, k)
        del counts[FIRST]  # no limit
        if learns:
            n_other = counts["unknown id"] + counts["no candidate"]
            counts["counted only there"] = self._learned.finish(n_other)
        return counts

    def _check_reach(self) -> None:
        # "NIL" is not in limits["gold"], and may be learned even if no link is.
        n_nil = self.limits["NIL"] - self.limits["NIL out of reach"]
        if only_rows(self.model) or not n_nil:
            super()._check_reach()

    # Files

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Write the component, with its knowledge base in the folder ``kb``. Vectors that were made
        by other weights are made again before."""
        path, exclude = Path(path), tuple(exclude)
        self._renew_vectors()
        super().to_disk(path, exclude=exclude)
        if "kb" not in exclude:
            self.kb.to_disk(path / "kb")

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> "LukeLinker":
        path, exclude = Path(path), tuple(exclude)
        if "cfg" not in exclude:
            self._learned.forget()  # it was learned of other data
        super().from_disk(path, exclude=exclude)
        if "kb" not in exclude:
            self.kb = self._checked(self._empty_kb().from_disk(path / "kb"))
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        exclude = tuple(exclude)
        self._renew_vectors()
        parts = {"pipe": super().to_bytes(exclude=exclude)}
        if "kb" not in exclude:
            parts["kb"] = self.kb.to_bytes()
        return srsly.msgpack_dumps(parts)

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> "LukeLinker":
        exclude, parts = tuple(exclude), srsly.msgpack_loads(data)
        super().from_bytes(parts["pipe"], exclude=exclude)
        if "kb" not in exclude and "kb" in parts:
            self.kb = self._checked(self._empty_kb().from_bytes(parts["kb"]))
        return self

    def _empty_kb(self) -> KnowledgeBase:
        return self.generate_empty_kb(self.vocab, 1)

    def _renew_vectors(self) -> None:
        if has_head(self.model):
            self._vectors.renew(self.kb, encoder_below(self.model))
