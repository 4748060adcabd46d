"""A list of names with labels and ids, in files that are mapped into memory."""

from array import array
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from marisa_trie import Trie

from ..errors import CorpusError
from ..kb.arrays import Array
from ..kb.entity import Findings, check_id, check_text, check_texts
from ..kb.normalize import normalize_name
from ..kb.store import Store, store_of
from .layout import NAMES

EMPTY = "names left out because they are empty"
SHORT = "names of one character, which are found wherever it is a word"

_AGAIN = "names left out because they occurred before with the same label and id"


@dataclass(frozen=True)
class ListedName:
    """text: the name; white space of any kind and length in it is one space. label: of the spans
    where it is found. id: of what it names; empty if there is none."""

    text: str
    label: str
    id: str = ""


class NameList:
    """Names with labels and ids. It is never modified: :meth:`edited` makes another one. Threads
    may share it.

    A name may have several labels and ids; each of them is an *entry*. ``len`` is the number of
    entries.
    """

    def __init__(self, store: Store):
        self.store, arrays = store, store.arrays
        self.lang = str(store.meta["lang"])
        self.labels: tuple[str, ...] = tuple(store.meta["labels"])
        self.longest_form, self.longest_key = store.meta["longest"]
        self.forms, self.keys, self._ids = (
            Trie().map(arrays[name].data) for name in ("forms", "keys", "ids")
        )

    @classmethod
    def build(
        cls, names: Iterable[ListedName], lang: str = "", findings: Findings | None = None
    ) -> "NameList":
        """Make a list in memory. An entry that occurs again is left out.

        lang: names are normalised as names of this language (``normalize_name``). findings: get
        what was read and left out. Raises CorpusError for invalid names, labels and ids.
        """
        findings = Findings() if findings is None else findings
        return cls(_build(names, lang, findings, lambda text: normalize_name(text, lang)))

    @classmethod
    def open(cls, folder: Path) -> "NameList":
        """Map the files of a folder into memory. Raises KnowledgeBaseError, with the file, if one
        is missing or damaged."""
        return cls(Store.open(folder, NAMES))

    @classmethod
    def from_bytes(cls, data: bytes) -> "NameList":
        """Raises KnowledgeBaseError for bytes that are damaged or of something else."""
        return cls(Store.from_bytes(data, NAMES))

    def to_bytes(self) -> bytes:
        return self.store.to_bytes()

    def to_disk(self, folder: Path) -> None:
        """Write the files to a folder, which they replace. Those that were opened and did not
        change are linked if possible."""
        self.store.save(folder)

    def __reduce__(self) -> tuple:
        """With its content: its files may be replaced, or absent on another machine."""
        return NameList.from_bytes, (self.to_bytes(),)

    def __deepcopy__(self, memo: object) -> "NameList":
        return self

    def __len__(self) -> int:
        return len(self.store.arrays["entry_labels"])

    def __iter__(self) -> Iterator[ListedName]:
        """The entries, in the order of the list."""
        arrays = self.store.arrays
        form_of = np.repeat(np.arange(len(self.forms)), np.diff(arrays["form_entries"]))
        for entry in np.argsort(arrays["entry_order"], kind="stable").tolist():
            label, identifier = self.entry(entry)
            yield ListedName(self.forms.restore_key(int(form_of[entry])), label, identifier)

    def entry(self, entry: int) -> tuple[str, str]:
        """The label and the id of an entry; an empty id if there is none."""
        arrays = self.store.arrays
        label, row = self.labels[arrays["entry_labels"][entry]], int(arrays["entry_ids"][entry])
        return label, self._ids.restore_key(row) if row >= 0 else ""

    def entries_of(self, forms: Collection[int]) -> list[int]:
        """The entries of forms, in the order of the list."""
        arrays = self.store.arrays
        bounds = arrays["form_entries"]
        entries = [i for form in forms for i in range(int(bounds[form]), int(bounds[form + 1]))]
        if len(entries) > 1:
            entries.sort(key=lambda i: int(arrays["entry_order"][i]))
        return entries

    def forms_of(self, key: int) -> list[int]:
        """The forms that have a normalised form."""
        start, end = self.store.arrays["key_bounds"][key : key + 2].tolist()
        return self.store.arrays["key_forms"][start:end].tolist()

    def edited(
        self,
        add: Iterable[ListedName] = (),
        names: Iterable[str] = (),
        ids: Iterable[str] = (),
        labels: Iterable[str] = (),
        findings: Findings | None = None,
    ) -> "NameList":
        """Another list, without the entries that have one of these names, ids or labels, and with
        those to add at the end. This one stays as it is.

        Names to be removed are compared as they are written. Raises InputError if one text is given
        instead of several. Unknown ones are counted.
        """
        findings = Findings() if findings is None else findings
        remove = {"names": [*names], "ids": [*ids], "labels": [*labels]}
        for what, given in (("names", names), ("ids", ids), ("labels", labels)):
            check_texts(given, what)
        entries = self._edited(add, remove, findings)
        return NameList(_build(entries, self.lang, findings, self._key_finder()))

    def _key_finder(self) -> Callable[[str], str]:
        """A function that normalises names; forms of this list are not normalised again."""
        arrays = self.store.arrays
        key_of = np.empty(len(self.forms), np.int32)
        key_of[arrays["key_forms"]] = np.repeat(
            np.arange(len(self.keys)), np.diff(arrays["key_bounds"])
        )

        def key(text: str) -> str:
            form = self.forms.get(text)
            if form is None:
                return normalize_name(text, self.lang)
            return self.keys.restore_key(int(key_of[form]))

        return key

    def _edited(
        self, add: Iterable[ListedName], remove: dict[str, list[str]], findings: Findings
    ) -> Iterator[ListedName]:
        names = {_one_spaced(x) for x in remove["names"]}
        ids, labels = set(remove["ids"]) - {""}, set(remove["labels"])
        used: set[tuple[str, str]] = set()
        for name in self:
            if name.text in names or name.id in ids or name.label in labels:
                used |= {("names", name.text), ("ids", name.id), ("labels", name.label)}
                findings.add("names removed")
            else:
                yield name
        for what, values in (("names", names), ("ids", ids), ("labels", labels)):
            for value in sorted(values):
                if (what, value) not in used:
                    findings.add(f"unknown {what}, which were not removed", value)
        yield from add


def _one_spaced(text: str) -> str:
    return " ".join(text.split())


class _Numbers(dict[str, int]):
    """Numbers texts in the order in which they are asked for."""

    def __missing__(self, text: str) -> int:
        self[text] = len(self)
        return self[text]


def _build(
    names: Iterable[ListedName], lang: str, findings: Findings, key: Callable[[str], str]
) -> Store:
    forms, labels, ids = _Numbers(), _Numbers(), _Numbers()
    columns = array("i"), array("i"), array("i")  # of each entry: form, label, id
    seen: set[tuple[int, int, int]] = set()
    for name in names:
        text = _checked(name, findings)
        if not text:
            continue
        entry = forms[text], labels[name.label], ids[name.id] if name.id else -1
        if entry in seen:
            findings.add(_AGAIN, text)
            continue
        seen.add(entry)
        for column, value in zip(columns, entry):
            column.append(value)
    entry_forms, entry_labels, entry_ids = (np.array(x, np.int32) for x in columns)
    n_of_form = np.bincount(entry_forms, minlength=len(forms))
    texts = list(forms)
    several = np.flatnonzero(n_of_form > 1).tolist()
    findings.counts["names"] += len(forms)  # also if there are none
    findings.add(SHORT, *_first(x for x in texts if len(x) == 1))
    findings.add("names with several labels or ids", *_first(texts[i] for i in several))
    keys = _Numbers()
    key_of = np.fromiter((keys[key(x)] for x in texts), np.int32, len(texts))
    form_trie, form_rows = _trie(texts)
    key_trie, key_rows = _trie(list(keys))
    id_trie, id_rows = _trie(list(ids))
    rows = form_rows[entry_forms]
    order = np.argsort(rows, kind="stable")
    forms_by_key = np.argsort(key_rows[key_of], kind="stable")
    arrays = {
        "forms": form_trie,
        "keys": key_trie,
        "ids": id_trie,
        "key_bounds": _bounds(key_rows[key_of], len(keys)),
        "key_forms": form_rows[forms_by_key],
        "form_entries": _bounds(rows, len(forms)),
        "entry_labels": entry_labels[order],
        "entry_ids": np.append(id_rows, -1)[entry_ids][order],
        "entry_order": order,
    }
    typed: dict[str, Array] = {
        name: values.astype(NAMES.dtypes[name]) for name, values in arrays.items()
    }
    longest = [max(map(len, x), default=0) for x in (forms, keys)]
    return store_of(typed, NAMES, lang=lang, labels=list(labels), longest=longest)


def _checked(name: ListedName, findings: Findings) -> str:
    """The text of a name; empty if it is left out."""
    where = f"The name {name.text!r}"
    text = _one_spaced(check_text(name.text, "name", where))
    if not check_text(name.label, "label", where).strip():
        raise CorpusError(f"{where}: label is empty. Every name needs a label.")
    if name.id:
        check_id(name.id, where)
    if not text:
        findings.add(EMPTY)
    elif "\0" in text:
        findings.add("names left out because they contain the character NUL", text)
        return ""
    return text


def _first(texts: Iterable[str]) -> tuple[str, int]:
    """The first of texts, and their number."""
    every = list(texts)
    return (every[0] if every else "", len(every))


def _trie(texts: list[str]) -> tuple[Array, Array]:
    """The bytes of a trie, and the number (n,) that each text has in it."""
    trie = Trie(texts)
    rows = np.fromiter((trie[x] for x in texts), np.int32, len(texts))
    return np.frombuffer(trie.tobytes(), np.uint8), rows


def _bounds(rows: Array, n: int) -> Array:
    """(n + 1,) bounds of the entries of each row, when they are sorted by row."""
    return np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))])
