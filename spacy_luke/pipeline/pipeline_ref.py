"""A component's knowledge of the pipeline that it is in."""

from typing import Any
from weakref import ref

from spacy.language import Language


class PipelineRef:
    """A weak reference to a pipeline. It is not copied or pickled with the component, because the
    copy may be in another pipeline."""

    def __init__(self, nlp: Language | None = None) -> None:
        self._ref = None if nlp is None else ref(nlp)

    def __reduce__(self) -> tuple[type["PipelineRef"], tuple[()]]:
        return PipelineRef, ()

    def components(self) -> list[Any]:
        """The components in order, also those that are disabled; none if it is not known."""
        nlp = None if self._ref is None else self._ref()
        return [] if nlp is None else [pipe for _, pipe in nlp.components]
