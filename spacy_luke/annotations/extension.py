"""Registration of custom attributes of documents and spans."""

from collections.abc import Callable
from typing import Any

from spacy.tokens import Doc, Span

from ..errors import ConfigError


def install_extension(
    owner: type[Doc] | type[Span], name: str, getter: Callable[[Any], Any], setter: Callable
) -> None:
    """Add a custom attribute if it does not exist. Raises ConfigError if other code uses its name:
    that attribute would not read or save our values."""
    if not owner.has_extension(name):
        owner.set_extension(name, getter=getter, setter=setter)
        return
    current_getter = owner.get_extension(name)[2]
    if getattr(current_getter, "__module__", None) != getter.__module__:
        raise ConfigError(
            f"{owner.__name__}._.{name} is set by another package or by your code, but "
            f"spacy-luke needs the name. Call {owner.__name__}.remove_extension({name!r}) first."
        )
