"""Links on the page: every mention with its candidates, and the entity that was chosen."""

from collections.abc import Collection
from typing import TYPE_CHECKING, NamedTuple

from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example

from ...annotations.candidates import clear_candidates, get_candidates
from ...annotations.mentions import NIL, Place, all_spans, characters, spans_of
from ...metrics.ner import wrong_if_not_gold
from ...metrics.relations import common_places
from ...pipeline.links import write_links

if TYPE_CHECKING:
    from ...kb.knowledge_base import MappedKB

LINKS = "span._.candidates"
MAX_CANDIDATES = 5
"""Candidates that are shown of a mention."""
_MAX_CHARACTERS = 160
"""Of a description."""


class ShownCandidate(NamedTuple):
    name: str
    score: float
    is_gold: bool


class ShownLink(NamedTuple):
    """A mention and its link.

    kind: "plain" without annotation, else "agreed", "spurious" (another entity, or one where there
    is none or no mention) or "missed" (none where there is one). name: of the entity; empty for
    "NIL". description: of the entity, at its first mention. gold: the right ones, if they are
    annotated and another was chosen. n_others: candidates that are not shown. end: the last
    character of the mention, exclusive. is_found: whether the mention was predicted.
    """

    kind: str
    mention: str
    name: str
    description: str
    gold: str
    candidates: list[ShownCandidate]
    n_others: int
    end: int
    is_found: bool = True


def linking_kb(nlp: Language) -> "MappedKB | None":
    """The knowledge base of the last component that writes candidates."""
    from ...pipeline.luke_linker import LukeLinker

    pipes = [pipe for _, pipe in nlp.pipeline if isinstance(pipe, LukeLinker)]
    return pipes[-1].kb if pipes else None


def show_links(
    doc: Doc,
    reference: Doc,
    kb: "MappedKB | None",
    spans_key: str | None = None,
    labels_discard: Collection[str] = (),
) -> list[ShownLink]:
    """The mentions of a document in text order, and those with a gold link that were not found. The
    settings are those of the component.

    kb: None if it is not known. Entities are then shown by their ids, and only mentions with links
    or candidates.
    """
    from ...pipeline.links import gold_ids, reference_links

    mentions = [x for x in spans_of(doc, spans_key) if x.label_ not in labels_discard]
    if kb is None:
        mentions = [x for x in mentions if has_link(x)]
    eg = Example(doc, reference)
    gold = gold_ids([eg], [mentions], spans_key, labels_discard)
    place_of, gold_place_of = (common_places(eg, x) for x in (doc, reference))
    gold_mentions = {gold_place_of(characters(x)): x for x in all_spans(reference, spans_key)}
    wrong = wrong_if_not_gold(eg, mentions, spans_key)
    no_mentions = {characters(x) for x in wrong if place_of(characters(x)) not in gold_mentions}
    described: set[str] = set()
    shown: dict[Place, ShownLink] = {}
    for mention, ids in zip(mentions, gold):
        new = mention.kb_id_ not in described
        described.add(mention.kb_id_)
        no_mention = characters(mention) in no_mentions
        shown[place_of(characters(mention))] = _show(mention, ids, kb, new, no_mention)
    found = {place_of(characters(x)) for x in all_spans(doc, spans_key)}
    for place, links in reference_links(eg, spans_key, labels_discard).items():
        ids = links - {NIL}
        if ids and place not in shown:
            shown[place] = _missed(gold_mentions[place], ids, kb, place in found)
    return [shown[place] for place in sorted(shown)]


def clear_links(doc: Doc, spans_key: str | None) -> None:
    """Remove ``kb_id_`` of the entities, or of the spans of a group, and all candidates."""
    clear_candidates(doc)
    mentions = {(x.start, x.end): "" for x in all_spans(doc, spans_key)}
    write_links(doc, mentions, {"spans_key": spans_key, "overwrite": True, "labels_discard": ()})


def has_link(mention: Span) -> bool:
    """Whether a mention has a link, "NIL" included, or candidates."""
    return bool(mention.kb_id) or get_candidates(mention) is not None


def _show(
    mention: Span, gold: set[str], kb: "MappedKB | None", describe: bool, no_mention: bool
) -> ShownLink:
    """no_mention: whether the annotation has no mention there."""
    link = mention.kb_id_ or NIL
    kind, others = "plain", ""
    if gold:
        wrong = "missed" if link == NIL else "spurious"
        kind = "agreed" if link in gold else wrong
        others = "" if link in gold else _names(kb, gold)
    elif no_mention and link != NIL:
        kind, others = "spurious", "no mention"
    candidates = get_candidates(mention) or ()
    return ShownLink(
        kind,
        mention.text,
        "" if link == NIL else _name(kb, link),
        _description(kb, link) if describe else "",
        others,
        [ShownCandidate(_name(kb, x), y, x in gold) for x, y in candidates[:MAX_CANDIDATES]],
        max(len(candidates) - MAX_CANDIDATES, 0),
        mention.end_char,
    )


def _missed(mention: Span, gold: set[str], kb: "MappedKB | None", is_found: bool) -> ShownLink:
    """A gold mention that is not linked: it was not found, or only with a label that is not."""
    names, end = _names(kb, gold), mention.end_char
    return ShownLink("missed", mention.text, "", "", names, [], 0, end, is_found)


def _names(kb: "MappedKB | None", entities: Collection[str]) -> str:
    return ", ".join(_name(kb, x) for x in sorted(entities))


def _name(kb: "MappedKB | None", entity: str) -> str:
    return kb.entity(entity).name if kb is not None and entity in kb else entity


def _description(kb: "MappedKB | None", entity: str) -> str:
    text = kb.entity(entity).description if kb is not None and entity in kb else ""
    return (
        text
        if len(text) <= _MAX_CHARACTERS
        else text[: _MAX_CHARACTERS - 1] + "\N{HORIZONTAL ELLIPSIS}"
    )
