"""The custom attributes of documents and spans, all registered by ``import spacy_luke``."""

from collections.abc import Callable
from typing import Any, NamedTuple

from spacy.tokens import Doc, Span

from ..errors import ConfigError
from .candidates import get_allowed_ids, get_candidates, set_allowed_ids, set_candidates
from .queries import get_completions, get_queries, set_completions, set_queries
from .questions import get_answers, get_questions, set_answers, set_questions
from .relations import get_relations, set_relations
from .scores import get_score, set_score
from .types import get_types, set_types
from .vectors import get_luke, get_luke_vector


class Attribute(NamedTuple):
    owner: type[Doc] | type[Span]
    name: str
    getter: Callable[[Any], Any]
    setter: Callable[[Any, Any], None] | None = None

    @property
    def is_free(self) -> bool:
        return not self.owner.has_extension(self.name)

    @property
    def is_ours(self) -> bool:
        getter = None if self.is_free else self.owner.get_extension(self.name)[2]
        return getattr(getter, "__module__", None) == self.getter.__module__

    def register(self) -> None:
        self.owner.set_extension(self.name, getter=self.getter, setter=self.setter)


ATTRIBUTES = (
    Attribute(Span, "score", get_score, set_score),
    Attribute(Span, "types", get_types, set_types),
    Attribute(Span, "candidates", get_candidates, set_candidates),
    Attribute(Span, "allowed_ids", get_allowed_ids, set_allowed_ids),
    Attribute(Doc, "relations", get_relations, set_relations),
    Attribute(Doc, "questions", get_questions, set_questions),
    Attribute(Doc, "answers", get_answers, set_answers),
    Attribute(Doc, "queries", get_queries, set_queries),
    Attribute(Doc, "completions", get_completions, set_completions),
    Attribute(Doc, "luke", get_luke),
    Attribute(Span, "luke_vector", get_luke_vector),
)


def register() -> None:
    """Register the attributes. A name that other code has registered before stays as it is: most
    pipelines do not need ours (:func:`require`)."""
    for attribute in ATTRIBUTES:
        if attribute.is_free:
            attribute.register()


def require(*names: str) -> None:
    """Called by components that write or read these attributes. Raises ConfigError if other code
    uses one of the names: that attribute would not read or save our values."""
    for attribute in ATTRIBUTES:
        if attribute.name not in names:
            continue
        if attribute.is_free:
            attribute.register()
        if not attribute.is_ours:
            owner, name = attribute.owner.__name__, attribute.name
            raise ConfigError(
                f"{owner}._.{name} is set by another package or by your code, but spacy-luke needs "
                f"the name. Call {owner}.remove_extension({name!r}) first."
            )
