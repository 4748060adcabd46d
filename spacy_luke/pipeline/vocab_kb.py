"""A knowledge base of the entities in an encoder's vocabulary."""

import re
from collections.abc import Callable, Iterator
from functools import partial

from spacy.util import registry
from spacy.vocab import Vocab

from ..checkpoint.hub import resolve
from ..checkpoint.read import read_entities
from ..kb.build import build_kb
from ..kb.entity import NIL, NOT_GIVEN, Entity
from ..kb.knowledge_base import MappedKB
from ..kb.store import open_temporary
from ..vocab.editing import special
from ..vocab.entity_vocab import EntityVocab

_LANGUAGE = re.compile(r"[a-z][a-z-]+:(?=.)")
_QUALIFIER = re.compile(r"(?<=\S) \([^()]+\)$")


def kb_of_entities(entities: EntityVocab, vocab: Vocab) -> MappedKB:
    """A knowledge base with all entities except the special ones, in the order of their rows.

    The id of an entity is its title in the language of ``vocab``, without a prefix; or its first
    name (``ja:...``) if it has none in that language. Its name is this title, and its aliases are
    its titles in all languages, also without a qualifier: "Paris" means "Paris (band)", too. There
    are no counts, so that all meanings of an alias have the same prior.
    """
    build = partial(build_kb, _entities(entities, vocab.lang), lang=vocab.lang)
    return MappedKB(vocab, store=open_temporary(build))


def _entities(entities: EntityVocab, language: str) -> Iterator[Entity]:
    specials = special(entities)
    has_languages = all(x in specials or _LANGUAGE.match(x) for x in entities.names)

    def title(name: str) -> str:
        return _LANGUAGE.sub("", name, count=1) if has_languages else name

    names_of: dict[int, list[str]] = {}
    for name, row in entities.names.items():
        if name not in specials and title(name).strip() and title(name) != NIL:
            names_of.setdefault(row, []).append(name)
    for names in names_of.values():
        own = next((x for x in names if x.startswith(f"{language}:")), names[0])
        is_own = has_languages and own.startswith(f"{language}:")
        titles = [title(x) for x in names]
        aliases = dict.fromkeys([*titles, *(_QUALIFIER.sub("", x) for x in titles)], NOT_GIVEN)
        yield Entity(title(own) if is_own else own, title(own), aliases)


@registry.misc("spacy-luke.KBFromEntityVocab.v1")
def KBFromEntityVocab_v1(name: str) -> Callable[[Vocab], MappedKB]:
    """A ``kb_loader``: the entities that a published checkpoint knows; see :func:`kb_of_entities`.

    name: a directory, or a name on the hub.
    """
    return partial(_load, name)


def _load(name: str, vocab: Vocab) -> MappedKB:
    return kb_of_entities(read_entities(resolve(name, weights=False)), vocab)
