"""Names from files: records, patterns of spaCy's rulers, knowledge bases and saved lists."""

import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise, product
from pathlib import Path

import numpy as np

from ..errors import CorpusError
from ..kb.entity import Findings, check_id, check_text
from ..kb.layout import META as KB_META
from ..kb.read_records import check_keys, count_unread, read_records
from ..kb.store import Store
from ..kb.tables import Tables
from ..kb.whole_words import words
from .layout import META
from .listed_name import ListedName
from .name_list import NameList

REQUIRED, OPTIONAL = ("name",), ("label", "id", "aliases")
PATTERN_KEYS = ("pattern", "label", "id")
PATTERN_FILES = ("patterns.jsonl", "patterns")
"""What ``entity_ruler`` and ``span_ruler`` write to their folder."""
SKIPPED = "token patterns that are not plain text, skipped"
_TEXTS = ("ORTH", "TEXT", "LOWER")
"""Attributes of a token pattern that are plain text."""
_MOST_CUTS = 4


def read_names(path: Path, findings: Findings, label: str = "") -> Iterator[ListedName]:
    """The names of a file or folder:

    - JSON lines (``.jsonl``) or CSV (``.csv``) with name, label and optionally id and aliases,
    - patterns of ``entity_ruler`` or ``span_ruler``: JSON lines, or the folder of the component,
    - a knowledge base of ``spacy luke kb``: all aliases, with the type as label,
    - a saved list of names.

    label: of names without a label. Raises CorpusError, with the file and the line, for invalid
    values, and KnowledgeBaseError for a damaged folder.
    """
    if not path.is_dir():
        yield from _read_file(path, findings, label)
    elif (path / KB_META).is_file():
        yield from _names_of_kb(path, label)
    elif (path / META).is_file():
        yield from NameList.open(path)
    else:
        files = [path / x for x in PATTERN_FILES if (path / x).is_file()]
        if not files:
            raise CorpusError(
                f"{path} is a folder without a knowledge base ({KB_META}), a list of names "
                f"({META}) or patterns ({' or '.join(PATTERN_FILES)})."
            )
        yield from _read_file(files[0], findings, label)


def names_of_record(record: object, findings: Findings, label: str = "") -> Iterator[ListedName]:
    """The names of a record or pattern in memory, which is as one of a file."""
    if not isinstance(record, Mapping):
        raise CorpusError(
            f"A name is {record!r}; a ListedName, or a dictionary as in a file, is required."
        )
    yield from _names(record, f"The record {reprlib.repr(dict(record))}", findings, label)


def _read_file(path: Path, findings: Findings, label: str) -> Iterator[ListedName]:
    required = REQUIRED if label else (*REQUIRED, "label")
    optional = [x for x in OPTIONAL if x not in required]
    records = read_records(path, required, optional, json_files=PATTERN_FILES)
    for where, values in records:
        yield from _names(values, where, findings, label)


def _names(
    values: Mapping[str, object], where: str, findings: Findings, label: str
) -> Iterator[ListedName]:
    """The names of one record or pattern."""
    given = values.get("label")
    label = check_text("" if given is None else given, "label", where).strip() or label
    if not label:
        raise CorpusError(
            f"{where}: label is missing or empty. Add it, or give a label for all names without."
        )
    identifier = values.get("id")
    if isinstance(identifier, str):
        identifier = identifier.strip()
    checked_id = "" if identifier in (None, "") else check_id(identifier, where)
    if "pattern" in values:
        count_unread(values, where, PATTERN_KEYS, findings)
        texts = _pattern_texts(values["pattern"], where, findings)
    else:
        check_keys(values, where, REQUIRED, OPTIONAL)
        count_unread(values, where, (*REQUIRED, *OPTIONAL), findings)
        texts = [values["name"], *_aliases(values.get("aliases"), where)]
    for text in texts:
        yield ListedName(check_text("" if text is None else text, "name", where), label, checked_id)


def _aliases(value: object, where: str) -> list[object]:
    if value is None:
        return []
    if not isinstance(value, list | dict):
        raise CorpusError(f"{where}: aliases is {value!r}. It must be a list of texts.")
    return list(value)


def _pattern_texts(pattern: object, where: str, findings: Findings) -> list[object]:
    """The text of a phrase pattern, and those of a token pattern that is plain text; others are
    counted."""
    if isinstance(pattern, str):
        return [pattern]
    if not isinstance(pattern, list) or not all(isinstance(x, Mapping) for x in pattern):
        raise CorpusError(
            f"{where}: pattern is {pattern!r}. It must be a text or a list of token patterns."
        )
    texts = [
        value
        for token in pattern
        for key, value in token.items()
        if len(token) == 1 and key.upper() in _TEXTS and isinstance(value, str)
    ]
    if not texts or len(texts) < len(pattern):
        findings.add(SKIPPED, where)
        return []
    return [*_spellings(texts)]


def _spellings(tokens: Sequence[str]) -> Iterator[str]:
    """The texts that a pattern of these tokens finds: with a space between two of them, and without
    wherever a tokeniser would cut there (``McDonald``, ``'s``). With many such places, without in
    all of them or in none."""
    cuts = [_is_cut(a[-1:] + b[:1]) for a, b in pairwise(tokens)]
    free = [("", " ") if cut else (" ",) for cut in cuts]
    if sum(cuts) > _MOST_CUTS:
        chosen: Iterable[tuple[str, ...]] = [tuple(x[0] for x in free), (" ",) * len(free)]
    else:
        chosen = product(*free)
    for spaces in chosen:
        yield "".join(chain.from_iterable(zip(tokens, (*spaces, ""))))


def _is_cut(ends: str) -> bool:
    """Whether a tokeniser cuts between two characters."""
    return len(list(words(ends))) > 1 or (ends[:1].isdigit() and ends[1:].isalpha())


def _names_of_kb(path: Path, label: str) -> Iterator[ListedName]:
    """All aliases of all entities: the most frequent ones first, then in the order of the file."""
    tables = Tables(Store.open(path))
    for row in np.argsort(-tables.counts, kind="stable").tolist():
        entity = tables.entity(row)
        if not (entity.type or label):
            raise CorpusError(
                f"{path}: the entity {entity.id!r} has no type, and so no label. Give a label for "
                "entities without a type."
            )
        for alias in entity.aliases:
            yield ListedName(alias, entity.type or label, entity.id)
        tables.looked_up()
