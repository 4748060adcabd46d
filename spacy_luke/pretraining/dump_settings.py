"""What a user says about a dump, in terms of its wiki."""

import re
from collections.abc import Collection, Iterable
from dataclasses import replace

from ..errors import ConfigError
from .settings import DumpSettings
from .wiki.languages import CANONICAL_NAMESPACES
from .wiki.markup import MarkupSettings
from .wiki.sites import MAIN, Site
from .wiki.templates import template_key


def site_of(site: Site, language: str, settings: DumpSettings) -> Site:
    """A site with what the user says about it. Raises ConfigError."""
    numbers = {
        name.casefold(): n for n, name in {**CANONICAL_NAMESPACES, **site.namespaces}.items()
    }
    content = {MAIN}
    for name in settings.namespaces:
        number = int(name) if re.fullmatch("-?[0-9]+", name) else numbers.get(name.casefold())
        if number is None or (site.namespaces and number not in site.namespaces):
            known = ", ".join(f"{n} {x}".strip() for n, x in sorted(site.namespaces.items()))
            raise ConfigError(f"--namespaces {name}: this wiki has {known or 'no list of them'}.")
        content.add(number)
    own = site.language.lower().replace("_", "-")
    prefixes = (prefix.strip(" :").casefold() for prefix in settings.interwikis)
    return replace(
        site,
        language=language,
        # An export that is wrong about its language is so about its name.
        dbname=site.dbname if own in ("", language) else "",
        content=frozenset(content),
        interwikis=frozenset(prefixes),
        not_disambiguations=frozenset(
            _template(name, site.template_prefixes) for name in settings.not_disambiguations
        ),
    )


def _template(name: str, prefixes: Collection[str]) -> str:
    """The key of a template as a user names it, maybe as in a link: ``:Template:Note``."""
    return template_key(name.strip().removeprefix(":"), prefixes)


def markup_settings(settings: DumpSettings, sites: Iterable[Site]) -> MarkupSettings:
    """Raises ConfigError if a template has no name. sites: of the files of the dump."""
    prefixes = Site().template_prefixes.union(*(site.template_prefixes for site in sites))
    found = {}
    for text in settings.templates:
        name, _, key = text.partition("=")
        template = _template(name, prefixes)
        if not template:
            raise ConfigError(f"--templates {text}: use NAME or NAME=ARGUMENT.")
        found[template] = key.strip() or "1"
    return MarkupSettings(settings.tables, found)
