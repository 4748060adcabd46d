"""Custom attributes of documents and spans, of which each name is there once."""

from collections.abc import Callable
from typing import Any

from spacy.tokens import Doc, Span

from ..errors import ConfigError


def install_extension(
    owner: type[Doc] | type[Span], name: str, getter: Callable[[Any], Any], setter: Callable
) -> None:
    """Add a custom attribute, if it is not there. Raises ConfigError where the name is taken by
    another one: what we write would not be found, or not be saved."""
    if not owner.has_extension(name):
        owner.set_extension(name, getter=getter, setter=setter)
        return
    known = owner.get_extension(name)[2]
    if getattr(known, "__module__", None) != getter.__module__:
        raise ConfigError(
            f"{owner.__name__}._.{name} is set by another package or by your code: spacy-luke "
            f"needs that name. Call {owner.__name__}.remove_extension({name!r}) first."
        )
