"""Where the names of a list are in a document."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from marisa_trie import Trie
from spacy.tokens import Doc

from ..kb.normalize import fold_name, is_shortened, normalize_name
from .name_list import NameList
from .streams import Stream, normalised, written

Match = Literal["exact", "normalised"]
Place = tuple[int, int]

_NEAR = 200
"""Characters in which names are looked up first: few names are longer."""
_ABBREVIATION = 3
"""Most letters of an abbreviation. Longer names may be in capitals because the whole list is."""
_MOST_DROPPED = 3
"""Tokens without a normalised form at one end of a name."""


class FoundName(NamedTuple):
    """start, end: tokens. match: whether the text is equal to a name as it is written, or only
    their normalised forms are."""

    start: int
    end: int
    label: str
    id: str
    match: Match


def find_names(names: NameList, doc: Doc, match: Match, k: int) -> list[FoundName]:
    """All names in a document, ordered by place. At one place exact ones are first, then they have
    the order of the list; one with the same label and id as an earlier one is left out.

    Names begin and end with tokens; white space of any kind and length is one space. Sentences do
    not matter. Punctuation with white space beside it is inside a normalised match only if it is in
    the name. Tokens of which normalisation leaves nothing begin or end such a match only if, but
    for case, the name is written with them. There is none inside an exact match of the same name.
    An abbreviation (``AS``) needs capitals (not ``as``), and a name of one word that ends in -s
    (``AIDS``, ``Windows``) that -s (not ``aid``), because it is mostly no plural.

    match: ``normalised`` finds exact ones, too. k: maximum number of labels and ids per place.
    """
    if not len(names):
        return []
    places: dict[Place, dict[tuple[str, str], Match]] = {}
    exact: dict[int, list[Place]] = {}
    for start, end, _, form in _prefixes(names.forms, written(doc), names.longest_form):
        exact.setdefault(form, []).append((start, end))
        _add(names, places.setdefault((start, end), {}), [form], "exact", k)
    if match == "normalised":
        for place, forms in _normalised(names, doc):
            others = [x for x in forms if not _inside(place, exact.get(x, ()))]
            if others:
                _add(names, places.setdefault(place, {}), others, "normalised", k)
    return [
        FoundName(*place, *entry, how)
        for place in sorted(places)
        for entry, how in places[place].items()
    ]


def _add(
    names: NameList, found: dict[tuple[str, str], Match], forms: list[int], match: Match, k: int
) -> None:
    for entry in names.entries_of(forms, k):
        if len(found) >= k:
            return
        found.setdefault(names.entry(entry), match)


def _inside(place: Place, others: Sequence[Place]) -> bool:
    """Whether a place is inside one of others, which are in text order: as ``Yahoo`` in ``Yahoo!``,
    if that is a name."""
    i = bisect_right(others, place[0], key=lambda x: x[0])
    return i > 0 and place[1] <= others[i - 1][1]


def _normalised(names: NameList, doc: Doc) -> Iterator[tuple[Place, list[int]]]:
    """Yield places and their forms."""
    stream = normalised(doc, names.lang)
    for start, end, key, row in _prefixes(names.keys, stream, names.longest_key):
        # The stream is normalised as a whole; at the edges of a span there may be a difference.
        if normalize_name(doc[start:end].text, names.lang) != key:
            continue
        forms = names.forms_of(row)
        first, last = bisect_right(stream.marks, start), bisect_right(stream.marks, end - 1)
        for mark in stream.marks[first:last]:
            # Wide punctuation, and the same in ASCII.
            texts = {doc[mark].text, fold_name(doc[mark].text)}
            forms = [x for x in forms if any(y in names.forms.restore_key(x) for y in texts)]
        n_capitals = sum(map(str.isupper, doc[start:end].text))
        forms = [x for x in forms if n_capitals >= _least_capitals(names.forms.restore_key(x))]
        if " " not in key and not is_shortened(doc[start:end].text, names.lang):
            forms = [x for x in forms if not is_shortened(names.forms.restore_key(x), names.lang)]
        wider = _wider(doc, stream.dropped, (start, end))
        places: dict[Place, list[int]] = {}
        for form in forms:
            folded = fold_name(names.forms.restore_key(form)) if wider else ""
            place = next((x for x, text in wider.items() if text == folded), (start, end))
            places.setdefault(place, []).append(form)
        yield from places.items()


def _least_capitals(name: str) -> int:
    """The number of capitals in a text that means this name. Lower-case letters are another word
    than a short abbreviation: ``AS``, ``U.S.``."""
    letters = name.replace(".", "").replace(" ", "")
    is_abbreviation = len(letters) <= _ABBREVIATION and letters.isalpha() and letters.isupper()
    return len(letters) if is_abbreviation else 0


def _wider(doc: Doc, dropped: set[int], place: Place) -> dict[Place, str]:
    """The places that have, in addition, some of the tokens beside a place of which normalisation
    leaves nothing, with their folded text."""
    (start, end), (first, last) = place, place
    while first - 1 in dropped and start - first < _MOST_DROPPED:
        first -= 1
    while last in dropped and last - end < _MOST_DROPPED:
        last += 1
    return {
        (i, j): fold_name(" ".join(doc[i:j].text.split()))
        for i in range(first, start + 1)
        for j in range(end, last + 1)
        if (i, j) != place
    }


def _prefixes(trie: Trie, stream: Stream, longest: int) -> Iterator[tuple[int, int, str, int]]:
    """Yield (first token, last token + 1, text, its number in the trie) of the texts of a trie that
    begin and end with tokens of the stream."""
    near = min(longest, _NEAR)
    for offset, start in stream.starts:
        text = stream.text[offset : offset + near]
        if near < longest and len(text) == near and next(trie.iterkeys(text), None) is not None:
            text = stream.text[offset : offset + longest]
        for key, row in trie.iter_prefixes_with_ids(text):
            last = stream.ends.get(offset + len(key))
            if last is not None:
                yield start, last + 1, key, row
