"""The entity vocabulary: titles to rows of the entity table, in the published formats."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ..errors import VocabError
from .entity_index import EntityIndex

PAD, UNK, MASK, MASK2 = SPECIALS = ("[PAD]", "[UNK]", "[MASK]", "[MASK2]")
MAX_ENTITIES = 2**31
FILE_NAMES = ("entity_vocab.json", "entity_vocab.jsonl", "entity_vocab.tsv")


class EntityVocab:
    """Entity names to ids.

    A name is a title, or ``lang:title`` in a multilingual vocabulary, in which several names may
    share an id. The ids of special entities differ between published models, so they are looked up.

    names: name -> id; an :class:`.entity_index.EntityIndex` for large vocabularies. Raises
    VocabError if [MASK] is missing or an id is not a whole number from 0.
    """

    def __init__(self, names: Mapping[str, int], source: str = "the entity vocabulary"):
        if MASK not in names:
            raise VocabError(f"{source} has no {MASK} entity, which every task needs.")
        if isinstance(names, EntityIndex):  # ordered by id, so the first id is the smallest
            name = next(iter(names))
            index = names[name]
            if index < 0:
                raise VocabError(f"{source}: entity {name!r} has the id {index!r}.")
            self.size = names.largest + 1
        else:
            for name, index in names.items():
                if (
                    not isinstance(index, int)
                    or isinstance(index, bool)
                    or not 0 <= index < MAX_ENTITIES
                ):
                    raise VocabError(f"{source}: entity {name!r} has the id {index!r}.")
                if not _is_text(name):
                    raise VocabError(f"{source}: the name {name!r} is not valid text.")
            self.size = max(names.values()) + 1
        self.names = names

    def indexed(self) -> "EntityVocab":
        """The same vocabulary as an ``EntityIndex``, the form that is saved with encoders."""
        return self if isinstance(self.names, EntityIndex) else EntityVocab(self.index)

    @property
    def index(self) -> EntityIndex:
        names = self.names
        return names if isinstance(names, EntityIndex) else EntityIndex.build(names.items())

    @property
    def mask_id(self) -> int:
        return self.names[MASK]

    @property
    def unk_id(self) -> int:
        """The id of [UNK]. Raises VocabError if the vocabulary lacks it."""
        if UNK not in self.names:
            raise VocabError(f"The entity vocabulary has no {UNK} entity.")
        return self.names[UNK]

    @property
    def mask2_id(self) -> int | None:
        return self.names.get(MASK2)

    @property
    def pad_id(self) -> int | None:
        return self.names.get(PAD)

    def __len__(self) -> int:
        return self.size

    def __contains__(self, name: str) -> bool:
        return name in self.names

    def find(self, name: str, language: str | None = None) -> int | None:
        """The id of a title, of ``lang:title``, or of a title in ``language``; else None.

        Underscores count as spaces, as in links. Names of special entities return None.
        """
        if not name:
            return None
        for form in (name, name.replace("_", " ")):
            if form in (PAD, UNK, MASK, MASK2):
                return None
            for key in (form, f"{language}:{form}") if language else (form,):
                if key in self.names:
                    return self.names[key]
        return None

    def name_of(self, index: int, language: str | None = None) -> str | None:
        """A name of an id: that in ``language``, or else the first; None if the id is unknown."""
        if isinstance(self.names, EntityIndex):
            names = self.names.names_of(index)
        else:
            names = [name for name, other in self.names.items() if other == index]
        in_language = (name for name in names if language and name.startswith(f"{language}:"))
        return next(in_language, names[0] if names else None)

    @classmethod
    def specials_only(cls) -> "EntityVocab":
        """[PAD], [UNK], [MASK], [MASK2]: for encoders trained without entities."""
        return cls({PAD: 0, UNK: 1, MASK: 2, MASK2: 3})

    @classmethod
    def from_file(cls, path: Path) -> "EntityVocab":
        """Read ``entity_vocab.json`` (name -> id), JSON lines (``{"id", "entities": [[title,
        language], ...]}``) or ``title<TAB>count`` lines, in which the line number is the id.

        The format is detected from the content, not from the name.
        """
        try:
            text = path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as err:
            raise VocabError(f"{path} cannot be read: {err}.") from err
        if not text.strip():
            raise VocabError(f"{path} is empty.")
        source = str(path)
        if text.lstrip().startswith("{"):
            data = _as_object(text, source)
            if data is not None and not isinstance(data.get("entities"), list):
                return cls(data, source)
            return cls(_collect(_json_lines(text, source), source), source)
        return cls(_collect(_tsv(text, source), source), source)


def _is_text(name: str) -> bool:
    """Whether there is no unpaired surrogate: JSON can express it, UTF-8 files cannot."""
    try:
        name.encode("utf8")
    except UnicodeEncodeError:
        return False
    return True


def _as_object(text: str, source: str) -> dict[str, Any] | None:
    def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        data = dict(pairs)
        if len(data) < len(pairs):
            [(name, _)] = Counter(name for name, _ in pairs).most_common(1)
            raise VocabError(f"{source}: {name!r} occurs twice.")
        return data

    try:
        value = json.loads(text, object_pairs_hook=unique_keys)
    except json.JSONDecodeError:
        return None
    except VocabError:
        raise
    except ValueError as err:  # an id of thousands of digits
        raise VocabError(f"{source} cannot be read: {err}.") from err
    except RecursionError as err:
        raise VocabError(f"{source} is nested too deeply.") from err
    return value if isinstance(value, dict) else None


_Entry = tuple[int, str, int]  # line number, name, id


def _json_lines(text: str, source: str) -> Iterator[_Entry]:
    for number, line in enumerate(text.split("\n"), 1):  # titles may contain other line breaks
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
            index = entry["id"]
            entities = [(str(title), language) for title, language in entry["entities"]]
        except (ValueError, KeyError, TypeError, RecursionError) as err:
            raise VocabError(f"{source}, line {number}: not an entity entry ({err!r}).") from err
        for title, language in entities:
            bare = title in (PAD, UNK, MASK, MASK2) or language is None
            yield number, title if bare else f"{language}:{title}", index


def _tsv(text: str, source: str) -> Iterator[_Entry]:
    for index, line in enumerate(text.rstrip("\n").split("\n")):
        title, tab, count = line.rstrip("\r").partition("\t")
        if not title or (tab and not count.strip().isdigit()):
            raise VocabError(f"{source}, line {index + 1}: expected title<TAB>count, got {line!r}.")
        yield index + 1, title, index


def _collect(entries: Iterable[_Entry], source: str) -> dict[str, int]:
    names: dict[str, int] = {}
    for number, name, index in entries:
        if names.setdefault(name, index) != index:
            raise VocabError(
                f"{source}, line {number}: entity {name!r} has two ids, {names[name]} and {index}."
            )
    return names
