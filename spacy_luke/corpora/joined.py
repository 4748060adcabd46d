"""Several corpora as one, each with what it annotates."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, get_args

from spacy.language import Language
from spacy.training import Example
from spacy.util import registry

from ..annotations.annotated import Layer, is_annotated, set_annotated
from ..errors import ConfigError

ExampleReader = Callable[[Language], Iterable[Example]]


@registry.readers("spacy-luke.JoinedCorpora.v1")
def joined_corpora(
    corpora: dict[
        str, Any
    ],  # of ExampleReader: values of a dict are validated before they are made
    annotates: dict[str, list[str]],
) -> ExampleReader:
    """Make a reader of several corpora, one after the other.

    corpora: readers, by a name of your own.
    annotates: for each of them, the layers that it annotates: ``ents``, ``relations``, ``types``.
        Nothing is learned from a layer that a corpus does not annotate: what is absent there does
        not mean "none". Its entities may still be given to components that consume entities. What
        documents say of themselves (for instance, which relations were judged) stays.

    Raises ConfigError if the names differ, or a layer is unknown.
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
            absent = [layer for layer in get_args(Layer) if layer not in annotates[name]]
            for eg in corpus(nlp):
                for layer in absent:
                    if is_annotated(eg.reference, layer):
                        set_annotated(eg.reference, layer, False)
                yield eg

    return examples
