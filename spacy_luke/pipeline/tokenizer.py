"""The tokenizer of a pipeline, for components that read texts of their own: questions, queries,
names of entities."""

from collections.abc import Callable

from spacy.tokens import Doc

Tokenizer = Callable[[str], Doc]
