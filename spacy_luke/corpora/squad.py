"""The JSON of SQuAD 1.1 and 2.0: questions about paragraphs, with answers by characters."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from spacy.language import Language
from spacy.tokens import Doc

from ..annotations.questions import Offsets, set_answer_offsets, set_questions
from ..errors import CorpusError
from .characters import LANGUAGE_REMEDY, make_text_doc, needs_language
from .checks import (
    check_unicode,
    errors_at,
    get_items,
    get_value,
    kind_of,
    require_items,
    require_key,
    require_object,
)
from .conversion_report import Report
from .lines import Advance, ignore_progress
from .objects import read_json_object
from .options import ConvertOptions
from .quotes import (
    AT_OFFSETS,
    DIFFERS,
    IN_UTF16,
    NEAR,
    NOWHERE,
    Found,
    find_near,
    find_quote,
    same_end,
)


class SquadAnswer(NamedTuple):
    """A gold answer, with the character at which it starts according to the file."""

    text: str
    start: int


class SquadQuestion(NamedTuple):
    """id: empty if the file has none. answers: empty if the paragraph has none; None if the file
    does not give them."""

    id: str
    text: str
    answers: list[SquadAnswer] | None


class SquadParagraph(NamedTuple):
    """A paragraph with its questions. location: in the file, counted from 1. title: of its article,
    or empty."""

    location: str
    title: str
    text: str
    questions: list[SquadQuestion]


def read_squad(
    path: Path,
    nlp: Language,
    options: ConvertOptions,
    report: Report,
    advance: Advance = ignore_progress,
) -> Iterator[Doc]:
    """Yield one document per paragraph, with ``Doc._.questions`` and, if the file gives answers,
    ``Doc._.answers``.

    The article's title is stored in ``Doc.user_data["title"]``. Answers are stored by characters,
    also those that begin or end inside a token. If an answer is not at its offset, the only place
    within ``quotes.NEARBY`` characters that has its text is taken; if there is none, or several,
    the answer is left out. A question that loses all answers in this way is left out, because it
    would count as unanswerable. Raises CorpusError, with the paragraph, for an invalid record.
    """
    n_unknown = 0
    for paragraph in read_squad_paragraphs(path, advance):
        if not paragraph.text:
            report.count("paragraphs left out: they have no text", paragraph.location)
            continue
        with errors_at(f"{path}, {paragraph.location}"):
            doc = make_text_doc(nlp, paragraph.text)
        if paragraph.title:
            doc.user_data["title"] = paragraph.title
        n_unknown += _set_questions(doc, paragraph, report)
        report.add_doc(doc, ())
        yield doc
    if n_unknown:
        report.notes.append(f"{n_unknown} documents have only questions: answers are not given")


def read_squad_paragraphs(
    path: Path, advance: Advance = ignore_progress
) -> Iterator[SquadParagraph]:
    """Yield the paragraphs of a file.

    Keys read: ``data``, a list of articles, each with ``paragraphs`` and an optional ``title``;
    ``context`` and ``qas`` of a paragraph; ``question`` and optional ``id`` and ``answers``, with
    ``text`` and ``answer_start``, of a question. An answer without text means that there is none,
    as does ``is_impossible`` where ``answers`` is missing.
    Other keys, such as ``plausible_answers``, are ignored.

    Raises CorpusError, with the place, for a file that is not JSON, and for an invalid record.
    """
    data = read_json_object(path)
    with errors_at(str(path)):
        require_key(data, "data", "the file")
        articles = get_items(data, "data")
    for i, article in enumerate(articles, start=1):
        with errors_at(f"{path}, article {i}"):
            article = require_object(article, "the record")
            title = str(article.get("title") or "")
            check_unicode(title)
            paragraphs = require_items(article, "paragraphs")
        for j, paragraph in enumerate(paragraphs, start=1):
            location = f"article {i}, paragraph {j}"
            with errors_at(f"{path}, {location}"):
                paragraph = require_object(paragraph, "the record")
                text = _get_text(paragraph, "context", "the record")
                items = require_items(paragraph, "qas")
                questions = [_read_question(x, f"question {k}") for k, x in enumerate(items, 1)]
            yield SquadParagraph(location, title, text, questions)
        advance(path.stat().st_size // len(articles))


def _read_question(item: Any, owner: str) -> SquadQuestion:
    item = require_object(item, owner)
    text = _get_text(item, "question", owner)
    name = "" if item.get("id") is None else item["id"]
    if type(name) not in (str, int):
        raise CorpusError(f"id of {owner} is {kind_of(name)}, not a string.")
    impossible = item.get("is_impossible") or False
    if impossible not in (True, False):
        raise CorpusError(f"is_impossible of {owner} is {impossible!r}, not true or false.")
    # SQuAD 2.0 gives questions without an answer an empty list; other tools leave it out.
    answers: list[SquadAnswer] | None = [] if impossible else None
    if item.get("answers") is not None:
        with errors_at(owner):
            items = get_items(item, "answers")
        read = [_read_answer(x, f"answer {i} of {owner}") for i, x in enumerate(items, 1)]
        answers = [x for x in read if x.text.strip()]
    return SquadQuestion(str(name), text, answers)


def _read_answer(item: Any, owner: str) -> SquadAnswer:
    item = require_object(item, owner)
    return SquadAnswer(_get_text(item, "text", owner), get_value(item, "answer_start", int, owner))


def _get_text(data: dict[str, Any], key: str, owner: str) -> str:
    text: str = get_value(data, key, str, owner)
    check_unicode(text)
    return text


def _set_questions(doc: Doc, paragraph: SquadParagraph, report: Report) -> bool:
    """Set questions and answers. Returns whether there are questions, but no answers are given."""
    known = [x for x in paragraph.questions if x.answers is not None]
    if not known:
        set_questions(doc, [x.text for x in paragraph.questions])
        report.questions += len(paragraph.questions)
        return bool(paragraph.questions)
    if len(known) < len(paragraph.questions):
        what = "questions left out: answers are given only for others of the paragraph"
        report.count(what, paragraph.location, len(paragraph.questions) - len(known))
    placed = [(x.text, _place_answers(doc, paragraph, x, report)) for x in known]
    kept = [(text, places) for text, places in placed if places is not None]
    if len(kept) < len(known):
        what = "questions left out: none of their answers is at its place"
        report.count(what, paragraph.location, len(known) - len(kept))
    set_questions(doc, [text for text, _ in kept])
    answers = [Offsets([(a, b, 1.0) for a, b in places], float(not places)) for _, places in kept]
    set_answer_offsets(doc, answers)
    report.questions += len(kept)
    report.unanswerable += sum(not places for _, places in kept)
    report.answers += sum(len(places) for _, places in kept)
    return False


def _place_answers(
    doc: Doc, paragraph: SquadParagraph, question: SquadQuestion, report: Report
) -> list[tuple[int, int]] | None:
    """The characters of the answers, in the order of the file; None if all were left out."""
    places, location = [], paragraph.location
    for answer in question.answers or ():
        start, end, how = _find(paragraph.text, answer)
        if how != AT_OFFSETS:
            report.count(_HOW[how], location)
        if how == NOWHERE:
            continue
        found = paragraph.text[start:end]
        end = start + len(found.rstrip())
        start += len(found) - len(found.lstrip())
        places.append((start, end))
    distinct = list(dict.fromkeys(places))
    if len(distinct) < len(places):
        report.count("repeated answers taken once", location, len(places) - len(distinct))
    n_inside = sum(doc.char_span(start, end) is None for start, end in distinct)
    if n_inside:
        what = "answers that begin or end inside a token, kept by characters"
        note = f"answers are inside tokens: {LANGUAGE_REMEDY}"
        if note not in report.notes and any(
            doc.char_span(*place) is None and needs_language(doc, *place) for place in distinct
        ):
            report.notes.append(note)
        report.count(what, location, n_inside)
    return None if question.answers and not distinct else distinct


_HOW = {
    IN_UTF16: "answers whose place counts UTF-16 units, converted by their text",
    DIFFERS: "answers whose text differs in marks, case or punctuation, taken by their place",
    NEAR: "answers moved: their text is near their place",
    NOWHERE: "answers left out: their text is not at their place",
}


def _find(text: str, answer: SquadAnswer) -> Found:
    """An answer at its place, or near it, or else with the same letters at its place. A negative
    place is unknown: the only one in the text."""
    start, end = answer.start, answer.start + len(answer.text)
    if start < 0:
        first = text.find(answer.text)
        is_unique = first >= 0 and text.find(answer.text, first + 1) < 0
        found = Found(first, first + len(answer.text), NEAR)
        return found if is_unique and answer.text.strip() else Found(start, end, NOWHERE)
    found = find_quote(text, start, end, answer.text)
    if found.how in (AT_OFFSETS, IN_UTF16):
        return found
    near = find_near(text, answer.text, start) if answer.text.strip() else None
    if near is not None:
        return Found(near, near + len(answer.text), NEAR)
    stop = same_end(text, start, answer.text)
    return Found(start, end, NOWHERE) if stop is None else Found(start, stop, DIFFERS)


def is_squad(value: Any) -> bool:
    """Whether a JSON value has the keys of this format."""
    data = value.get("data") if isinstance(value, dict) else None
    first = data[0] if isinstance(data, list) and data else None
    return isinstance(first, dict) and "paragraphs" in first
