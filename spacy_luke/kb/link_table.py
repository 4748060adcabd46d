"""Texts that are linked, each with its title and link probability: files that are mapped into
memory."""

import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from marisa_trie import Trie

from ..errors import KnowledgeBaseError
from .arrays import Array
from .layout import Layout
from .store import Store, store_of

META = "links.json"


class LinkedText(NamedTuple):
    """A normalised text (``normalize_words``), the title that it links to, and how often it is
    linked where it occurs: 0 to 1."""

    text: str
    title: str
    probability: float


def _check_fit(meta: Mapping[str, Any], arrays: Mapping[str, Array], source: str) -> None:
    if not isinstance(meta.get("language"), str):
        raise KnowledgeBaseError(f"{source} is damaged: language is missing in {META}.")
    n_ids, n_probabilities = len(arrays["title_ids"]), len(arrays["probabilities"])
    if n_ids != n_probabilities:
        raise KnowledgeBaseError(
            f"{source} is damaged: title_ids has {n_ids} rows, not {n_probabilities}."
        )


LINKS = Layout(
    what="link table",
    format="spacy-luke link table",
    version=2,
    meta=META,
    dtypes={
        "texts": np.uint8,
        "titles": np.uint8,
        "title_ids": np.int32,
        "probabilities": np.float32,
    },
    check=_check_fit,
    own=("texts.marisa", "titles.marisa"),  # of version 1
)
"""``texts`` and ``titles`` are tries (of the library marisa-trie), which number their texts from 0.
A text has the title ``title_ids[i]``, and the link probability ``probabilities[i]``."""


class LinkTable:
    """Finds titles and link probabilities by text."""

    def __init__(self, store: Store):
        self.store, arrays = store, store.arrays
        self.texts, self._titles = (Trie().map(arrays[name].data) for name in ("texts", "titles"))
        self.probabilities, self._title_ids = arrays["probabilities"], arrays["title_ids"]

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def language(self) -> str:
        return str(self.store.meta["language"])

    def title(self, row: int) -> str:
        return self._titles.restore_key(int(self._title_ids[row]))

    def get(self, text: str) -> LinkedText | None:
        """The entry of a normalised text; None if there is none."""
        if text not in self.texts:
            return None
        row = self.texts[text]
        return LinkedText(text, self.title(row), float(self.probabilities[row]))

    @classmethod
    def open(cls, folder: Path) -> "LinkTable":
        """Map the files of a folder into memory. Sizes and a sample of each content are checked.
        Raises KnowledgeBaseError, with the file, if one is missing or damaged."""
        return cls(Store.open(folder, LINKS))

    @classmethod
    def from_bytes(cls, data: bytes) -> "LinkTable":
        """Raises KnowledgeBaseError for bytes that are damaged or of something else."""
        return cls(Store.from_bytes(data, LINKS))

    def to_bytes(self) -> bytes:
        return self.store.to_bytes()

    def save(self, folder: Path) -> None:
        """Write the files to a folder, which replaces another link table."""
        self.store.save(folder)

    def __reduce__(self) -> tuple:
        """With its content: its files may be absent on another machine."""
        return LinkTable.from_bytes, (self.to_bytes(),)

    def __deepcopy__(self, memo: object) -> "LinkTable":
        return self


def write_link_table(
    folder: Path, language: str, entries: Callable[[], Iterable[LinkedText]], **meta: Any
) -> LinkTable:
    """Write a link table to a folder, which it replaces when it is complete.

    entries: called several times; yields the same entries, each with another text. meta: values to
    be recorded in ``links.json``.
    """
    texts = Trie(entry.text for entry in entries())
    titles = Trie(entry.title for entry in entries())
    title_ids = np.zeros(len(texts), np.int32)
    probabilities = np.full(len(texts), math.nan, np.float32)
    for text, title, probability in entries():
        title_ids[texts[text]], probabilities[texts[text]] = titles[title], probability
    arrays: dict[str, Array] = {
        "texts": np.frombuffer(texts.tobytes(), np.uint8),
        "titles": np.frombuffer(titles.tobytes(), np.uint8),
        "title_ids": title_ids,
        "probabilities": probabilities,
    }
    store_of(arrays, LINKS, language=language, **meta).save(folder)
    return LinkTable.open(folder)
