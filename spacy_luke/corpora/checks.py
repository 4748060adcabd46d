"""Validated access to the values of JSON objects."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..errors import CorpusError


@contextmanager
def errors_at(location: str) -> Iterator[None]:
    """Prefix the message of any CorpusError raised inside with its location."""
    try:
        yield
    except CorpusError as err:
        raise CorpusError(f"{location}: {err}") from err


def require_key(data: dict[str, Any], key: str, owner: str) -> None:
    """Raise CorpusError, with the keys that there are, if a key is absent."""
    if key not in data:
        raise CorpusError(f"{owner} has no key {key!r}; {keys_of(data)}.")


def keys_of(data: dict[str, Any]) -> str:
    """The keys of an object, for messages."""
    keys = [repr(key[:40]) for key in list(data)[:12]]
    more = ", ..." if len(data) > len(keys) else ""
    return f"its keys are {', '.join(keys)}{more}" if keys else "it is empty"


def get_value(data: dict[str, Any], key: str, kind: type, owner: str) -> Any:
    """A required string or integer. Raises CorpusError if it is absent or of another type."""
    require_key(data, key, owner)
    value = data[key]
    if type(value) is not kind:  # isinstance(True, int) is true
        expected = {str: "a string", int: "a whole number"}[kind]
        raise CorpusError(f"{key} of {owner} is {kind_of(value)}, not {expected}.")
    return value


def get_name(data: dict[str, Any], key: str, owner: str) -> str:
    """A required name, such as a label: valid Unicode and not empty."""
    name: str = get_value(data, key, str, owner)
    if not name:
        raise CorpusError(f"{owner} has an empty {key}.")
    check_unicode(name)
    return name


def in_digits(value: Any) -> Any:
    """A whole number as text, as ids in the list of a knowledge base; any other value as it is."""
    return str(value) if type(value) is int else value


def get_names(data: dict[str, Any], key: str, owner: str) -> tuple[str, ...]:
    """A required list of names without repetitions. It may be empty."""
    names = get_strings(data, key, owner)
    if "" in names:
        raise CorpusError(f"{key} of {owner} contains an empty name.")
    return tuple(dict.fromkeys(names))


def get_strings(data: dict[str, Any], key: str, owner: str) -> list[str]:
    """A required list of strings. Raises CorpusError if it is absent or of another type."""
    require_key(data, key, owner)
    return check_strings(data[key], f"{key} of {owner}")


def check_strings(value: Any, what: str) -> list[str]:
    """Check that a value is a list of valid strings; ``what`` names it in messages."""
    if not isinstance(value, list):
        raise CorpusError(f"{what} is {kind_of(value)}, not a list.")
    for i, item in enumerate(value):
        if not isinstance(item, str):
            raise CorpusError(f"{what} contains {kind_of(item)} at {i}, not a string.")
        check_unicode(item)
    return value


def get_items(data: dict[str, Any], key: str) -> list[Any]:
    """An optional list; absent and null both mean empty."""
    items = data.get(key)
    if items is None:
        return []
    if not isinstance(items, list):
        raise CorpusError(f"{key} is {kind_of(items)}, not a list.")
    return items


def require_items(data: dict[str, Any], key: str) -> list[Any]:
    """A required list."""
    require_key(data, key, "the record")
    if data[key] is None:
        raise CorpusError(f"{key} is null, not a list.")
    return get_items(data, key)


def require_object(item: Any, owner: str) -> dict[str, Any]:
    """Check that a value is an object; ``owner`` names it in messages."""
    if not isinstance(item, dict):
        raise CorpusError(f"{owner} is {kind_of(item)}, not an object.")
    return item


def check_entity(number: int, n_entities: int, owner: str) -> int:
    """Check the index of an entity. Raises CorpusError if it is out of range."""
    if not 0 <= number < n_entities:
        raise CorpusError(
            f"{owner} refers to entity {number}, but the record has {n_entities} entities "
            "(numbered from 0)."
        )
    return number


def check_unicode(text: str) -> None:
    """Raise CorpusError for an unpaired surrogate: JSON can express it, UTF-8 cannot."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as err:
        raise CorpusError(f"an unpaired surrogate in {text[:40]!r}: not valid Unicode.") from err


def is_offset(text: str) -> bool:
    """Whether a text is a whole number in decimal digits that is not too long to be one."""
    return text.isdecimal() and len(text) <= 18


def kind_of(value: Any) -> str:
    """The name of a JSON value's type in messages."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false"}
    names.update({type(None): "null", int: "a whole number", float: "a number with a fraction"})
    return names[type(value)]
