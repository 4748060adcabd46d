"""The entities that an encoder knows: prune them, add others' or one's own."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from spacy.language import Language
from spacy.tokens import Doc

from ..checkpoint.entity_table import with_entities
from ..checkpoint.names import ENTITY_HEAD, ENTITY_TABLE
from ..checkpoint.read import Checkpoint
from ..errors import ConfigError, InputError
from ..layers.encoder import ENCODER, module_of, set_encoder, to_checkpoint
from ..vocab.editing import special
from ..vocab.entity_vocab import MASK, MASK2, PAD, UNK, EntityVocab
from .masked_entities import mention_features


class Mention(NamedTuple):
    """An entity of one's own where it is written: token range [start, end) of a document."""

    title: str
    doc: Doc
    start: int
    end: int


def encoder_of(nlp: Language, name: str = "") -> Any:
    """The encoder node of a component that has one of its own. Raises ConfigError where there is
    none, or several and no name."""
    found = {}
    for pipe_name, pipe in nlp.pipeline:
        model: Any = getattr(pipe, "model", None)
        for node in model.walk() if hasattr(model, "walk") else ():
            if node.name == ENCODER:
                found[pipe_name] = node
    if name and name not in found:
        raise ConfigError(f"{name!r} has no LUKE encoder of its own; these have: {list(found)}.")
    if not name and len(found) != 1:
        raise ConfigError(f"{len(found)} components have an encoder {list(found)}: name one.")
    return found[name or next(iter(found))]


def set_entities(node: Any, vocab: EntityVocab, fallback: Checkpoint | None = None) -> None:
    """Give an encoder the rows of other entities: its own where it knows them, exactly; else those
    of ``fallback``. Raises ConfigError where neither has a row for an entity."""
    checkpoint = to_checkpoint(module_of(node))
    known = [checkpoint.entities] + ([fallback.entities] if fallback else [])
    absent = [x for x in vocab.names if not any(x in entities for entities in known)]
    if absent:
        raise ConfigError(f"There are no rows for {len(absent)} entities, {absent[0]!r} first.")
    set_encoder(node, with_entities(checkpoint, vocab, fallback=fallback))


def draw_anew(node: Any, seed: int = 0) -> None:
    """Re-initialise the rows of all entities but the special ones, from normal(0,
    ``initializer_range``), their biases from zero."""
    checkpoint = to_checkpoint(module_of(node))
    set_encoder(node, with_entities(checkpoint, checkpoint.entities, seed=seed, keep=False))


def add_entities(node: Any, mentions: Sequence[Mention], language: str | None = None) -> list[str]:
    """Add entities of one's own, or replace the rows of known ones. language: in which to look up
    titles without one.

    An entity's row is what the masked-entity head would look for at its mentions, each hidden
    behind [MASK]: the mean of the head's features (Yamada et al. 2020, section 3.2: a row is scored
    by its product with them), as long as the rows of other entities are on average; its bias is
    theirs on average. Returns the titles, in order of appearance.

    Raises ConfigError where the encoder came without a masked-entity head, and InputError for a
    mention without pieces.
    """
    checkpoint = to_checkpoint(module_of(node))
    refused = sorted({x.title for x in mentions} & {PAD, UNK, MASK, MASK2})
    if refused:
        raise InputError(f"{refused[0]} is a special entity, which no description can replace.")
    mentions = _under_one_title(mentions, checkpoint.entities, language)
    features = _mean_features(node, checkpoint, mentions)
    names = dict(checkpoint.entities.names.items())
    before = len(checkpoint.entities)
    rows, n_rows = {}, before
    for title in features:
        known = checkpoint.entities.find(title, language)
        rows[title] = n_rows if known is None else known
        if known is None:
            names[title], n_rows = n_rows, n_rows + 1
    grown = with_entities(checkpoint, EntityVocab(names))
    table, bias = grown.weights[ENTITY_TABLE], grown.others[ENTITY_HEAD["bias"]]
    # Also rows without a name.
    table[:before] = checkpoint.weights[ENTITY_TABLE].cpu()
    bias[:before] = checkpoint.others[ENTITY_HEAD["bias"]].cpu()
    taken = {names[x] for x in special(grown.entities)} | {*rows.values()}
    others = sorted({*names.values()} - taken)
    if others:
        length, level = table[others].norm(dim=1).mean(), bias[others].mean()
    else:
        length, level = table[grown.entities.mask_id].norm(), bias.new_zeros(())
    for title, vector in features.items():
        table[rows[title]] = vector / vector.norm().clamp(min=1e-9) * length
        bias[rows[title]] = level
    set_encoder(node, grown)
    return list(features)


def _under_one_title(
    mentions: Sequence[Mention], entities: EntityVocab, language: str | None
) -> list[Mention]:
    """Mentions of one entity under the title that came first: two names of one row, or two
    spellings of a new one."""
    first: dict[int | str, str] = {}
    result = []
    for mention in mentions:
        known = entities.find(mention.title, language)
        entity = mention.title.replace("_", " ") if known is None else known
        result.append(mention._replace(title=first.setdefault(entity, mention.title)))
    return result


def _mean_features(
    node: Any, checkpoint: Checkpoint, mentions: Sequence[Mention]
) -> dict[str, torch.Tensor]:
    """title -> the mean of the masked-entity head's features, (entity size,)."""
    spans = [x.doc[x.start : x.end] for x in mentions]
    features, seen = mention_features(node, checkpoint, spans)
    sums: dict[str, list[torch.Tensor]] = {mention.title: [] for mention in mentions}
    for mention, vector, is_seen in zip(mentions, features, seen.tolist()):
        if not is_seen:
            raise InputError(f"A mention of {mention.title!r} has no pieces.")
        sums[mention.title].append(vector)
    return {title: torch.stack(found).mean(0) for title, found in sums.items()}
