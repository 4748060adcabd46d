"""A component's knowledge of the pipeline that it is in."""

from typing import Any
from weakref import ref

from spacy.language import Language


class PipelineRef:
    """A weak reference to a pipeline. The copy of a whole pipeline has one to itself; a copy of the
    component alone, and one that was pickled, has none."""

    def __init__(self, nlp: Language | None = None) -> None:
        self._ref = None if nlp is None else ref(nlp)

    def __reduce__(self) -> tuple[type["PipelineRef"], tuple[()]]:
        return PipelineRef, ()

    def __deepcopy__(self, memo: dict[int, Any]) -> "PipelineRef":
        nlp = self._pipeline()
        return PipelineRef(None if nlp is None else memo.get(id(nlp)))

    def _pipeline(self) -> Language | None:
        return None if self._ref is None else self._ref()

    def components(self) -> list[tuple[Any, bool]]:
        """The components in order, and whether each is disabled; none if it is not known."""
        nlp = self._pipeline()
        if nlp is None:
            return []
        disabled = set(nlp.disabled)
        return [(pipe, name in disabled) for name, pipe in nlp.components]
