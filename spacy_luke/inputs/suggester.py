"""The default suggester: all spans inside sentences, up to a number of words.

It leaves out spans with white space at an end. For other suggesters ``placed_spans.py`` does, if
the tokenizer has no pieces for white space.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
from spacy.tokens import Doc
from spacy.util import registry
from thinc.api import Ops, get_current_ops
from thinc.types import Ragged

from ..validation import Count, check_settings
from .windows import sentence_starts

Suggester = Callable[..., Ragged]


@registry.misc("spacy-luke.sentence_spans_suggester.v1")
def build_sentence_spans_suggester(max_words: Count) -> Suggester:
    """Suggest every span of 1 to ``max_words`` tokens that does not cross a sentence start.

    A document without sentence starts is one sentence.
    """
    check_settings("sentence_spans_suggester", build_sentence_spans_suggester, locals())
    return partial(suggest_sentence_spans, max_words=max_words)


def suggest_sentence_spans(
    docs: Iterable[Doc], *, max_words: int, ops: Ops | None = None
) -> Ragged:
    """(start, end) token ranges of each document, ordered by start, then end.

    No range begins or ends with a white-space token, as in spaCy's own NER.
    """
    ops = ops or get_current_ops()
    tables = [_spans(doc, max_words) for doc in docs]
    lengths = ops.asarray1i([len(table) for table in tables])
    if not tables:
        return Ragged(ops.alloc2i(0, 0), lengths)
    data: Any = np.concatenate(tables)
    return Ragged(ops.asarray2i(data), lengths)


def _spans(doc: Doc, max_words: int) -> np.ndarray:
    starts = sentence_starts(doc)
    bounds = np.asarray([*starts[1:], len(doc)], dtype=np.int32)
    sentence_end = np.repeat(bounds, np.diff([*starts, len(doc)])) if starts else bounds[:0]
    first = np.arange(len(doc), dtype=np.int32)[:, None]
    end = first + 1 + np.arange(max_words, dtype=np.int32)[None, :]
    inside = end <= sentence_end[:, None]
    if inside.size:
        space = doc.to_array("IS_SPACE").astype(bool)
        inside &= ~space[first] & ~space[np.minimum(end, len(doc)) - 1]
    return np.stack(np.broadcast_arrays(first, end), -1)[inside]
