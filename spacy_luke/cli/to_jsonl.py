"""``spacy luke to-jsonl``: documents to JSON lines."""

import json
import zlib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import spacy
import typer
from spacy.tokens import Doc, DocBin
from wasabi import Printer

from ..annotations.group_spans import row_of, rows_of
from ..corpora.json_docs import is_partial, record_of
from ..errors import ConfigError, CorpusError, InputError
from ..files import whole_file
from . import app, exit_on_error
from .options import ForceOption
from .saving import check_file


@app.command("to-jsonl")
def to_jsonl_cli(
    docs: Annotated[
        Path, typer.Argument(metavar="DOCS", help="Documents, .spacy, for example of spacy apply.")
    ],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The .jsonl file to write.")],
    spans_key: Annotated[
        str | None, typer.Option(help="Write the spans of this group instead of the entities.")
    ] = None,
    force: ForceOption = False,
) -> None:
    """Write documents as JSON lines: entities with scores, types and links, relations, questions
    with answers.

    'spacy luke convert jsonl' reads the file; 'spacy luke answer' answers its questions again.

    \b
    Examples:
    python -m spacy apply model-best texts.jsonl predicted.spacy
    python -m spacy luke to-jsonl predicted.spacy predicted.jsonl
    """
    msg = Printer()
    with exit_on_error(msg):
        if out.resolve() == docs.resolve():
            raise ConfigError("DOCS and OUT must be different files.")
        check_file(out, force)
        written, n_lost = write_jsonl(docs, out, spans_key)
    if n_lost:
        what = f"spans of {spans_key!r}" if spans_key else "entities (--spans-key writes a group)"
        msg.warn(f"{n_lost:,} relations were left out, because their spans are no {what}.")
    if spans_key is None:
        _warn_of_groups(written, msg)
    _warn_of_unknown(written, spans_key, msg)
    msg.good(f"Wrote {out}: {len(written):,} documents")


def _warn_of_groups(docs: Iterable[Doc], msg: Printer) -> None:
    """Warn of spans of groups that are not written, because they are not entities."""
    lost: Counter[str] = Counter()
    for doc in docs:
        ents = set(map(row_of, doc.ents))
        for key, group in doc.spans.items():
            lost[key] += sum(row not in ents for row in rows_of(group))
    for key, n in sorted(lost.items()):
        if n:
            msg.warn(
                f"{n:,} spans of the group {key!r} are not entities and were not written; "
                f"--spans-key {key} writes that group."
            )


def _warn_of_unknown(docs: Iterable[Doc], spans_key: str | None, msg: Printer) -> None:
    """Warn of tokens without entity in documents that are not annotated as a whole."""
    partial = [doc for doc in docs if is_partial(doc, spans_key)]
    n_outside = sum(token.ent_iob == 2 for doc in partial for token in doc)
    if n_outside:
        msg.warn(
            f"{n_outside:,} tokens that are annotated as being in no entity are in documents with "
            f"tokens of unknown annotation ({len(partial):,}), and will be read as unknown, too."
        )


def write_jsonl(source: Path, out: Path, spans_key: str | None = None) -> tuple[list[Doc], int]:
    """Write a line per document. Returns the documents, and how many relations were left out.

    Raises CorpusError, naming the document, if one cannot be written, or if none has the group
    ``spans_key``.
    """
    docs = _read(source)
    if spans_key and not any(spans_key in doc.spans for doc in docs):
        keys = sorted({key for doc in docs for key in doc.spans})
        raise CorpusError(f"{source} has no spans group {spans_key!r}; it has {keys}.")
    out.parent.mkdir(parents=True, exist_ok=True)
    n_lost = 0
    with whole_file(out) as temporary, temporary.open("w", encoding="utf8") as file:
        for number, doc in enumerate(docs, start=1):
            try:
                record, n = record_of(doc, spans_key)
                line = json.dumps(record, ensure_ascii=False)
            except (InputError, TypeError) as err:  # TypeError: user_data["meta"] is not JSON
                raise CorpusError(f"{source}, document {number}: {err}") from err
            n_lost += n
            file.write(f"{line}\n")
    return docs, n_lost


def _read(path: Path) -> list[Doc]:
    try:
        return list(DocBin().from_disk(path).get_docs(spacy.blank("xx").vocab))
    except (ValueError, KeyError, TypeError, OSError, zlib.error) as err:
        raise CorpusError(f"{path} cannot be read as .spacy data: {err}") from err
