"""Values of JSON objects, checked before anything is made of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..errors import CorpusError


@contextmanager
def located(place: str) -> Iterator[None]:
    """Put the place before the message of a CorpusError that is raised inside."""
    try:
        yield
    except CorpusError as err:
        raise CorpusError(f"{place}: {err}") from err


def get_value(data: dict[str, Any], key: str, kind: type, owner: str) -> Any:
    """A string or a whole number. Raises CorpusError where it is absent or something else."""
    if key not in data:
        raise CorpusError(f"{owner} has no key {key!r}.")
    value = data[key]
    if type(value) is not kind:  # True is an int to isinstance
        wanted = {str: "a string", int: "a whole number"}[kind]
        raise CorpusError(f"{key} of {owner} is {kind_of(value)}, not {wanted}.")
    return value


def get_name(data: dict[str, Any], key: str, owner: str) -> str:
    """A label or another name: valid Unicode and not empty."""
    name: str = get_value(data, key, str, owner)
    if not name:
        raise CorpusError(f"{owner} has an empty {key}.")
    check_unicode(name)
    return name


def get_names(data: dict[str, Any], key: str, owner: str) -> tuple[str, ...]:
    """A list of names, each taken once; the list may be empty, but has to be there."""
    names = get_strings(data, key, owner)
    if "" in names:
        raise CorpusError(f"{key} of {owner} holds an empty name.")
    return tuple(dict.fromkeys(names))


def get_strings(data: dict[str, Any], key: str, owner: str) -> list[str]:
    """A list of strings. Raises CorpusError where it is absent or something else."""
    if key not in data:
        raise CorpusError(f"{owner} has no key {key!r}.")
    return check_strings(data[key], f"{key} of {owner}")


def check_strings(value: Any, what: str) -> list[str]:
    """The value, which has to be a list of valid strings; ``what`` names it in messages."""
    if not isinstance(value, list):
        raise CorpusError(f"{what} is {kind_of(value)}, not a list.")
    for i, item in enumerate(value):
        if not isinstance(item, str):
            raise CorpusError(f"{what} holds {kind_of(item)} at {i}, not a string.")
        check_unicode(item)
    return value


def get_items(data: dict[str, Any], key: str) -> list[Any]:
    """A list that may be absent or null, which both say that there is nothing."""
    items = data.get(key)
    if items is None:
        return []
    if not isinstance(items, list):
        raise CorpusError(f"{key} is {kind_of(items)}, not a list.")
    return items


def need_items(data: dict[str, Any], key: str) -> list[Any]:
    """A list that has to be there."""
    if key not in data:
        raise CorpusError(f"the record has no key {key!r}.")
    if data[key] is None:
        raise CorpusError(f"{key} is null, not a list.")
    return get_items(data, key)


def need_object(item: Any, owner: str) -> dict[str, Any]:
    """The item, which has to be an object."""
    if not isinstance(item, dict):
        raise CorpusError(f"{owner} is {kind_of(item)}, not an object.")
    return item


def check_entity(number: int, n_entities: int, owner: str) -> int:
    """The number of an entity. Raises CorpusError for one that is not there."""
    if not 0 <= number < n_entities:
        raise CorpusError(
            f"{owner} is of entity {number}, in a record of {n_entities} entities (from 0)."
        )
    return number


def check_unicode(text: str) -> None:
    """Raise CorpusError for half a surrogate pair, which JSON can spell and UTF-8 cannot."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as err:
        raise CorpusError(f"half a surrogate pair in {text[:40]!r}: not valid Unicode.") from err


def kind_of(value: Any) -> str:
    """How messages name the kind of a JSON value."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false"}
    names.update({type(None): "null", int: "a whole number", float: "a number with a fraction"})
    return names[type(value)]
