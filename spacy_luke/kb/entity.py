"""One entity, as it is read from a file and written to a knowledge base."""

import math
import reprlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real

from ..errors import CorpusError, InputError

NIL = "NIL"
"""The id that means "none of the entities"; no entity may have it."""
NOT_GIVEN = math.nan
MOST = 1e100
"""Of counts: their sums have a place in a float."""

EMPTY_NAME = "entities left out because their name is empty"
EMPTY_ALIAS = "empty aliases left out"


@dataclass(frozen=True)
class Entity:
    """aliases: texts that mean the entity -> how often they do (or, in a knowledge base of priors,
    with which probability); ``NOT_GIVEN`` if that is unknown. The name is an alias only if it is
    among them. count: how often the entity is mentioned; for priors of aliases without a count.
    Raises InputError if aliases are not a mapping.
    """

    id: str
    name: str
    aliases: Mapping[str, float]
    description: str = ""
    type: str = ""
    count: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.aliases, Mapping):
            raise InputError(
                f"The aliases of the entity {self.id!r} are {reprlib.repr(self.aliases)}, not a "
                "dictionary of texts and their counts (NOT_GIVEN where they are unknown)."
            )


@dataclass
class Findings:
    """What was read, and what was left out or changed: reason -> number of times, and the place of
    the first."""

    counts: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)

    def add(self, reason: str, place: str = "", n: int = 1) -> None:
        if n:
            self.counts[reason] += n
            self.first.setdefault(reason, place)

    def lines(self) -> list[str]:
        """One line per reason, in the order in which they occurred."""
        places = {reason: f" (first: {place})" for reason, place in self.first.items() if place}
        return [f"{reason}: {n:,}{places.get(reason, '')}" for reason, n in self.counts.items()]


def check_id(value: object, where: str) -> str:
    """The id as text; a whole number is written in digits. Raises CorpusError for other values, for
    an empty id and for "NIL"."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    text = check_text(value, "id", where)
    if not text.strip():
        raise CorpusError(f"{where}: id is empty. Every entity needs an id.")
    if text == NIL:
        raise CorpusError(f'{where}: id is "NIL", which means "no entity". Use another id.')
    return text


def check_texts(values: object, what: str) -> None:
    """Raise InputError for one text in place of several, which would be read letter by letter."""
    if isinstance(values, str | bytes):
        raise InputError(f"{what} is the text {values!r}; a list of texts is required.")


def check_text(value: object, key: str, where: str) -> str:
    """A string that can be stored. Raises CorpusError."""
    if not isinstance(value, str):
        raise CorpusError(f"{where}: {key} is {value!r}, not text.")
    try:
        value.encode("utf8")
    except UnicodeEncodeError as err:
        raise CorpusError(f"{where}: {key} is not valid text: {value!r}.") from err
    return value


def check_count(value: object, key: str, where: str) -> float:
    """A number from 0 to ``MOST``. Raises CorpusError."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    try:
        number = float(value) if is_number else -1.0  # type: ignore[arg-type]
    except OverflowError:
        number = math.inf
    if not 0 <= number <= MOST:
        raise CorpusError(
            f"{where}: {key} is {reprlib.repr(value)}, not a number from 0 to {MOST:.0e}."
        )
    return number
