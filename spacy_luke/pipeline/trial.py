"""A component that answers development data with one setting after the other."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from spacy.language import Language
from spacy.training import Example
from tqdm import tqdm

from ..annotations.group_spans import copy_of
from ..annotations.types import without_ancestors
from ..layers.task_layer import scorer_of
from ..metrics.answers import Answers

_ENTITY_ATTRIBUTES: list[int | str] = ["ENT_IOB", "ENT_TYPE", "ENT_KB_ID", "ENT_ID"]


def labels_of(nlp: Language, layer: str) -> set[str]:
    """The labels of all components that write a layer of annotation (``ents``, ``relations``,
    ``types``, ...)."""
    had: set[str] = set()
    for name, pipe in nlp.pipeline:
        writes = {"doc.ents", "doc.spans"} & set(nlp.get_pipe_meta(name).assigns)
        labels = getattr(pipe, "labels", ())
        if getattr(pipe, "layer", "ents" if writes else None) == layer:
            had |= set(labels) if isinstance(labels, Collection) else set()
    return had


class Trial:
    """A component, and predictions on development data that are decoded with other settings."""

    def __init__(
        self, nlp: Language, name: str, examples: Sequence[Example], since: str | None = None
    ) -> None:
        """since: the component up to which the examples are annotated, of :meth:`annotated`."""
        self.nlp, self.name = nlp, name
        self.pipe: Any = nlp.get_pipe(name)
        first = 0 if since is None else nlp.pipe_names.index(since) + 1
        docs = [eg.predicted if since else eg.predicted.copy() for eg in examples]
        with nlp.select_pipes(enable=nlp.pipe_names[first : nlp.pipe_names.index(name)]):
            docs = list(nlp.pipe(docs))
        # Made once, because they keep their alignment.
        self.examples = [Example(doc, eg.reference) for doc, eg in zip(docs, examples)]
        size = nlp.batch_size
        self.batches = [docs[i : i + size] for i in range(0, len(docs), size)]
        self._gold_labels: Counter[str] = Counter()

    @cached_property
    def predictions(self) -> list[Any]:
        """What is decoded; by default, the predictions with the component's settings at the first
        use."""
        return self.predict()

    def unknown_gold(self) -> Counter[str]:
        """The gold annotations, of those that the last answers were compared with, whose labels no
        component of the pipeline has. Implied types are not counted."""
        known = set(without_ancestors(dict.fromkeys(self._gold_labels, 0.0)))
        implied = self._gold_labels.keys() - known if self.pipe.cfg.get("ancestors") else set()
        had = implied | set(self.pipe.answer_labels) | labels_of(self.nlp, self.pipe.layer)
        return Counter({x: n for x, n in self._gold_labels.items() if x not in had})

    def predict(self) -> list[Any]:
        bar = tqdm(self.batches, f"{self.name}: predict", leave=False, disable=None)
        return [self.pipe.predict(batch) for batch in bar]

    def answers(self, predictions: Sequence[Any] | None = None) -> Answers:
        """Decode with the present settings. predictions: those of the trial by default."""
        docs = [doc for batch in self.batches for doc in batch]
        before = [doc.to_array(_ENTITY_ATTRIBUTES) for doc in docs]
        groups = [{key: copy_of(group) for key, group in doc.spans.items()} for doc in docs]
        try:
            for batch, prediction in zip(self.batches, predictions or self.predictions):
                self.pipe.set_annotations(batch, prediction)
            answers = self.pipe.answers(self.examples)
        finally:
            # The entities, spans and links of one trial would change the results of the next.
            for doc, values, spans in zip(docs, before, groups):
                doc.from_array(_ENTITY_ATTRIBUTES, values)  # type: ignore[arg-type]
                doc.spans.clear()
                doc.spans.update(spans)
        # Other labels are those of other components, or implied (ancestors of types).
        labels = set(self.pipe.answer_labels)
        self._gold_labels = answers.n_gold
        return Answers(
            [answer for answer in answers.found if answer.label in labels],
            Counter({x: n for x, n in answers.n_gold.items() if x in labels}),
        )

    def annotated(self) -> list[Example]:
        """The examples as the pipeline annotates them up to this component, with the present
        settings. This is the end of the trial."""
        for batch, prediction in zip(self.batches, self.predictions):
            self.pipe.set_annotations(batch, prediction)
        return self.examples

    def filter_settings(self) -> tuple[float, float]:
        """Candidates per word and threshold of a two-stage filter; zeros without one."""
        scorer = scorer_of(self.pipe.model)
        names = ("candidates_per_word", "filter_threshold")
        k, threshold = (float(getattr(scorer, name, 0.0)) for name in names)
        return k, threshold

    def set(self, **settings: Any) -> None:
        """Set the component's settings."""
        self.pipe.cfg.update(settings)

    @contextmanager
    def kept_if_it_fails(self) -> Iterator[None]:
        """A context after which, if it ends in an error or is interrupted, the component's settings
        are what they were."""
        before, scorer = dict(self.pipe.cfg), scorer_of(self.pipe.model)
        config, model = self.nlp.get_pipe_config(self.name)["model"], dict(vars(scorer))
        model_config = dict(config)
        try:
            yield
        except BaseException:
            self.set(**before)
            vars(scorer).update(model)
            config.update(model_config)
            raise
