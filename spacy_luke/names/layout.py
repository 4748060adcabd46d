"""The arrays of a list of names, and a check that they fit together."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import KnowledgeBaseError
from ..kb.arrays import Array
from ..kb.layout import Layout

META = "names.json"
FOLDER = "names"
"""Of the list, in that of the component."""


def _check_fit(meta: Mapping[str, Any], arrays: Mapping[str, Array], source: str) -> None:
    labels, longest = meta.get("labels"), meta.get("longest")
    if not isinstance(meta.get("lang"), str) or not isinstance(labels, list):
        raise KnowledgeBaseError(f"{source} is damaged: lang or labels is missing in {META}.")
    if not isinstance(longest, list) or [type(x) for x in longest] != [int, int]:
        raise KnowledgeBaseError(f"{source} is damaged: longest is missing in {META}.")
    n_forms, n_entries = len(arrays["key_forms"]), len(arrays["entry_labels"])
    sizes = [
        ("entry_ids", n_entries, len(arrays["entry_ids"])),
        ("entry_order", n_entries, len(arrays["entry_order"])),
        ("form_entries", n_forms + 1, len(arrays["form_entries"])),
        ("the data of form_entries", n_entries, int(arrays["form_entries"][-1])),
        ("the data of key_bounds", n_forms, int(arrays["key_bounds"][-1])),
    ]
    for name, expected, n in sizes:
        if n != expected:
            raise KnowledgeBaseError(f"{source} is damaged: {name} has {n} rows, not {expected}.")


NAMES = Layout(
    what="list of names",
    format="spacy-luke list of names",
    version=2,
    meta=META,
    dtypes={
        "forms": np.uint8,
        "keys": np.uint8,
        "ids": np.uint8,
        "key_bounds": np.int32,
        "key_forms": np.int32,
        "form_entries": np.int32,
        "entry_labels": np.int32,
        "entry_ids": np.int32,
        "entry_order": np.int32,
    },
    check=_check_fit,
)
"""``forms``, ``keys`` and ``ids`` are tries (of the library marisa-trie): of the names as they are
written, of their normalised forms, and of the ids. A trie numbers its texts from 0. The forms of a
key are consecutive in ``key_forms`` (``key_bounds``, n + 1), and the entries of a form are
consecutive (``form_entries``, n + 1). An entry has a label (its place in the list ``labels`` of
``names.json``), an id (-1: none), and its place in the list.

``longest`` in ``names.json``: the number of characters of the longest form, and of the longest key.
"""
