"""Random documents: scripts, lengths, white space, entities and spans that real corpora lack."""

import random
from collections.abc import Iterator

from spacy.tokens import Doc, Span
from spacy.vocab import Vocab

WORDS = (
    "Ada", "Lovelace", "London", "Tokyo", "Japan", "Charles", "Babbage", "was", "born", "in",
    "lives", "with", "the", "of", "capital", "University", ".", ",", "'", "'s", "n't", "-", "(",
    ")",
)  # fmt: skip
_RANGES = (
    (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0x05D0, 0x06FF), (0x0E00, 0x0E5F), (0xFF00, 0xFFEF),
    (0x0000, 0xFFFF), (0x0000, 0x10FFFF),
)  # fmt: skip
_STRANGE = (
    "\u0000", "\ufeff", "\u200b", "\u200d", "\u2028", "\x85", "\u00a0", "\u3000", "\u202e",
    "\uffff", "İstanbul", "ﬁne", "ẞ", "ǅ", "½", "㎏", "ﷺ", "𝕬𝖉𝖆", "👩‍👩‍👧‍👦🏳️‍🌈", "New York\nCity",
    "<s>", "<mask>", "<unk>", "<ent>", "[MASK]", "##a", "▁", "Ġ", "@", "#", "*",
)  # fmt: skip
_SPACES = (" ", "  ", "\n", "\n\n", "\t", "\r\n", "   \n ")
_LABELS = ("PER", "LOC", "ORG", "")


def random_documents(vocab: Vocab, n: int, seed: str) -> Iterator[Doc]:
    """The same documents for the same seed."""
    rng = random.Random(seed)
    for _ in range(n):
        words = _words(rng)
        doc = Doc(vocab, words=words, spaces=[rng.random() < 0.6 for _ in words])
        if len(doc):
            _sentences(doc, rng)
            _entities(doc, rng)
            _spans(doc, rng)
        yield doc


def _words(rng: random.Random) -> list[str]:
    kind = rng.randrange(40)
    if kind == 0:
        return []
    if kind == 1:
        return rng.choices(_SPACES, k=rng.randint(1, 6))
    if kind == 2:
        return ["y" * rng.choice((100, 1000, 5000))]
    if kind == 3:
        return [_word(rng) for _ in range(rng.randint(60, 300))]
    if kind == 4:
        return ["a"] * rng.randint(1, 100)
    return [_word(rng) for _ in range(rng.randint(1, 25))]


def _word(rng: random.Random) -> str:
    kind = rng.random()
    if kind < 0.5:
        return rng.choice(WORDS)
    if kind < 0.75:
        least, most = rng.choice(_RANGES)
        characters = (chr(rng.randint(least, most)) for _ in range(rng.randint(1, 8)))
        return "".join(x for x in characters if not "\ud800" <= x <= "\udfff") or "?"
    if kind < 0.85:
        return rng.choice(_STRANGE) * rng.randint(1, 2)
    if kind < 0.9:
        return rng.choice(_SPACES)
    if kind < 0.95:
        return "e" + "".join(chr(rng.randint(0x300, 0x36F)) for _ in range(rng.randint(1, 20)))
    return "x" * rng.choice((1, 63, 65, 200))


def _sentences(doc: Doc, rng: random.Random) -> None:
    """Boundaries: not set, all, some, or some unknown."""
    values = rng.choice(((), (True,), (True, False, False), (None, True, False)))
    for token in doc[1:] if values else ():
        token.is_sent_start = rng.choice(values)


def _entities(doc: Doc, rng: random.Random) -> None:
    """Entities of any length, with and without label and identifier; blocked and missing tokens."""
    chosen: dict[str, list[Span]] = {"entities": [], "blocked": [], "missing": [], "outside": []}
    start = 0
    while start < len(doc):
        end = min(len(doc), start + rng.choice((1, 1, 1, 2, 3, 5, 20)))
        kind = rng.choices(list(chosen), weights=(35, 7, 8, 50))[0]
        label, name = rng.choice(_LABELS), rng.choice(("", "NIL", "Tokyo", "Q1"))
        chosen[kind].append(Span(doc, start, end, label=label, kb_id=name))
        start = end
    doc.set_ents(
        chosen["entities"],
        blocked=chosen["blocked"],
        missing=chosen["missing"],
        outside=chosen["outside"],
    )


def _spans(doc: Doc, rng: random.Random) -> None:
    """A group of spans that overlap, repeat, or are empty."""
    starts = [rng.randint(0, len(doc)) for _ in range(rng.randint(0, 8))]
    ends = [min(len(doc), start + rng.choice((0, 1, 2, 5, 50))) for start in starts]
    doc.spans["sc"] = [Span(doc, a, b, label=rng.choice(_LABELS)) for a, b in zip(starts, ends)]
