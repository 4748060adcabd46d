"""The text format of SemEval-2010 Task 8: sentences with two tagged nominals and a relation."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from spacy.language import Language
from spacy.tokens import Doc

from ..errors import CorpusError
from .characters import CharSpan, make_text_doc, place_spans
from .checks import located
from .lines import Advance, ignore_progress, place, read_lines
from .mentions import Marked, Writer
from .options import ConvertOptions
from .report import Report

LABEL = "NOMINAL"
NO_RELATION = "Other"
_SENTENCE = re.compile(r'(\d+)[ \t]+"(.*)"[ \t]*')
_RELATION = re.compile(r"([^\s()]+)\((e1,e2|e2,e1)\)")
_TAG = re.compile(r"<(/?)(e[12])>")


class Example(NamedTuple):
    """A numbered sentence with its tags, and its relation line."""

    where: str
    number: str
    tagged: str
    relation: str


def read_semeval(
    path: Path,
    nlp: Language,
    options: ConvertOptions,
    report: Report,
    advance: Advance = ignore_progress,
) -> Iterator[Doc]:
    """Yield one document for each numbered sentence.

    Both nominals are entities ``NOMINAL`` with the entity ids ``e1`` and ``e2``. The relation
    ``Cause-Effect(e2,e1)`` becomes ``Cause-Effect`` with ``e2`` as its head; ``Other`` gives none.
    ``Doc.user_data["id"]`` is the sentence's number. A token that a tag cuts is split, unless
    ``alignment`` says otherwise.

    Raises CorpusError naming the line for a sentence whose tags are not two separate nominals,
    a line that is not a relation, and a sentence without one.
    """
    writer = Writer(options.spans_key, report)
    for example in read_examples(path, advance):
        with located(f"{path}, {example.where}"):
            marked, related = _mark(nlp, example, options.alignment_or("split"), report)
        writer.pairs_without_relation += not related
        yield writer.write(marked, example.where)
    writer.finish(NO_RELATION)


def read_examples(path: Path, advance: Advance = ignore_progress) -> Iterator[Example]:
    """Yield the sentences of a file; blank lines and comments are skipped."""
    begun: tuple[int, str, str] | None = None
    for number, line in read_lines(path, advance):
        line = line.strip()
        if not line:
            continue
        if begun is not None:
            yield Example(
                f"line {begun[0]}", begun[1], begun[2], _check_relation(path, number, line)
            )
            begun = None
        elif not line.startswith("Comment"):
            found = _SENTENCE.fullmatch(line)
            if found is None:
                raise CorpusError(
                    f"{place(path, number)}: a number and a sentence in quotation marks is needed, "
                    f"not {line[:60]!r}."
                )
            begun = (number, found[1], found[2])
    if begun is not None:
        raise CorpusError(f"{place(path, begun[0])}: no relation follows the sentence {begun[1]}.")


def _check_relation(path: Path, number: int, line: str) -> str:
    if line != NO_RELATION and not _RELATION.fullmatch(line):
        raise CorpusError(
            f"{place(path, number)}: {line[:60]!r} is not a relation. A relation is {NO_RELATION}, "
            "or a name and its direction, as in Cause-Effect(e2,e1)."
        )
    return line


def _mark(nlp: Language, example: Example, alignment: str, report: Report) -> tuple[Marked, bool]:
    """The sentence with its annotation, and whether the file gives it a relation."""
    text, nominals = read_tags(example.tagged)
    doc = make_text_doc(nlp, text)
    doc, spans, unknown = place_spans(
        doc, list(nominals.values()), alignment, report, example.where
    )
    doc.user_data["id"] = example.number
    marked = Marked(doc, list(spans.values()), unknown)
    found = _RELATION.fullmatch(example.relation)
    if found is not None:
        head, tail = (spans.get(nominals[tag]) for tag in found[2].split(","))
        if head is None or tail is None:
            report.count("relations left out: one of their spans was", example.where)
        else:
            marked.relations.append((head, tail, found[1]))
    return marked, found is not None


def read_tags(tagged: str) -> tuple[str, dict[str, CharSpan]]:
    """The sentence without its tags, and the nominals ``e1`` and ``e2``.

    Raises CorpusError where the tags are not those of two separate nominals that are not empty.
    """
    parts = _TAG.split(tagged)  # text, slash, name, text, slash, name, ..., text
    tags = [(slash, name) for slash, name in zip(parts[1::3], parts[2::3])]
    first = tags[0][1] if tags else "e1"
    second = "e2" if first == "e1" else "e1"
    if tags != [("", first), ("/", first), ("", second), ("/", second)]:
        shown = " ".join(f"<{slash}{name}>" for slash, name in tags) or "none"
        raise CorpusError(
            f"the tags are {shown}; <e1> </e1> <e2> </e2> are needed, one pair after the other."
        )
    texts = parts[0::3]
    nominals = {}
    for i, name in ((1, first), (3, second)):
        start = sum(len(text) for text in texts[:i])
        if not texts[i].strip():
            raise CorpusError(f"the nominal {name} is empty.")
        nominals[name] = CharSpan(start, start + len(texts[i]), LABEL, span_id=name)
    return "".join(texts), nominals
