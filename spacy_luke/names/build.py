"""Names to the arrays of a list."""

from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
from marisa_trie import Trie

from ..kb.arrays import Array
from ..kb.entity import Findings
from ..kb.store import Store, store_of
from .layout import NAMES
from .listed_name import ListedName

EMPTY = "names left out because they are empty"
AGAIN = "names left out because they occurred before with the same label and id"
NUL = "names left out because they contain the character NUL"
SHORT = "names of one character, which are found wherever it is a word"
SEVERAL = "names with several labels or ids"


class _Numbers(dict[str, int]):
    """Numbers texts in the order in which they are asked for."""

    def __missing__(self, text: str) -> int:
        self[text] = len(self)
        return self[text]


@dataclass
class _Entries:
    """Names as they are written, labels and ids, each once; and of each entry (n,) their numbers,
    -1 if there is no id."""

    forms: _Numbers = field(default_factory=_Numbers)
    labels: _Numbers = field(default_factory=_Numbers)
    ids: _Numbers = field(default_factory=_Numbers)
    entry_forms: array = field(default_factory=lambda: array("i"))
    entry_labels: array = field(default_factory=lambda: array("i"))
    entry_ids: array = field(default_factory=lambda: array("i"))


def build_store(
    names: Iterable[ListedName], lang: str, findings: Findings, key: Callable[[str], str]
) -> Store:
    """A list in memory. An entry that occurs again is left out.

    key: gives the normalised form of a name. findings: get what was read and left out. Raises
    CorpusError for invalid names.
    """
    entries = _entries(names, findings)
    forms, keys = list(entries.forms), _Numbers()
    n_of_form = np.bincount(np.array(entries.entry_forms, np.int64), minlength=len(forms))
    findings.counts["names"] += len(forms)  # also if there are none
    _add(findings, SHORT, [x for x in forms if len(x) == 1])
    _add(findings, SEVERAL, [forms[i] for i in np.flatnonzero(n_of_form > 1).tolist()])
    key_of = np.fromiter((keys[key(x)] for x in forms), np.int64, len(forms))
    longest = [max(map(len, x), default=0) for x in (forms, keys)]
    arrays = _arrays(entries, list(keys), key_of)
    labels = list(entries.labels)
    return store_of(arrays, NAMES, lang=lang, labels=labels, longest=longest)


def _entries(names: Iterable[ListedName], findings: Findings) -> _Entries:
    entries = _Entries()
    forms, labels, ids = entries.forms, entries.labels, entries.ids
    seen: set[tuple[int, int, int]] = set()
    for given in names:
        name = given.checked()
        if not name.text:
            findings.add(EMPTY)
            continue
        if "\0" in name.text:
            findings.add(NUL, name.text)
            continue
        entry = forms[name.text], labels[name.label], ids[name.id] if name.id else -1
        if entry in seen:
            findings.add(AGAIN, name.text)
            continue
        seen.add(entry)
        entries.entry_forms.append(entry[0])
        entries.entry_labels.append(entry[1])
        entries.entry_ids.append(entry[2])
    return entries


def _arrays(entries: _Entries, keys: list[str], key_of: Array) -> dict[str, Array]:
    """key_of: (n_forms,) the number of each form's key."""
    form_trie, form_rows = _trie(list(entries.forms))
    key_trie, key_rows = _trie(keys)
    id_trie, id_rows = _trie(list(entries.ids))
    rows = form_rows[np.array(entries.entry_forms, np.int64)]
    order = np.argsort(rows, kind="stable")
    key_of = key_rows[key_of]
    arrays = {
        "forms": form_trie,
        "keys": key_trie,
        "ids": id_trie,
        "key_bounds": _bounds(key_of, len(keys)),
        "key_forms": form_rows[np.argsort(key_of, kind="stable")],
        "form_entries": _bounds(rows, len(form_rows)),
        "entry_labels": np.array(entries.entry_labels)[order],
        "entry_ids": np.append(id_rows, -1)[np.array(entries.entry_ids, np.int64)][order],
        "entry_order": order,
    }
    return {name: values.astype(NAMES.dtypes[name]) for name, values in arrays.items()}


def _add(findings: Findings, reason: str, names: list[str]) -> None:
    findings.add(reason, names[0] if names else "", len(names))


def _trie(texts: list[str]) -> tuple[Array, Array]:
    """The bytes of a trie, and the number (n,) that each text has in it."""
    trie = Trie(texts)
    rows = np.fromiter((trie[x] for x in texts), np.int64, len(texts))
    return np.frombuffer(trie.tobytes(), np.uint8), rows


def _bounds(rows: Array, n: int) -> Array:
    """(n + 1,) bounds of the entries of each row, when they are sorted by row."""
    return np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))])
