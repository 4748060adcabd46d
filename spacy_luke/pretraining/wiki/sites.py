"""The wiki of an export: what ``<siteinfo>`` says, and what its pages tell about names."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from .languages import (
    CANONICAL_NAMESPACES,
    CATEGORY,
    CATEGORY_NAMES,
    FILE,
    FILE_NAMES,
    INTERWIKI_PREFIXES,
    OTHER_CODES,
    TEMPLATE,
    WIKIMEDIA_PREFIXES,
    WIKIPEDIA_CODES,
    disambiguation_templates,
)

MAIN, PROPERTY = 0, 102
_WIKIMEDIA = re.compile(
    r"(?:https?:)?//(?:[\w.-]+\.)?(?:wiki(?:pedia|books|news|quote|source|versity|voyage|data|media|"
    r"functions)|wiktionary|mediawiki)\.org(?:[:/]|$)",
    re.IGNORECASE,
)
_DBNAME = re.compile(
    r"([a-z_]+?)(?:wiki|wiktionary|wikibooks|wikinews|wikiquote|wikisource|wikiversity|wikivoyage)"
)
"""``dewiki``, ``zh_yuewiki``."""


@dataclass(frozen=True)
class Names:
    """What the pages of a dump tell about names in its markup; see ``names.DumpNames``.

    disambiguations: casefolded names of the templates that mark disambiguation pages; None: those
        of the language's table.
    prefixes: casefolded; a title in the main namespace starts with each of them and a colon, so
        they are neither names of namespaces nor of other wikis.
    double_colons: the same, for titles with two colons, which are not properties.
    slashes: titles in the main namespace that start with a slash, which are not subpages.
    values: casefolded names of Semantic MediaWiki's properties whose values are not pages.
    """

    disambiguations: frozenset[str] | None = None
    prefixes: frozenset[str] = frozenset()
    double_colons: frozenset[str] = frozenset()
    slashes: frozenset[str] = frozenset()
    values: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Site:
    """A wiki. An export without ``<siteinfo>`` has the defaults.

    name, dbname, base: as in ``<siteinfo>``; empty if absent.
    case: ``first-letter`` (the first letter of a title is capitalised) or ``case-sensitive``.
    cases: the case of namespaces that differ from it.
    language: ``xml:lang`` of the root element.
    namespaces: number -> name in the language of the wiki. The names of all wikis are valid, too.
    content: numbers of the namespaces whose pages are articles.
    interwikis: casefolded prefixes of other wikis, which the user has named.
    names: what the pages tell.
    not_disambiguations: casefolded names of templates that the user says mark no disambiguations.
    """

    name: str = ""
    dbname: str = ""
    base: str = ""
    case: str = "first-letter"
    language: str = ""
    namespaces: Mapping[int, str] = field(default_factory=dict)
    cases: Mapping[int, str] = field(default_factory=dict)
    content: frozenset[int] = frozenset({MAIN})
    interwikis: frozenset[str] = frozenset()
    names: Names = Names()
    not_disambiguations: frozenset[str] = frozenset()

    @cached_property
    def is_wikimedia(self) -> bool:
        """Whether it is a Wikipedia or another wiki of the Wikimedia Foundation, by its address."""
        return _WIKIMEDIA.match(self.base) is not None

    @cached_property
    def prefixes(self) -> dict[str, int]:
        """Casefolded prefix of a title, with spaces -> namespace."""
        guessed = dict.fromkeys(FILE_NAMES, FILE)
        guessed.update(dict.fromkeys(CATEGORY_NAMES, CATEGORY))
        prefixes = {name: n for name, n in guessed.items() if name not in self.names.prefixes}
        prefixes.update({name.casefold(): n for n, name in CANONICAL_NAMESPACES.items()})
        prefixes.update({name.casefold(): n for n, name in self.namespaces.items() if name})
        return prefixes

    @cached_property
    def template_prefixes(self) -> frozenset[str]:
        """Casefolded names of the namespace of templates."""
        return frozenset(x for x, number in self.prefixes.items() if number == TEMPLATE)

    @cached_property
    def other_wikis(self) -> frozenset[str]:
        """Casefolded prefixes of other wikis, which are neither codes nor namespaces."""
        if self.is_wikimedia:
            return self.interwikis | INTERWIKI_PREFIXES | WIKIMEDIA_PREFIXES
        return self.interwikis | (INTERWIKI_PREFIXES - self.names.prefixes)

    @cached_property
    def languages(self) -> frozenset[str]:
        """Casefolded prefixes of the same wiki in other languages."""
        if self.is_wikimedia:
            return WIKIPEDIA_CODES | OTHER_CODES.keys()
        return self.interwikis & WIKIPEDIA_CODES

    @cached_property
    def own_codes(self) -> frozenset[str]:
        """The codes of the wiki itself in links between languages. They are not always those of its
        language: ``simple`` is in English, as Commons, which has none."""
        if not self.is_wikimedia:
            return frozenset({self.language})
        code = self.language
        if self.dbname:
            name = _DBNAME.fullmatch(self.dbname)
            code = "" if name is None else name[1].replace("_", "-")
        code = OTHER_CODES.get(code, code)
        return frozenset({code, *(x for x, same in OTHER_CODES.items() if same == code)})

    @cached_property
    def disambiguations(self) -> frozenset[str]:
        """Casefolded names of the templates that mark disambiguation pages."""
        known = self.names.disambiguations
        if known is None:
            known = disambiguation_templates(self.language)
        return known - self.not_disambiguations

    def namespace(self, title: str) -> int:
        """The namespace of a page by the prefix of its title; 0 for articles."""
        prefix, colon, _ = title.partition(":")
        return self.prefixes.get(prefix.strip().replace("_", " ").casefold(), 0) if colon else 0

    def namespace_name(self, number: int) -> str:
        """The name of a namespace as titles have it, for example ``User talk``."""
        return self.namespaces.get(number) or CANONICAL_NAMESPACES.get(number, "")

    def case_of(self, namespace: int) -> str:
        """``first-letter`` or ``case-sensitive``."""
        return self.cases.get(namespace, self.case)
