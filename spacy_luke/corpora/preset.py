"""A training corpus whose predicted documents already carry the gold entities."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import registry

from ..annotations.types import get_types, has_types, set_types
from ..errors import ConfigError
from ..report import LOGGER
from .cut import CutCorpus

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
) -> ExampleReader:
    """Make a reader of ``.spacy`` files that presets gold entities on the predicted side.

    For components that *consume* entities (relations, typing, linking): spaCy's own corpus
    gives them predicted documents without any entity. A component that *predicts* entities
    overwrites the preset ones (their labels and kb ids; spaCy lets an entity without an entity
    id of its own keep the one its tokens had), and a score computed with preset entities is a
    score "with gold entities": it says nothing about the pipeline's own.

    path: a ``.spacy`` file, or a directory of them.
    gold_preproc, max_length, limit, augmenter: as for ``spacy.Corpus.v1``.
    spans_key: also preset this group of ``Doc.spans``.
    types_from_labels: named entity data as typing data. On the reference side, each entity, and
        each span of ``spans_key``, that has no types gets its label as its one type.

    Types and relations of the reference are what a component has to find: they are never preset.
    Where ``gold_preproc`` or ``max_length`` cut a document into sentences, those that lie within
    one are kept, and the others counted and logged.

    Raises ConfigError where ``path`` is not given or does not exist.
    """
    if path is None:
        raise ConfigError("path of spacy-luke.PresetEntsCorpus.v1 is null; give a .spacy file.")
    if not Path(path).exists():
        raise ConfigError(f"path of spacy-luke.PresetEntsCorpus.v1: {path} does not exist.")
    corpus = CutCorpus(
        path, gold_preproc=gold_preproc, max_length=max_length, limit=limit, augmenter=augmenter
    )
    return PresetEntsCorpus(corpus, spans_key, types_from_labels)


class PresetEntsCorpus:
    """Wraps a corpus and copies gold entities from reference to predicted documents.

    The two sides may be tokenised differently: an entity or span of the reference that does not
    fall on token boundaries of the predicted document is left out there and counted. The count
    is logged once, when the first pass over the corpus ends.
    """

    def __init__(
        self, corpus: ExampleReader, spans_key: str | None = None, types_from_labels: bool = False
    ) -> None:
        self.corpus = corpus
        self.spans_key = spans_key
        self.types_from_labels = types_from_labels
        self._reported = False

    def __call__(self, nlp: Language) -> Iterator[Example]:
        """Yield the corpus' examples with ``predicted.ents`` set."""
        tally = Tally()
        try:
            for example in self.corpus(nlp):
                preset_entities(example, tally)
                if self.spans_key is not None:
                    preset_spans(example, self.spans_key, tally)
                if self.types_from_labels:
                    add_types_from_labels(example.reference, self.spans_key)
                yield example
        finally:
            if not self._reported:
                self._reported = tally.log(self.spans_key)


class Tally:
    """Counts of one pass over a corpus."""

    def __init__(self) -> None:
        self.spans = 0
        self.misaligned = 0
        self.first = ""
        self.docs = 0
        self.docs_without_group = 0

    def log(self, spans_key: str | None) -> bool:
        """Warn of what was left out; return whether there was anything to warn of."""
        if self.misaligned:
            LOGGER.warning(
                "%d of %d gold entities and spans do not align with the tokens of the predicted "
                "documents and are not preset (the first: %s). gold_preproc keeps the gold tokens.",
                self.misaligned,
                self.spans,
                self.first,
            )
        if self.docs_without_group:
            LOGGER.warning(
                "%d of %d documents have no spans group %r; they get an empty one.",
                self.docs_without_group,
                self.docs,
                spans_key,
            )
        return bool(self.misaligned or self.docs_without_group)


def preset_entities(example: Example, tally: Tally) -> None:
    """Set ``predicted.ents`` to the reference's entities, with label, kb id and entity id."""
    tally.docs += 1
    ents = _align(example, example.reference.ents, tally)
    example.predicted.set_ents(ents, default="outside")


def preset_spans(example: Example, key: str, tally: Tally) -> None:
    """Set ``predicted.spans[key]`` to the reference's group, or to an empty one."""
    if key not in example.reference.spans:
        tally.docs_without_group += 1
        example.predicted.spans[key] = []
        return
    example.predicted.spans[key] = _align(example, example.reference.spans[key], tally)


def add_types_from_labels(doc: Doc, key: str | None) -> None:
    """Give entities, and spans of a group, that have no types their labels as types.

    Spans of the same place share their types: each of their labels is one.
    """
    group = doc.spans[key] if key is not None and key in doc.spans else ()
    untyped = [span for span in (*doc.ents, *group) if span.label and not has_types(span)]
    for span in untyped:
        set_types(span, {**get_types(span), span.label_: 1.0})


def _align(example: Example, spans: Iterable[Span], tally: Tally) -> list[Span]:
    aligned: list[Span] = []
    for span in spans:
        tally.spans += 1
        # One at a time: the alignment neither says which spans it drops nor keeps their ids.
        found = example.get_aligned_spans_y2x([span], allow_overlap=True)
        if found:
            start, end = found[0].start, found[0].end
            aligned.append(
                Span(
                    example.predicted,
                    start,
                    end,
                    label=span.label,
                    kb_id=span.kb_id,
                    span_id=span.id,
                )
            )
        else:
            tally.misaligned += 1
            text = example.reference.text
            tally.first = tally.first or f"{span.text!r} in {text[:60]!r}"
    return aligned
