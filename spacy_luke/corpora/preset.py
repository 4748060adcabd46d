"""A corpus reader that sets gold entities, sentence starts and questions on predicted documents."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import registry

from ..annotations.alignment import aligned_sent_starts, aligned_spans, set_sent_starts
from ..annotations.queries import copy_queries
from ..annotations.questions import copy_questions
from ..annotations.types import get_types, set_types
from ..errors import ConfigError
from ..report import LOGGER
from .cut_corpus import CutCorpus

_KEEP = ("ner", "beam_ner", "entity_ruler", "future_entity_ruler")
"""Factories of components that find entities and keep those that are there, or those that no new
one overlaps."""
_MAY_KEEP = ("luke_ner", "known_names")
"""Those that keep them, or replace them all."""

ExampleReader = Callable[[Language], Iterable[Example]]


@registry.readers("spacy-luke.PresetEntsCorpus.v1")
def preset_ents_corpus(
    path: Path | None,
    gold_preproc: bool = False,
    max_length: int = 0,
    limit: int = 0,
    augmenter: Callable | None = None,
    spans_key: str | None = None,
    types_from_labels: bool = False,
    ents: bool = True,
    sents: bool = False,
    links: bool = False,
    questions: bool = True,
) -> ExampleReader:
    """Make a reader of ``.spacy`` files that sets gold annotation on the predicted documents.

    Components that *consume* entities (relations, typing, linking) need it: with spaCy's own
    corpus, predicted documents have no entities. ``luke_ner`` overwrites the preset ones (their
    labels and kb ids; an entity without an entity id keeps, in spaCy, the one its tokens had).
    spaCy's ``ner`` and ``entity_ruler`` keep them, as do ``luke_ner`` and ``known_names`` with
    ``overwrite = false``, if no other component replaces them: the gold ones count as found then,
    which a warning says. Scores computed with preset entities are scores with gold entities, not
    scores of the whole pipeline.

    path: a ``.spacy`` file, or a directory of them.
    gold_preproc, max_length, limit, augmenter: as for ``spacy.Corpus.v1``.
    spans_key: also preset this group of ``Doc.spans``.
    types_from_labels: use named entity data as typing data. In the reference, the label of each
        entity and each span of ``spans_key`` without types becomes its type.
    ents: preset the entities.
    sents: preset sentence starts, for documents in which all tokens are annotated with them. For
        all other documents use a sentencizer, with ``overwrite = false``.
    links: preset the ``kb_id_`` of entities and spans, too. Only for components that need gold
        links: ``luke_relation`` with ``merge_entities``, ``luke_cloze``. A component that predicts
        links, and an encoder that reads them, would otherwise see the answers.
    questions: preset ``Doc._.questions``, with the entities of questions that are documents, and
        ``Doc._.queries``.

    Types, relations, answers and completions of the reference are never preset, as components
    predict them. If ``gold_preproc`` or ``max_length`` cut a document into sentences, annotation
    within a sentence is kept; the rest, and all of its questions and queries, are counted and
    logged.

    Raises ConfigError if ``path`` is not given or does not exist.
    """
    if path is None:
        raise ConfigError("path of spacy-luke.PresetEntsCorpus.v1 is null; give a .spacy file.")
    if not Path(path).exists():
        raise ConfigError(f"path of spacy-luke.PresetEntsCorpus.v1: {path} does not exist.")
    corpus = CutCorpus(
        path, gold_preproc=gold_preproc, max_length=max_length, limit=limit, augmenter=augmenter
    )
    return PresetEntsCorpus(corpus, spans_key, types_from_labels, ents, sents, links, questions)


class PresetEntsCorpus:
    """Wraps a corpus and copies gold entities, sentence starts and questions from reference to
    predicted documents.

    The two documents may have different tokens. An entity or span of the reference that does not
    align with tokens of the predicted document is not copied, but counted. The counts are logged
    once, at the end of the first pass.
    """

    def __init__(
        self,
        corpus: ExampleReader,
        spans_key: str | None = None,
        types_from_labels: bool = False,
        ents: bool = True,
        sents: bool = False,
        links: bool = False,
        questions: bool = True,
    ) -> None:
        self.corpus = corpus
        self.spans_key = spans_key
        self.types_from_labels = types_from_labels
        self.ents = ents
        self.sents = sents
        self.links = links
        self.questions = questions
        self._reported = self._warned = False

    def __call__(self, nlp: Language) -> Iterator[Example]:
        """Yield the corpus' examples with annotation set on their predicted documents."""
        counts = PresetCounts()
        if self.ents and not self._warned:
            self._warned = warn_of_kept_entities(nlp)
        try:
            for example in self.corpus(nlp):
                counts.docs += 1
                # A document joined from unannotated ones has only the starts of these.
                if self.sents and example.reference.has_annotation(
                    "SENT_START", require_complete=True
                ):
                    preset_sents(example)
                if self.ents:
                    preset_entities(example, counts, self.links)
                if self.spans_key is not None:
                    preset_spans(example, self.spans_key, counts, self.links)
                if self.questions:
                    copy_questions(example.reference, example.predicted)
                    copy_queries(example.reference, example.predicted)
                if self.types_from_labels:
                    add_types_from_labels(example.reference, self.spans_key)
                yield example
        finally:
            if not self._reported:
                self._reported = counts.log(self.spans_key)


def warn_of_kept_entities(nlp: Language) -> bool:
    """Log a warning if components that predict entities keep those that are there: gold entities
    count as found then. Returns whether it did."""
    found: list[tuple[str, str, Any]] = [
        (name, nlp.get_pipe_meta(name).factory, pipe) for name, pipe in nlp.pipeline
    ]
    own = [(name, pipe) for name, factory, pipe in found if factory in _MAY_KEEP and _writes(pipe)]
    if any(pipe.overwrite for _, pipe in own):
        return False  # no gold entity is left
    kept = [name for name, factory, _ in found if factory in _KEEP]
    kept += [name for name, _ in own]
    if kept:
        LOGGER.warning(
            "Gold entities are set on predicted documents, and %s, which would find entities, "
            "keeps those that are there: they count as found in ents_f of this data. Read "
            "development data by spacy.Corpus.v1, or with ents = false. This warning is logged "
            "once per reader.",
            ", ".join(kept),
        )
    return bool(kept)


def _writes(pipe: Any) -> bool:
    """Whether a component of ours writes ``Doc.ents``, not a group alone."""
    return getattr(pipe, "annotate_ents", True) and not getattr(pipe, "nested", False)


class PresetCounts:
    """Counts of one pass over a corpus."""

    def __init__(self) -> None:
        self.spans = 0
        self.misaligned = 0
        self.first_misaligned = ""
        self.docs = 0
        self.docs_without_group = 0

    def leave_out(self, span: Span) -> None:
        """Count a span that is not preset."""
        self.misaligned += 1
        place = f"{span.text!r} in {span.doc.text[:60]!r}"
        self.first_misaligned = self.first_misaligned or place

    def log(self, spans_key: str | None) -> bool:
        """Log a warning if anything was left out. Returns whether it did."""
        if self.misaligned:
            LOGGER.warning(
                "%d of %d gold entities and spans do not align with the tokens of the predicted "
                "documents and are not preset (the first: %s). gold_preproc = true of a corpus "
                "reader keeps the gold tokens; files are converted in the pipeline's language "
                "(--lang).",
                self.misaligned,
                self.spans,
                self.first_misaligned,
            )
        if self.docs_without_group:
            LOGGER.warning(
                "%d of %d documents have no spans group %r; they get an empty one.",
                self.docs_without_group,
                self.docs,
                spans_key,
            )
        return bool(self.misaligned or self.docs_without_group)


def preset_entities(example: Example, counts: PresetCounts, links: bool = True) -> None:
    """Copy the reference's entities, with label and entity id, to ``predicted.ents``.

    links: also copy their ``kb_id_``. Of two that share a predicted token (as white space between
    them may be) the first is copied."""
    ents: list[Span] = []
    for ent in _align(example, example.reference.ents, counts, links):
        if ents and ent.start < ents[-1].end:
            counts.leave_out(ent)
        else:
            ents.append(ent)
    example.predicted.set_ents(ents, default="outside")


def preset_sents(example: Example) -> None:
    """Copy the reference's sentence starts to ``predicted``; unknown if the reference has none."""
    set_sent_starts(example.predicted, aligned_sent_starts(example))


def preset_spans(example: Example, key: str, counts: PresetCounts, links: bool = True) -> None:
    """Copy the reference's spans group ``key``; a missing group is copied as an empty one.

    links: also copy the ``kb_id_`` of its spans."""
    if key not in example.reference.spans:
        counts.docs_without_group += 1
        example.predicted.spans[key] = []
        return
    example.predicted.spans[key] = _align(example, example.reference.spans[key], counts, links)


def add_types_from_labels(doc: Doc, key: str | None) -> None:
    """Use labels as types, for entities and the spans of a group that have no types.

    Spans of the same tokens share their types: they get all labels.
    """
    group = doc.spans[key] if key is not None and key in doc.spans else ()
    untyped = [span for span in (*doc.ents, *group) if span.label and get_types(span) is None]
    for span in untyped:
        set_types(span, {**(get_types(span) or {}), span.label_: 1.0})


def _align(
    example: Example, spans: Iterable[Span], counts: PresetCounts, links: bool
) -> list[Span]:
    aligned: list[Span] = []
    spans = list(spans)
    for span, place in zip(spans, aligned_spans(example, spans)):
        counts.spans += 1
        if place is not None:
            kb_id = span.kb_id if links else 0
            aligned.append(
                Span(example.predicted, *place, span.label, kb_id=kb_id, span_id=span.id)
            )
        else:
            counts.leave_out(span)
    return aligned
