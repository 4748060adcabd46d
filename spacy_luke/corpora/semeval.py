"""The text format of SemEval-2010 Task 8: a sentence with two tagged nominals, and a relation."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from spacy.language import Language
from spacy.tokens import Doc

from ..errors import CorpusError
from .annotation_writer import AnnotationWriter, ParsedDoc
from .characters import CharSpan, align_spans, make_text_doc
from .checks import errors_at
from .conversion_report import Report
from .lines import Advance, at_line, ignore_progress, read_lines
from .options import ConvertOptions

LABEL = "NOMINAL"
NO_RELATION = "Other"
_SENTENCE = re.compile(r'(\d+)[ \t]+"(.*)"[ \t]*')
_RELATION = re.compile(r"([^\s()]+)\((e1,e2|e2,e1)\)")
_TAG = re.compile(r"<(/?)(e[12])>")


class NumberedSentence(NamedTuple):
    """A numbered sentence with its tags, and its relation line."""

    location: str
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
    """Yield one document per numbered sentence.

    The nominals are entities ``NOMINAL`` with the entity ids ``e1`` and ``e2``. The relation
    ``Cause-Effect(e2,e1)`` becomes ``Cause-Effect`` with ``e2`` as its head; ``Other`` becomes no
    relation. ``Doc.user_data["id"]`` is the sentence's number. ``alignment`` defaults to ``split``.

    Raises CorpusError, with the line, for tags that are not two separate nominals, an invalid
    relation line, and a sentence without one.
    """
    writer = AnnotationWriter(options.spans_key, report)
    for sentence in read_numbered_sentences(path, advance):
        with errors_at(f"{path}, {sentence.location}"):
            parsed = _parse(nlp, sentence, options.alignment_or("split"), report)
        writer.pairs_without_relation += not parsed.relations
        yield writer.write(parsed, sentence.location)
    writer.finish(NO_RELATION)


def read_numbered_sentences(
    path: Path, advance: Advance = ignore_progress
) -> Iterator[NumberedSentence]:
    """Yield the sentences of a file; blank lines and comments are skipped."""
    open_sentence: tuple[int, str, str] | None = None  # awaits its relation line
    for number, line in read_lines(path, advance):
        line = line.strip()
        if not line:
            continue
        if open_sentence is not None:
            first_line, sentence_id, tagged = open_sentence
            relation = _check_relation(path, number, line)
            yield NumberedSentence(f"line {first_line}", sentence_id, tagged, relation)
            open_sentence = None
        elif not line.startswith("Comment"):
            match = _SENTENCE.fullmatch(line)
            if match is None:
                raise CorpusError(
                    f"{at_line(path, number)}: a number and a sentence in quotation marks is "
                    f"needed, not {line[:60]!r}."
                )
            open_sentence = (number, match[1], match[2])
    if open_sentence is not None:
        number, sentence_id, _ = open_sentence
        raise CorpusError(
            f"{at_line(path, number)}: no relation follows the sentence {sentence_id}."
        )


def _check_relation(path: Path, number: int, line: str) -> str:
    if line != NO_RELATION and not _RELATION.fullmatch(line):
        raise CorpusError(
            f"{at_line(path, number)}: {line[:60]!r} is not a relation. A relation is "
            f"{NO_RELATION}, or a name and its direction, as in Cause-Effect(e2,e1)."
        )
    return line


def _parse(nlp: Language, sentence: NumberedSentence, alignment: str, report: Report) -> ParsedDoc:
    text, nominals = read_tags(sentence.tagged)
    doc, spans, unknown = align_spans(
        make_text_doc(nlp, text), list(nominals.values()), alignment, report, sentence.location
    )
    doc.user_data["id"] = sentence.number
    parsed = ParsedDoc(doc, list(spans.values()), unknown)
    relation = _RELATION.fullmatch(sentence.relation)
    if relation is not None:
        head, tail = (spans.get(nominals[tag]) for tag in relation[2].split(","))
        parsed.relations.append((head, tail, relation[1]))
    return parsed


def read_tags(tagged: str) -> tuple[str, dict[str, CharSpan]]:
    """The sentence without its tags, and the nominals ``e1`` and ``e2``.

    Raises CorpusError if the tags do not enclose two separate nominals, or one is empty.
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
