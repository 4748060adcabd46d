"""The wiki of an export, described by ``<siteinfo>``."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from .languages import CANONICAL_NAMESPACES, CATEGORY, CATEGORY_NAMES, FILE, FILE_NAMES


@dataclass(frozen=True)
class Site:
    """The head of an export. An export without ``<siteinfo>`` has the defaults.

    name, dbname, base: as in ``<siteinfo>``; empty if absent.
    case: ``first-letter`` (the first letter of a title is capitalised) or ``case-sensitive``.
    language: ``xml:lang`` of the root element.
    namespaces: number -> name in the language of the wiki. The names of all wikis are valid, too.
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
        prefixes = dict.fromkeys(FILE_NAMES, FILE)
        prefixes.update(dict.fromkeys(CATEGORY_NAMES, CATEGORY))
        prefixes.update({name.casefold(): n for n, name in CANONICAL_NAMESPACES.items()})
        prefixes.update({name.casefold(): n for n, name in self.namespaces.items() if name})
        return prefixes

    def namespace(self, title: str) -> int:
        """The namespace of a page by the prefix of its title; 0 for articles."""
        prefix, colon, _ = title.partition(":")
        return self.prefixes.get(prefix.strip().replace("_", " ").casefold(), 0) if colon else 0
