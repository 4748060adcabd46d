"""The registered functions of spaCy's ``entity_linker``, and of components with its settings."""

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from spacy.kb import Candidate, KnowledgeBase
from spacy.tokens import Span
from spacy.util import registry
from spacy.vocab import Vocab

from ..errors import ConfigError
from ..validation import Count
from .candidates import CandidateSettings, Fuzzy, Likeness
from .knowledge_base import MappedKB

_DEFAULTS = CandidateSettings()


@registry.misc("spacy-luke.KBFromFile.v1")
def kb_from_file(kb_path: Path) -> Callable[[Vocab], MappedKB]:
    """A ``kb_loader``: open the folder that ``spacy luke kb`` wrote."""
    return lambda vocab: MappedKB.open(kb_path, vocab)


@registry.misc("spacy-luke.EmptyKB.v1")
def empty_kb() -> Callable[[Vocab, int], MappedKB]:
    """A ``generate_empty_kb``: the knowledge base to which a saved one is loaded."""
    return MappedKB


@registry.misc("spacy-luke.alias_candidates.v1")
def alias_candidates(
    k: Count = _DEFAULTS.k,
    fuzzy: Fuzzy = _DEFAULTS.fuzzy,
    min_likeness: Likeness = _DEFAULTS.min_likeness,
    shortlist: Count = _DEFAULTS.shortlist,
    budget: Count = _DEFAULTS.budget,
) -> Callable[[KnowledgeBase, Span], Iterable[Candidate]]:
    """A ``get_candidates``: the candidates of one span (settings: ``CandidateSettings``)."""
    return partial(_of_one, CandidateSettings(k, fuzzy, min_likeness, shortlist, budget))


@registry.misc("spacy-luke.alias_candidates_batch.v1")
def alias_candidates_batch(
    k: Count = _DEFAULTS.k,
    fuzzy: Fuzzy = _DEFAULTS.fuzzy,
    min_likeness: Likeness = _DEFAULTS.min_likeness,
    shortlist: Count = _DEFAULTS.shortlist,
    budget: Count = _DEFAULTS.budget,
) -> Callable[[KnowledgeBase, Iterable[Span]], Iterable[Iterable[Candidate]]]:
    """A ``get_candidates_batch``: the candidates of spans, of any number of documents."""
    return partial(_of_batch, CandidateSettings(k, fuzzy, min_likeness, shortlist, budget))


# Not local functions, which could not be pickled.


def _of_one(settings: CandidateSettings, kb: KnowledgeBase, mention: Span) -> Iterable[Candidate]:
    return next(iter(_of_batch(settings, kb, [mention])))


def _of_batch(
    settings: CandidateSettings, kb: KnowledgeBase, mentions: Iterable[Span]
) -> Iterable[Iterable[Candidate]]:
    if not isinstance(kb, MappedKB):
        raise ConfigError(
            f"alias_candidates needs a knowledge base of spacy-luke, not {type(kb).__name__}. "
            "Set generate_empty_kb to spacy-luke.EmptyKB.v1, and kb_loader to "
            "spacy-luke.KBFromFile.v1."
        )
    return kb.candidates([mention.text for mention in mentions], settings)
