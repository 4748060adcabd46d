"""Texts that are linked, each with its title and link probability: files that are mapped into
memory."""

import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import srsly
from marisa_trie import Trie

from ..errors import KnowledgeBaseError, LukeError
from ..files import whole_folder
from ..json_file import read_object, write_object
from ..mapped_array import map_array, save_array
from .arrays import Array, hash_sample, writing

FORMAT, VERSION = "spacy-luke link table", 1
META, TEXTS, TITLES = "links.json", "texts", "titles"
TITLE_IDS, PROBABILITIES = "title_ids", "probabilities"
_TRIES, _ARRAYS = (TEXTS, TITLES), {TITLE_IDS: np.int32, PROBABILITIES: np.float32}


class LinkedText(NamedTuple):
    """A normalised text (``normalize_words``), the title that it links to, and how often it is
    linked where it occurs: 0 to 1."""

    text: str
    title: str
    probability: float


class LinkTable:
    """Finds titles and link probabilities by text.

    meta: the content of ``links.json``. texts, titles: their ids are rows. title_ids: (n_texts,)
    the title of each text. probabilities: (n_texts,).
    """

    def __init__(
        self, meta: Mapping[str, Any], tries: Mapping[str, Trie], arrays: Mapping[str, Array]
    ):
        self.meta = dict(meta)
        self.texts, self._titles = tries[TEXTS], tries[TITLES]
        self._title_ids, self.probabilities = arrays[TITLE_IDS], arrays[PROBABILITIES]

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def language(self) -> str:
        return str(self.meta["language"])

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
        if not (folder / META).is_file():
            raise KnowledgeBaseError(f"{folder} is not a link table: {META} is missing.")
        try:
            meta = _checked(read_object(folder / META), str(folder / META))
        except LukeError as err:
            raise KnowledgeBaseError(str(err)) from err
        tries = {}
        for name in _TRIES:
            path = _trie_path(folder, name)
            try:
                _check_sample(meta, name, np.memmap(path, np.uint8, "r"), str(folder))
                tries[name] = Trie()
                tries[name].mmap(str(path))
            except (OSError, ValueError, RuntimeError) as err:
                if isinstance(err, LukeError):
                    raise
                raise KnowledgeBaseError(f"{path} cannot be read: {err}.") from err
        arrays = {
            name: map_array(_array_path(folder, name), KnowledgeBaseError, scattered=True)
            for name in _ARRAYS
        }
        return cls._of(meta, tries, arrays, str(folder))

    @classmethod
    def _of(
        cls,
        meta: Mapping[str, Any],
        tries: Mapping[str, Trie],
        arrays: Mapping[str, Array],
        source: str,
    ) -> "LinkTable":
        for name, dtype in _ARRAYS.items():
            _check_sample(meta, name, arrays[name], source)
            if arrays[name].dtype != dtype or arrays[name].shape != (len(tries[TEXTS]),):
                raise KnowledgeBaseError(f"{source} is damaged: {name} does not fit {TEXTS}.")
        return cls(meta, tries, arrays)

    def save(self, folder: Path) -> None:
        """Write the files to a folder, which replaces another link table."""
        _write(folder, self.meta, {TEXTS: self.texts, TITLES: self._titles}, self._arrays())

    def to_bytes(self) -> bytes:
        arrays = {name: array.tobytes() for name, array in self._arrays().items()}
        tries = {TEXTS: self.texts.tobytes(), TITLES: self._titles.tobytes()}
        return srsly.msgpack_dumps({"meta": self.meta, **tries, **arrays})

    @classmethod
    def from_bytes(cls, data: bytes) -> "LinkTable":
        source = "The link table"
        try:
            content = srsly.msgpack_loads(data)
            meta = _checked(content["meta"], source)
            tries = {}
            for name in _TRIES:
                _check_sample(meta, name, np.frombuffer(content[name], np.uint8), source)
                tries[name] = Trie().frombytes(content[name])
            arrays = {x: np.frombuffer(content[x], dtype) for x, dtype in _ARRAYS.items()}
        except LukeError:
            raise
        except (ValueError, TypeError, KeyError, AttributeError, RuntimeError) as err:
            raise KnowledgeBaseError(f"These bytes are not a link table: {err!r}.") from err
        return cls._of(meta, tries, arrays, source)

    def _arrays(self) -> dict[str, Array]:
        return {TITLE_IDS: self._title_ids, PROBABILITIES: self.probabilities}


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
    arrays = {TITLE_IDS: title_ids, PROBABILITIES: probabilities}
    samples = {name: _sample(array) for name, array in arrays.items()}
    samples |= {
        name: _sample(np.frombuffer(trie.tobytes(), np.uint8))
        for name, trie in ((TEXTS, texts), (TITLES, titles))
    }
    content = {"format": FORMAT, "version": VERSION, "language": language, **meta, "files": samples}
    _write(folder, content, {TEXTS: texts, TITLES: titles}, arrays)
    return LinkTable.open(folder)


def _write(
    folder: Path, meta: Mapping[str, Any], tries: Mapping[str, Trie], arrays: Mapping[str, Array]
) -> None:
    folder = folder.resolve()  # a link keeps pointing to it
    check_replaceable(folder)
    with writing(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with whole_folder(folder) as temporary:
            for name, trie in tries.items():
                # Not trie.save, whose errors are no OSError.
                _trie_path(temporary, name).write_bytes(trie.tobytes())
            for name, array in arrays.items():
                save_array(_array_path(temporary, name), array)
            write_object(temporary / META, dict(meta))


def check_replaceable(folder: Path) -> None:
    """Raise KnowledgeBaseError if a folder exists that is neither empty nor a link table: writing
    one replaces the folder."""
    if folder.is_dir() and ((folder / META).is_file() or not any(folder.iterdir())):
        return
    if folder.exists():
        raise KnowledgeBaseError(f"{folder} exists and is not a link table. Choose another folder.")


def _checked(meta: Any, source: str) -> dict[str, Any]:
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        value = meta.get("format") if isinstance(meta, dict) else meta
        raise KnowledgeBaseError(f"{source}: format is {value!r}, not {FORMAT!r}.")
    if meta.get("version") != VERSION:
        raise KnowledgeBaseError(
            f"{source}: version is {meta.get('version')!r}; this version of spacy-luke reads "
            f"{VERSION}. Make the link table again."
        )
    if not isinstance(meta.get("files"), dict):
        raise KnowledgeBaseError(f"{source}: files is {meta.get('files')!r}, not an object.")
    return meta


def _sample(array: Array) -> dict[str, Any]:
    return {"size": int(array.nbytes), "sample": hash_sample(array)}


def _check_sample(meta: Mapping[str, Any], name: str, array: Array, source: str) -> None:
    if meta["files"].get(name) != _sample(array):
        raise KnowledgeBaseError(
            f"{source} is damaged: {name} was changed, or is of another table."
        )


def _trie_path(folder: Path, name: str) -> Path:
    return folder / f"{name}.marisa"


def _array_path(folder: Path, name: str) -> Path:
    return folder / f"{name}.npy"
