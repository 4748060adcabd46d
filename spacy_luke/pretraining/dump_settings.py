"""What a user says about a dump, in terms of its wiki."""

import re
from dataclasses import replace

from ..errors import ConfigError
from .settings import DumpSettings, language_code
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
    prefixes = (prefix.strip(" :").casefold() for prefix in settings.interwikis)
    return replace(
        site,
        language=language,
        # An export that is wrong about its language is so about its name.
        dbname=site.dbname if language == language_code(site.language or language) else "",
        content=frozenset(content),
        interwikis=frozenset(prefixes),
        not_disambiguations=frozenset(map(template_key, settings.not_disambiguations)),
    )


def markup_settings(settings: DumpSettings) -> MarkupSettings:
    """Raises ConfigError if a template has no name."""
    found = {}
    for text in settings.templates:
        name, _, key = text.partition("=")
        if not name.strip():
            raise ConfigError(f"--templates {text}: use NAME or NAME=ARGUMENT.")
        found[template_key(name)] = key.strip() or "1"
    return MarkupSettings(settings.tables, found)
