"""A candidate of the memory-mapped knowledge base as spaCy's ``Candidate``."""

from spacy.kb import Candidate, KnowledgeBase
from spacy.strings import get_string_id

from ..errors import InputError
from .arrays import Array
from .candidates import FoundEntity, Match
from .tables import Tables
from .vectors import existing


class MappedCandidate(Candidate):
    """A candidate that does not add its texts to the vocabulary.

    match: ``exact``, ``normalised``, ``fuzzy`` or ``nearest``. likeness: of alias and mention, or
    of their vectors, from 0 to 1. prior: probability of the entity, given the alias. counted:
    whether the alias is equal, and its prior counted or given. ``prior_prob`` is the product of
    prior and likeness.
    """

    def __init__(self, kb: KnowledgeBase, tables: Tables, found: FoundEntity):
        self.id: str = tables.ids[found.row]
        self.match: Match = found.match
        self.likeness, self.prior, self.counted = found.likeness, found.prior, found.counted
        self.row, self._tables, self._form = found.row, tables, found.form
        count, prior = float(tables.counts[found.row]), found.prior * found.likeness
        super().__init__(kb, get_string_id(self.id), count, [], 0, prior)

    @property
    def entity_(self) -> str:
        return self.id

    @property
    def alias(self) -> int:
        return get_string_id(self.alias_)

    @property
    def alias_(self) -> str:
        """The alias that matched, as it is written in the knowledge base."""
        return self._tables.forms[self._form]

    @property
    def name(self) -> str:
        return self._tables.names[self.row]

    @property
    def description(self) -> str:
        return self._tables.descriptions[self.row]

    @property
    def type(self) -> str:
        return self._tables.types[self.row]

    @property
    def entity_vector(self) -> Array:
        """(width,) float32. Raises InputError if the knowledge base has no vectors, or this entity
        has none yet: a similarity would be meaningless."""
        if self._tables.vectors is None:
            raise InputError(
                "The knowledge base has no vectors of entities. Make them, or set incl_context = "
                "false in the settings of entity_linker."
            )
        self._tables.looked_up()
        return existing(self._tables.vectors[self.row], self.id)
