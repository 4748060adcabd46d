"""A list of names with labels and ids, in files that are mapped into memory."""

from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path

import numpy as np
from marisa_trie import Trie

from ..kb.entity import Findings, check_id, check_text, check_texts
from ..kb.normalize import normalize_name
from ..kb.store import Store
from .build import build_store
from .layout import NAMES
from .listed_name import ListedName, one_spaced


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
        return cls(build_store(names, lang, findings, lambda text: normalize_name(text, lang)))

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

    def to_disk(self, folder: Path, over: "NameList | None" = None) -> None:
        """Write the files to a folder, which they replace. Those that were opened and did not
        change are linked if possible.

        over: the list that was edited. Raises KnowledgeBaseError, and changes nothing, if it was
        opened from this folder, which was changed since.
        """
        self.store.save(folder, over=None if over is None else over.store)

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
        order = np.argsort(arrays["entry_order"], kind="stable")
        forms = np.repeat(np.arange(len(self.forms)), np.diff(arrays["form_entries"]))[order]
        columns = (forms, arrays["entry_labels"][order], arrays["entry_ids"][order])
        for form, label, row in zip(*(x.tolist() for x in columns)):
            identifier = self._ids.restore_key(row) if row >= 0 else ""
            yield ListedName(self.forms.restore_key(form), self.labels[label], identifier)

    def entry(self, entry: int) -> tuple[str, str]:
        """The label and the id of an entry; an empty id if there is none."""
        arrays = self.store.arrays
        label, row = self.labels[arrays["entry_labels"][entry]], int(arrays["entry_ids"][entry])
        return label, self._ids.restore_key(row) if row >= 0 else ""

    def entries_of(self, forms: Collection[int], k: int) -> list[int]:
        """The first ``k`` entries of each form, in the order of the list."""
        bounds, order = self.store.arrays["form_entries"], self.store.arrays["entry_order"]
        entries: list[int] = []
        for form in forms:
            start, end = bounds[form : form + 2].tolist()
            entries += range(start, min(end, start + k))
        if len(forms) > 1:
            entries.sort(key=lambda i: int(order[i]))
        return entries

    def forms_of(self, key: int) -> list[int]:
        """The forms that have a normalised form."""
        start, end = self.store.arrays["key_bounds"][key : key + 2].tolist()
        return self.store.arrays["key_forms"][start:end].tolist()

    def edited(
        self,
        add: Iterable[ListedName] = (),
        names: Iterable[str] = (),
        ids: Iterable[str | int] = (),
        labels: Iterable[str] = (),
        findings: Findings | None = None,
    ) -> "NameList":
        """Another list, without the entries that have one of these names, ids or labels, and with
        those to add at the end. This one stays as it is.

        Names to be removed are compared as they are written. Raises InputError if one text is given
        instead of several, and CorpusError for a value that is not text; ids may be whole numbers.
        Unknown ones are counted.
        """
        findings = Findings() if findings is None else findings
        for what, given in (("names", names), ("ids", ids), ("labels", labels)):
            check_texts(given, what)
        remove = {
            "names": [check_text(x, "a name to be removed", "names") for x in names],
            "ids": [check_id(x, "ids to be removed") for x in ids if x != ""],
            "labels": [check_text(x, "a label to be removed", "labels") for x in labels],
        }
        entries = self._edited(add, remove, findings)
        return NameList(build_store(entries, self.lang, findings, self._key_finder()))

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
        names = {one_spaced(x) for x in remove["names"]}
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
