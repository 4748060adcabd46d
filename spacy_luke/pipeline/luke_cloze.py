"""``luke_cloze``: which entity of a document belongs in the gap of a query."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.vocab import Vocab
from thinc.api import Config, Model

from ..annotations.attributes import require
from ..annotations.queries import has_completions, query_texts, set_completions
from ..checkpoint.classes import SPAN_QUESTIONS
from ..layers.cloze_scorer import ClozeQuery, ClozeScorer
from ..layers.given_spans import ClassScores
from ..metrics.answers import Answers
from ..metrics.cloze import COMPLETION, are_asked, cloze_answers, cloze_score
from .as_in_training import as_in_training, entities_are_learned
from .asked import Asked
from .class_loss import Targets, binary_loss
from .cloze_decoding import complete
from .cloze_query import cloze_query
from .cloze_targets import ADVICE, LOST, cloze_targets, count_limits
from .entity_task import EntityTask
from .tokenizer import Tokenizer

DEFAULT_CONFIG = Config().from_str(
    """
[luke_cloze]
spans_key = null
threshold = 0.0
scorer = {"@scorers":"spacy-luke.luke_cloze_scorer.v1"}

[luke_cloze.model]
@architectures = "spacy-luke.ClozeScorer.v1"

[luke_cloze.model.encoder]
@architectures = "spacy-luke.LukeEncoder.v1"
name = "studio-ousia/luke-base"
"""
)


@Language.factory(
    "luke_cloze",
    assigns=["doc._.completions"],
    requires=["doc._.queries", "doc.ents"],
    default_config=DEFAULT_CONFIG["luke_cloze"],
    default_score_weights={"cloze_em": 1.0, "cloze_f1": 0.0},
)
def make_luke_cloze(
    nlp: Language,
    name: str,
    model: Model[ClozeQuery, ClassScores],
    spans_key: str | None,
    threshold: float,
    scorer: Callable | None,
) -> "LukeCloze":
    """Construct a cloze component.

    model: ``spacy-luke.ClozeScorer.v1``.
    spans_key: the spans group with the candidates of queries that do not name theirs; by default
        ``Doc.ents``.
    threshold: least score of a completion; by default all candidates are given.
    """
    return LukeCloze(
        nlp.vocab, model, name, nlp.tokenizer, scorer, spans_key=spans_key, threshold=threshold
    )


class LukeCloze(Asked[ClozeQuery, ClassScores], EntityTask[ClozeQuery]):
    """Complete ``Doc._.queries`` with entities of the document, in ``Doc._.completions``."""

    architecture = "spacy-luke.ClozeScorer.v1"
    node = ClozeScorer.node
    out_of_reach = LOST
    classes = SPAN_QUESTIONS.classes
    answer_label = COMPLETION
    reads_group = False  # there may be no queries, or they name their candidates
    asked, answered = "queries", "completions"

    def __init__(
        self,
        vocab: Vocab,
        model: Model,
        name: str,
        make_doc: Tokenizer,
        scorer: Callable | None = cloze_score,
        **cfg: Any,
    ) -> None:
        super().__init__(vocab, model, name, scorer, **cfg)
        self.make_doc = make_doc
        require("queries", "completions")

    # Queries

    def _query(self, docs: Sequence[Doc]) -> ClozeQuery:
        return cloze_query(docs, self.spans_key, self.make_doc)

    def _part(self, query: ClozeQuery, low: int, high: int) -> ClozeQuery:
        return self._query(query.docs[low:high])

    def _n_readings(self, doc: Doc) -> int:
        return max(1, len(query_texts(doc)))

    # Prediction

    def set_annotations(self, docs: Iterable[Doc], scores: tuple[ClozeQuery, ClassScores]) -> None:
        """Write ``Doc._.completions``. A candidate that was not scored is not among them, unless
        another mention of its entity was."""
        query, values = scores
        logits = values.logits[:, 0].astype("float64")
        completions = complete(query, values.rows, logits, self._confidence)
        for doc in docs:
            set_completions(doc, [next(completions) for _ in query_texts(doc)])

    def _are_asked(self, examples: Sequence[Example]) -> bool:
        return are_asked(examples)

    def answers(self, examples: Iterable[Example]) -> Answers:
        return cloze_answers(examples)

    def best_least_score(self, examples: Iterable[Example]) -> float:
        """0: the share of queries that are answered right only falls if some get no answer."""
        return 0.0

    # Training

    def _missing_input(self, query: ClozeQuery) -> str:
        asked = any(query_texts(doc) for doc in query.docs)
        return super()._missing_input(query) if asked else f"has no query. {ADVICE}"

    def _annotated(self, examples: Iterable[Example]) -> Iterator[Example]:
        return (eg for eg in examples if has_completions(eg.reference))

    def _targets(self, examples: Sequence[Example], query: ClozeQuery) -> Targets:
        return cloze_targets(examples, query)

    def _loss(
        self, query: ClozeQuery, scores: ClassScores, targets: Targets
    ) -> tuple[float, ClassScores]:
        """Binary cross-entropy per mention, as published."""
        right, known = (x[scores.rows] for x in targets)
        loss, d_logits = binary_loss(self.model.ops, scores.logits, right, known)
        return loss, scores._replace(logits=d_logits)

    def _find_limits(
        self, nlp: Language | None, get_examples: Callable[[], Iterable[Example]]
    ) -> dict[str, int]:
        # A component that is trained in the same run does not predict entities yet.
        gold = entities_are_learned(nlp, self.name, self.spans_key)
        examples = as_in_training(nlp, self.name, self._annotated(get_examples()), gold=gold)
        return count_limits(self.name, self.model, examples, self._query)
