"""Documents from JSON with character offsets in Prodigy's keys."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc

from .conversion_report import Report
from .lines import Advance, ignore_progress
from .options import ConvertOptions
from .record_docs import write_records
from .records import read_records


def read_jsonl(
    path: Path,
    nlp: Language,
    options: ConvertOptions,
    report: Report,
    advance: Advance = ignore_progress,
) -> Iterator[Doc]:
    """Yield one document per accepted record of a file.

    Keys read: ``text``; ``spans``, each with ``label``, ``start`` and ``end`` (characters, end
    exclusive) or ``token_start`` and ``token_end`` (inclusive), and optional ``kb_id``, ``types``
    and ``text``, by which offsets are checked; ``relations``, see ``relation_records``; optional
    ``tokens``, each with ``text``, ``start`` and ``end``, which replace the tokenizer; optional
    ``answer``; optional ``meta``, stored in ``Doc.user_data["meta"]``. In a record with only
    accepted or rejected spans (``_is_binary``), or with ``options``, other tokens have missing
    entity annotation.

    Raises CorpusError, with the line, for an invalid record.
    """
    yield from write_records(path, read_records(path, report, advance), nlp, options, report)


def is_jsonl(value: Any) -> bool:
    """Whether a JSON value has the keys of this format."""
    if not isinstance(value, dict) or "text" not in value:
        return False
    return isinstance(value.get("spans"), list) and not (value.get("options") and "accept" in value)
