"""A reader that joins corpora which annotate different layers."""

from collections.abc import Iterator
from typing import Any, get_args

from spacy.language import Language
from spacy.training import Example
from spacy.util import registry

from ..annotations.annotated import Layer, is_annotated, set_annotated
from ..errors import ConfigError
from .preset import ExampleReader


@registry.readers("spacy-luke.JoinedCorpora.v1")
def joined_corpora(
    corpora: dict[str, Any],  # ExampleReader; spaCy validates dict values before it resolves them
    annotates: dict[str, list[str]],
) -> ExampleReader:
    """Make a reader of several corpora, one after the other.

    corpora: readers by name. You choose the names.
    annotates: the annotated layers per corpus: ``ents``, ``relations``, ``types``. Nothing is
        learned from other layers: there, absent annotation does not mean "none". Entities of such a
        corpus can still be input to components that consume entities. Annotation status set in the
        documents themselves (for example, which relations were judged) is kept.

    Raises ConfigError if the names in ``corpora`` and ``annotates`` differ or a layer is unknown.
    """
    if not corpora:
        raise ConfigError("JoinedCorpora.corpora is empty; name at least one corpus.")
    if set(corpora) != set(annotates):
        raise ConfigError(
            f"JoinedCorpora.annotates names {sorted(annotates)} and corpora {sorted(corpora)}; "
            "they must be the same."
        )
    for name, layers in annotates.items():
        unknown = [layer for layer in layers if layer not in get_args(Layer)]
        if unknown:
            raise ConfigError(
                f"JoinedCorpora.annotates.{name} has {unknown}; use {', '.join(get_args(Layer))}."
            )

    def examples(nlp: Language) -> Iterator[Example]:
        for name, corpus in corpora.items():
            unannotated = [layer for layer in get_args(Layer) if layer not in annotates[name]]
            for eg in corpus(nlp):
                for layer in unannotated:
                    if is_annotated(eg.reference, layer):
                        set_annotated(eg.reference, layer, False)
                yield eg

    return examples
