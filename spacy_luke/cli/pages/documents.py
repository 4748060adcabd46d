"""The documents of a page: ``.spacy`` files, JSON lines, plain text, or folders of these."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from ...annotations.questions import copy_questions, set_questions
from ...corpora.characters import make_text_doc
from ...corpora.checks import check_unicode, errors_at, get_strings, get_value
from ...corpora.formats import JSON, JSON_LINES
from ...corpora.lines import read_lines
from ...corpora.objects import read_json_lines
from ...errors import CorpusError
from ...files import is_hidden
from ...report import LOGGER
from ..loading import load_examples
from .counts import what_is_written
from .layers import not_annotated, scored_layers

SPACY, TEXT = ".spacy", ".txt"
TITLE = "title"
"""The key of a document's title, in JSON lines and in ``Doc.user_data``."""


@dataclass
class Documents:
    """Documents and what they are.

    examples: predicted documents are without annotation. scored: layers of the references that are
    predictions: their references are marked as not annotated. raw: whether any document is text.
    """

    examples: list[Example] = field(default_factory=list)
    scored: set[str] = field(default_factory=set)
    raw: bool = False


def read_documents(
    path: Path, nlp: Language | None, lines: bool = False, types_from_labels: bool = False
) -> Documents:
    """Read a file, or all files of a folder and its folders that are ``.spacy``, JSON lines or
    ``.txt``. A single file with another name is read as text.

    nlp: tokenises; None to read ``.spacy`` files as they are. lines: every line of a text is a
    document. types_from_labels: see :func:`.load_examples`.

    Empty texts and other files of a folder are skipped, counted, and reported. Raises CorpusError
    if there are no documents, or if a file is damaged.
    """
    documents, skipped = Documents(), Counter[str]()
    for file in _files(path, skipped):
        if file.suffix == SPACY:
            _add_spacy(documents, file, nlp, types_from_labels)
        elif nlp is None:
            raise CorpusError(f"{file} is text: without PIPELINE there is nothing to show.")
        else:
            if file.suffix.lower() in JSON:
                raise CorpusError(
                    f"{file} is JSON, not text. Give a .jsonl file with one object per line, or "
                    "convert annotated files first (spacy luke convert)."
                )
            read = _read_objects if file.suffix.lower() in JSON_LINES else _read_text
            documents.examples += read(file, nlp, lines, skipped)
            documents.raw = True
    for what, n in skipped.items():
        LOGGER.warning("%s: %d %s", path, n, what)
    if not documents.examples:
        raise CorpusError(f"{path} contains no documents.")
    return documents


def _files(path: Path, skipped: Counter[str]) -> list[Path]:
    if not path.exists():
        raise CorpusError(f"{path} does not exist.")
    if not path.is_dir():
        return [path]
    files = [
        file for file in sorted(path.rglob("*")) if file.is_file() and not is_hidden(file, path)
    ]
    known = [x for x in files if x.suffix == SPACY or x.suffix.lower() in {TEXT, *JSON_LINES}]
    if len(files) > len(known):
        skipped["files skipped that are not .spacy, JSON lines or .txt"] += len(files) - len(known)
    return known


def _add_spacy(
    documents: Documents, file: Path, nlp: Language | None, types_from_labels: bool
) -> None:
    examples = load_examples(file, nlp or spacy.blank("xx"), types_from_labels)
    references = [example.reference for example in examples]
    written = None if nlp is None else what_is_written(nlp)
    scored = scored_layers(references, written)
    if written is not None:
        for reference in references:
            not_annotated(reference, scored, written)
    documents.examples += examples
    documents.scored |= scored


def _read_objects(
    file: Path, nlp: Language, lines: bool, skipped: Counter[str]
) -> Iterator[Example]:
    """One document per object: "text", and optional "title" and "questions"."""
    for location, record in read_json_lines(file):
        with errors_at(f"{file}, {location}"):
            text = get_value(record, "text", str, "the record")
            check_unicode(text)
            questions = get_strings(record, "questions", "it") if "questions" in record else []
            if record.keys() & {"spans", "relations", "ents", "entities"}:
                skipped[
                    "records whose annotation is not shown (`spacy luke convert` reads it)"
                ] += 1
            if not text.strip():
                skipped["empty texts skipped"] += 1
                continue
            title = record.get(TITLE) or f"{file.name}, {location}"
            yield _raw(nlp, text, str(title), questions)


def _read_text(file: Path, nlp: Language, lines: bool, skipped: Counter[str]) -> Iterator[Example]:
    numbered = [(number, line) for number, line in read_lines(file)]
    texts = [("", "\n".join(line for _, line in numbered))]
    if lines:
        texts = [(f", line {number}", line) for number, line in numbered if line.strip()]
    for location, text in texts:
        if text.strip():
            with errors_at(f"{file}{location}"):
                yield _raw(nlp, text.strip("\n"), file.name + location, [])
        else:
            skipped["empty texts skipped"] += 1


def _raw(nlp: Language, text: str, title: str, questions: Iterable[str]) -> Example:
    predicted = make_text_doc(nlp, text)
    reference = Doc(
        nlp.vocab,
        words=[token.text for token in predicted],
        spaces=[bool(token.whitespace_) for token in predicted],
        user_data={TITLE: title},
    )
    if questions:
        set_questions(reference, questions)
        copy_questions(reference, predicted)
    return Example(predicted, reference)
