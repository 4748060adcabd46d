"""Entities to the files of a knowledge base. Texts are streamed to files; per entity and alias only
numbers are in memory."""

import math
from array import array
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ..errors import KnowledgeBaseError
from ..files import beside, whole_folder
from ..mapped_array import map_array, save_array
from ..validation import Count, check_settings
from .arrays import Array, ArrayWriter, writing
from .entity import (
    EMPTY_ALIAS,
    EMPTY_NAME,
    Entity,
    Findings,
    check_count,
    check_id,
    check_text,
)
from .layout import COUNTS, INDEXED, PRIORS
from .meanings import check_weight, count_ambiguous, limit_meanings, share_priors
from .normalize import normalize_name
from .store import check_replaceable, write_meta
from .text_table import TextTable, TextWriter, digest, hash_index
from .trigrams import write_trigrams

MAX_MEANINGS = 1_000
_FIELDS = ("id", "name", "description", "type")
_TABLES = ("ids", "names", "descriptions", "types")
_ALIASES = "aliases"


@dataclass
class _Pairs:
    """Aliases in the order of the file: entity and weight of each (n,), and the two parts of its
    hash."""

    entities: array = field(default_factory=lambda: array("i"))
    weights: array = field(default_factory=lambda: array("d"))
    low: array = field(default_factory=lambda: array("Q"))
    high: array = field(default_factory=lambda: array("Q"))


def build_kb(
    entities: Iterable[Entity],
    folder: Path,
    lang: str = "",
    max_meanings: Count = MAX_MEANINGS,
    findings: Findings | None = None,
    priors: bool = False,
) -> Findings:
    """Write a knowledge base to a folder, which it replaces when it is complete.

    lang: names are normalised as names of this language (``normalize_name``).
    max_meanings: an alias that means more entities is kept for the most frequent ones; counted.
    priors: weights of aliases are probabilities, not counts (``share_priors``); more than 1 is
        invalid.

    Returns the findings, with what was left out. Raises CorpusError for invalid values, and
    KnowledgeBaseError if the folder contains anything but a knowledge base.
    """
    check_settings("build_kb", build_kb, {"max_meanings": max_meanings})
    findings = Findings() if findings is None else findings
    folder = folder.resolve()  # a link keeps pointing to it
    check_replaceable(folder)
    with writing(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with whole_folder(folder) as out, beside(folder) as scratch:
            scratch.mkdir()
            pairs = _write_entities(entities, out, scratch, priors, findings)
            _write_aliases(pairs, out, scratch, lang, max_meanings, priors, findings)
            write_trigrams(_table(out, "keys"), out)
            for table in INDEXED:
                hashes = map_array(
                    scratch / f"{table}.hash.npy", KnowledgeBaseError, scattered=True
                )
                for kind, values in zip(("hashes", "rows"), hash_index(np.array(hashes))):
                    save_array(out / f"{table}.{kind}.npy", values)
            weights = PRIORS if priors else COUNTS
            write_meta(out, lang=lang, weights=weights, max_meanings=max_meanings)
    return findings


def _write_entities(
    entities: Iterable[Entity], out: Path, scratch: Path, priors: bool, findings: Findings
) -> _Pairs:
    """Write the tables of entities, and the aliases to ``scratch``."""
    pairs = _Pairs()
    known: set[tuple[int, int]] = set()
    with ExitStack() as stack:
        tables = [stack.enter_context(TextWriter(out, name)) for name in _TABLES]
        aliases = stack.enter_context(TextWriter(scratch, _ALIASES))
        counts = stack.enter_context(ArrayWriter(out / "counts.npy", np.float64))
        ids = stack.enter_context(ArrayWriter(scratch / "ids.hash.npy", np.uint64))
        for entity in entities:
            hashed = digest(check_id(entity.id, "An entity").encode("utf8"))
            if hashed in known:
                findings.add("entities left out because an earlier one has their id", entity.id)
                continue
            where = f"The entity {entity.id!r}"
            if not check_text(entity.name, "name", where).strip():
                findings.add(EMPTY_NAME, entity.id)
                continue
            ids.add(np.array([hashed[0]], np.uint64))
            counts.add(np.array([check_count(entity.count, "count", where)]))
            for table, name in zip(tables, _FIELDS):
                table.add(check_text(getattr(entity, name), name, where).encode("utf8"))
            for alias, weight in entity.aliases.items():
                if not check_text(alias, "aliases", where).strip():
                    findings.add(EMPTY_ALIAS, entity.id)
                    continue
                key = alias.encode("utf8")
                if not math.isnan(weight):
                    weight = check_weight(weight, f"aliases[{alias!r}]", where, priors)
                low, high = digest(key)
                aliases.add(key)
                pairs.entities.append(len(known))
                pairs.weights.append(weight)
                pairs.low.append(low)
                pairs.high.append(high)
            known.add(hashed)
    findings.counts["entities"] += len(known)  # also if there are none
    return pairs


def _write_aliases(
    pairs: _Pairs,
    out: Path,
    scratch: Path,
    lang: str,
    max_meanings: int,
    priors: bool,
    findings: Findings,
) -> None:
    """Write forms, keys and pairs."""
    texts = _table(scratch, _ALIASES)
    entities, weights = np.array(pairs.entities, np.int32), np.array(pairs.weights, np.float64)
    forms, firsts = _grouped(np.array(pairs.low, np.uint64), np.array(pairs.high, np.uint64))
    counts = np.array(map_array(out / "counts.npy", KnowledgeBaseError, scattered=False))
    if priors:
        weights = share_priors(forms, weights, findings)
    sizes = weights if priors else np.where(np.isnan(weights), counts[entities], weights)

    def text_of(form: int) -> str:
        return texts[firsts[form]]

    kept = limit_meanings(forms, sizes, max_meanings, text_of, findings)
    count_ambiguous(forms[kept], text_of, findings)
    keys, key_firsts = _normalized(texts, firsts, scratch, lang)
    order = np.argsort(keys, kind="stable")  # forms by key
    _write_texts(texts, firsts[order], out, scratch, "forms")
    _write_texts(_table(scratch, "normalized"), key_firsts, out, scratch, "keys")
    entities, weights, forms = entities[kept], weights[kept], _places(order)[forms[kept]]
    by_form = np.argsort(forms, kind="stable")  # pairs by form
    arrays = {
        "key_forms": _bounds(keys, len(key_firsts)),
        "form_pairs": _bounds(forms, len(firsts)),
        "pair_entities": entities[by_form],
        "pairs_of_entities": _places(by_form),
        "entity_pairs": _bounds(entities, len(counts)),
    }
    for name, values in arrays.items():
        save_array(out / f"{name}.npy", values.astype(np.int32))
    save_array(out / "pair_weights.npy", weights[by_form])
    findings.add("aliases", n=len(forms))
    n_without = int((np.bincount(entities, minlength=len(counts)) == 0).sum())
    findings.add("entities without an alias", n=n_without)


def _normalized(texts: TextTable, firsts: Array, scratch: Path, lang: str) -> tuple[Array, Array]:
    """Write the normalised form of every form. Returns the key of each form, and the first form of
    each key."""
    low, high = array("Q"), array("Q")
    with TextWriter(scratch, "normalized") as writer:
        for row in firsts.tolist():
            key = normalize_name(texts[row], lang).encode("utf8")
            writer.add(key)
            first, second = digest(key)
            low.append(first)
            high.append(second)
    return _grouped(np.array(low, np.uint64), np.array(high, np.uint64))


def _write_texts(texts: TextTable, rows: Array, out: Path, scratch: Path, name: str) -> None:
    """Write a table of some rows of another, and their hashes."""
    with (
        TextWriter(out, name) as writer,
        ArrayWriter(scratch / f"{name}.hash.npy", np.uint64) as hashes,
    ):
        for row in rows.tolist():
            key = texts.key(row)
            writer.add(key)
            hashes.add(digest(key)[0].to_bytes(8, "little"))


def _grouped(low: Array, high: Array) -> tuple[Array, Array]:
    """Groups of equal hashes, numbered by their first occurrence: the group of each row, and the
    first row of each group.

    Example: hashes [7, 5, 7] have the groups [0, 1, 0] and the first rows [0, 1].
    """
    order = np.lexsort((high, low))
    new = np.ones(len(order), bool)
    new[1:] = (low[order][1:] != low[order][:-1]) | (high[order][1:] != high[order][:-1])
    firsts = order[new]  # the sort is stable
    rank = np.empty(len(firsts), np.int64)
    rank[np.argsort(firsts)] = np.arange(len(firsts))
    groups = np.empty(len(order), np.int64)
    groups[order] = rank[np.cumsum(new) - 1]
    return groups, np.sort(firsts)


def _places(order: Array) -> Array:
    """The inverse of a permutation (n,): the place of each row in ``order``."""
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    return places


def _bounds(groups: Array, n_groups: int) -> Array:
    """(n_groups + 1,) bounds of the rows of each group, when they are sorted by group."""
    return np.concatenate([[0], np.cumsum(np.bincount(groups, minlength=n_groups))])


def _table(folder: Path, name: str) -> TextTable:
    kinds = (f"{name}.text", f"{name}.starts")
    return TextTable(
        {
            kind: map_array(folder / f"{kind}.npy", KnowledgeBaseError, scattered=True)
            for kind in kinds
        },
        name,
    )
