"""Which regions of Label Studio's tasks are of the text that is read, if tasks have several.

Regions name their text by ``to_name``, which is a name of the labelling interface, not the key of
the text in the task's data.
"""

from collections import Counter
from collections.abc import Collection, Iterable
from itertools import combinations
from typing import Any

from ..errors import CorpusError
from .label_studio_tasks import SPAN_TYPES, Annotation
from .quotes import NOWHERE, find_quote

_CLEAR = 0.1
"""A difference of shares of regions that are in the text. Where a text was edited after it was
annotated, some of its own are not."""


def other_texts(annotations: Iterable[Annotation]) -> set[str]:
    """The ``to_name`` of regions that are of another text than that which is read.

    Of two names that occur in one task, it is the one that is not the key of the text. If neither
    is, the one fewer of whose regions, of all tasks, are in the text, if the difference is clear.
    (Names that no task has together may be of tasks of different projects.)
    """
    n_near: Counter[str] = Counter()
    n_regions: Counter[str] = Counter()
    pairs: set[tuple[str, str]] = set()
    keys: set[str] = set()
    for item in annotations:
        keys.add(item.text_key)
        pairs.update(combinations(_names(item), 2))
        for result in item.results:
            if result.get("type") in SPAN_TYPES:
                n_regions[text_name(result)] += 1
                n_near[text_name(result)] += _is_near(result, item.text)
    shares = {name: n_near[name] / n for name, n in n_regions.items()}
    others = set()
    for pair in pairs:
        worse, better = sorted(pair, key=lambda name: (name in keys, shares[name]))
        if (better in keys) > (worse in keys) or shares[better] - shares[worse] > _CLEAR:
            others.add(worse)
    return others


def of_text(item: Annotation, others: Collection[str]) -> str:
    """``to_name`` of the regions of the text; empty if there are none, or if they have no name.

    others: see ``other_texts``. Raises CorpusError if it cannot be told.
    """
    names = [name for name in _names(item) if name not in others]
    if len(names) > 1:
        listed = ", ".join(map(repr, names))
        raise CorpusError(
            f"there are regions of several texts ({listed}), and it cannot be told which of them "
            "are of the text that is read."
        )
    return names[0] if names else ""


def text_name(result: dict[str, Any]) -> str:
    """``to_name`` of a region; empty if it has none, as in JSON_MIN."""
    return str(result.get("to_name") or "")


def _names(item: Annotation) -> list[str]:
    results = [x for x in item.results if x.get("type") in SPAN_TYPES]
    return list(dict.fromkeys(map(text_name, results)))


def _is_near(result: dict[str, Any], text: str) -> bool:
    """Whether the text of a region is at its offsets, or near them."""
    value = result.get("value")
    start, end, quote = (
        value.get(key) if isinstance(value, dict) else None for key in ("start", "end", "text")
    )
    if type(start) is not int or type(end) is not int or not isinstance(quote, str):
        return False
    return find_quote(text, start, end, quote.replace("\\n", "\n")).how != NOWHERE
