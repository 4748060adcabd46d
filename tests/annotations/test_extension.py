"""A custom attribute's name that is taken."""

import pytest
import spacy
from spacy.tokens import Doc, Span

from spacy_luke.errors import ConfigError


def test_an_attribute_of_that_name_from_elsewhere_is_refused():
    for owner, name, factory in (
        (Doc, "relations", "luke_relation"),
        (Span, "types", "luke_entity_typing"),
        (Span, "candidates", "luke_linker"),
        (Span, "allowed_ids", "luke_linker"),
    ):
        ours = owner.remove_extension(name) if owner.has_extension(name) else None
        owner.set_extension(name, default=None)
        try:
            with pytest.raises(ConfigError, match=f"{owner.__name__}._.{name} is set by another"):
                spacy.blank("en").add_pipe(factory)
        finally:
            owner.remove_extension(name)
            if ours is not None:
                owner.set_extension(name, getter=ours[2], setter=ours[3])
