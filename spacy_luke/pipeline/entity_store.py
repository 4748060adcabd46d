"""Change the entity table of an encoder: prune it, or add entities."""

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


class TitledMention(NamedTuple):
    """A mention of the entity ``title``: the token range [start, end) of a document."""

    title: str
    doc: Doc
    start: int
    end: int


def find_encoder(nlp: Language, name: str = "") -> Any:
    """The encoder node of the component ``name``, or of the only component that has its own
    encoder; of disabled components only if there is no other. Raises ConfigError if there is none,
    or if there are several and no name is given."""
    encoders = {}
    for pipe_name, pipe in nlp.components:
        model: Any = getattr(pipe, "model", None)
        for node in model.walk() if hasattr(model, "walk") else ():
            if node.name == ENCODER:
                encoders[pipe_name] = node
    names = [x for x in encoders if x not in nlp.disabled] or list(encoders)
    if name and name not in encoders:
        raise ConfigError(f"{name!r} has no LUKE encoder of its own; these have: {list(encoders)}.")
    if not encoders:
        present = ", ".join(nlp.component_names) or "it is empty"
        raise ConfigError(f"No component of the pipeline ({present}) has a LUKE encoder.")
    if not name and len(names) != 1:
        raise ConfigError(f"{len(names)} components have an encoder {names}: name one.")
    return encoders[name or names[0]]


def replace_entities(node: Any, vocab: EntityVocab, fallback: Checkpoint | None = None) -> None:
    """Give an encoder the entities of ``vocab``: its own rows unchanged if it has them, else those
    of ``fallback``. Raises ConfigError if neither has a row for an entity."""
    checkpoint = to_checkpoint(module_of(node))
    known = [checkpoint.entities] + ([fallback.entities] if fallback else [])
    absent = [x for x in vocab.names if not any(x in entities for entities in known)]
    if absent:
        raise ConfigError(f"There are no rows for {len(absent)} entities, {absent[0]!r} first.")
    set_encoder(node, with_entities(checkpoint, vocab, fallback=fallback))


def reinitialize_entities(node: Any, seed: int = 0) -> None:
    """Re-initialise the rows of all entities except the special ones from normal(0,
    ``initializer_range``), and their biases with zeros."""
    checkpoint = to_checkpoint(module_of(node))
    set_encoder(node, with_entities(checkpoint, checkpoint.entities, seed=seed, keep=False))


def add_entities(
    node: Any, mentions: Sequence[TitledMention], language: str | None = None
) -> list[str]:
    """Add entities, or replace the rows of existing ones, from mentions of them.

    A row is the mean of the masked-entity head's features at the entity's mentions, each hidden
    behind [MASK] (the head scores a row by its product with these features: Yamada et al. 2020,
    section 3.2). Its length and its bias are the means of the other rows' lengths and biases.

    language: to look up titles that name no language. Returns the titles, in order of appearance.

    Raises ConfigError if the encoder's checkpoint has no masked-entity head, and InputError for a
    special entity or a mention without pieces.
    """
    checkpoint = to_checkpoint(module_of(node))
    specials = sorted({x.title for x in mentions} & {PAD, UNK, MASK, MASK2})
    if specials:
        raise InputError(f"{specials[0]} is a special entity, which cannot be replaced.")
    mentions = _under_one_title(mentions, checkpoint.entities, language)
    features = _mean_features(node, checkpoint, mentions)
    names = dict(checkpoint.entities.names.items())
    n_old = len(checkpoint.entities)
    rows, n_rows = {}, n_old
    for title in features:
        known = checkpoint.entities.find(title, language)
        rows[title] = n_rows if known is None else known
        if known is None:
            names[title], n_rows = n_rows, n_rows + 1
    grown = with_entities(checkpoint, EntityVocab(names))
    table, bias = grown.weights[ENTITY_TABLE], grown.others[ENTITY_HEAD["bias"]]
    # with_entities copies rows by name, and some rows have none.
    table[:n_old] = checkpoint.weights[ENTITY_TABLE].cpu()
    bias[:n_old] = checkpoint.others[ENTITY_HEAD["bias"]].cpu()
    excluded = {names[x] for x in special(grown.entities)} | {*rows.values()}
    others = sorted({*names.values()} - excluded)
    if others:
        mean_length, mean_bias = table[others].norm(dim=1).mean(), bias[others].mean()
    else:
        mean_length, mean_bias = table[grown.entities.mask_id].norm(), bias.new_zeros(())
    for title, vector in features.items():
        table[rows[title]] = vector / vector.norm().clamp(min=1e-9) * mean_length
        bias[rows[title]] = mean_bias
    set_encoder(node, grown)
    return list(features)


def _under_one_title(
    mentions: Sequence[TitledMention], entities: EntityVocab, language: str | None
) -> list[TitledMention]:
    """Give all mentions of one entity the title of its first mention. Titles mean one entity if
    they name one row of the table, or if they differ in underscores only."""
    first: dict[int | str, str] = {}
    result = []
    for mention in mentions:
        known = entities.find(mention.title, language)
        entity = mention.title.replace("_", " ") if known is None else known
        result.append(mention._replace(title=first.setdefault(entity, mention.title)))
    return result


def _mean_features(
    node: Any, checkpoint: Checkpoint, mentions: Sequence[TitledMention]
) -> dict[str, torch.Tensor]:
    """title -> the mean of the masked-entity head's features, (entity size,)."""
    spans = [x.doc[x.start : x.end] for x in mentions]
    features, encoded = mention_features(node, checkpoint, spans)
    by_title: dict[str, list[torch.Tensor]] = {mention.title: [] for mention in mentions}
    for mention, vector, is_encoded in zip(mentions, features, encoded.tolist()):
        if not is_encoded:
            raise InputError(f"A mention of {mention.title!r} has no pieces.")
        by_title[mention.title].append(vector)
    return {title: torch.stack(vectors).mean(0) for title, vectors in by_title.items()}
