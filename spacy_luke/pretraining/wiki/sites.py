"""The wiki that an export comes from, as its ``<siteinfo>`` tells."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from .languages import CANONICAL_NAMESPACES, CATEGORY, CATEGORY_NAMES, FILE, FILE_NAMES


@dataclass(frozen=True)
class Site:
    """What the header of an export says. An export without ``<siteinfo>`` has the defaults.

    name, dbname, base: as in ``<siteinfo>``; empty where absent.
    case: ``first-letter`` (the first letter of a title is a capital) or ``case-sensitive``.
    language: ``xml:lang`` of the root element.
    namespaces: number -> name in the language of the wiki; the names that every wiki knows hold
        besides.
    """

    name: str = ""
    dbname: str = ""
    base: str = ""
    case: str = "first-letter"
    language: str = ""
    namespaces: Mapping[int, str] = field(default_factory=dict)

    @cached_property
    def prefixes(self) -> dict[str, int]:
        """Casefolded prefix of a title, with spaces -> namespace."""
        found = dict.fromkeys(FILE_NAMES, FILE)
        found.update(dict.fromkeys(CATEGORY_NAMES, CATEGORY))
        found.update({name.casefold(): n for n, name in CANONICAL_NAMESPACES.items()})
        found.update({name.casefold(): n for n, name in self.namespaces.items() if name})
        return found

    def namespace(self, title: str) -> int:
        """The namespace of a page by the prefix of its title; 0 is articles."""
        prefix, colon, _ = title.partition(":")
        return self.prefixes.get(prefix.strip().replace("_", " ").casefold(), 0) if colon else 0
