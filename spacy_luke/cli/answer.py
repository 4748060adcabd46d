"""``spacy luke answer``: answers to the questions of a file."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from spacy.language import Language
from spacy.tokens import Doc
from tqdm import tqdm
from wasabi import Printer

from ..annotations.questions import Offsets, predicted_offsets, set_questions
from ..corpora.characters import make_text_doc
from ..corpora.checks import check_unicode, errors_at, get_strings, get_value
from ..corpora.formats import JSON_LINES
from ..corpora.json_docs import described_answers
from ..corpora.objects import read_json_lines
from ..corpora.squad import SquadParagraph, SquadQuestion, read_squad_paragraphs
from ..errors import ConfigError, CorpusError
from ..files import whole_file
from ..metrics.questions import best_text
from ..metrics.squad import AnswerScore, Best, best_threshold, mean_score, score_answer
from . import app, exit_on_error
from .figures import percent
from .loading import Code, answers_questions, load_pipeline, use_device
from .options import ForceOption, GpuOption, PipelineArgument
from .saving import check_file, save_json

_N_NAMED = 5


class Asked(NamedTuple):
    """A text and questions about it. location: in the file, for messages."""

    location: str
    text: str
    questions: list[str]


class Prediction(NamedTuple):
    """An answer to a question of SQuAD. text: empty if there is none. no_answer: the probability of
    that."""

    question: SquadQuestion
    text: str
    no_answer: float


@app.command("answer")
def answer_cli(
    pipeline: PipelineArgument,
    source: Annotated[
        Path, typer.Argument(metavar="INPUT", help="Texts and questions: SQuAD's .json, or .jsonl.")
    ],
    target: Annotated[
        Path, typer.Argument(metavar="OUT", help="The file of answers to write, as INPUT.")
    ],
    no_answer_scores: Annotated[
        Path | None,
        typer.Option(help="SQuAD: also write the probability of 'no answer' per question, .json."),
    ] = None,
    code: Code = None,
    gpu_id: GpuOption = -1,
    force: ForceOption = False,
) -> None:
    """Answer the questions of a file with a pipeline that writes Doc._.answers.

    INPUT in SQuAD's format: OUT has the official predictions, {id: text}, with an empty text for
    "no answer". If INPUT has gold answers, exact match and F1 are printed; if some questions have
    none, also the best scores that a threshold of the probability of "no answer" reaches.

    INPUT .jsonl: one object per line with "text" and "questions", a list of strings. OUT has the
    same objects with "answers": per question its text, its answers with "start", "end" (in
    characters), "text" and "score", best first, and the probability "no_answer".

    \b
    Example:
    python -m spacy luke answer model-best questions.jsonl answers.jsonl
    """
    msg = Printer()
    with exit_on_error(msg):
        lines = source.suffix.lower() in JSON_LINES
        if lines and no_answer_scores is not None:
            raise ConfigError("--no-answer-scores is for SQuAD's format; .jsonl has them in OUT.")
        _check_targets(source, [x for x in (target, no_answer_scores) if x is not None], force)
        use_device(gpu_id)
        if lines:
            answer_lines(pipeline, source, target, msg, code)
        else:
            answer_squad(pipeline, source, target, no_answer_scores, msg, code)


def answer_squad(
    pipeline: str,
    source: Path,
    target: Path,
    no_answer_scores: Path | None,
    msg: Printer,
    code: Path | None = None,
) -> None:
    """Write the official files of predictions and probabilities, and print official scores."""
    paragraphs = list(read_squad_paragraphs(source))
    _check_ids(source, paragraphs)
    nlp = load_answering(pipeline, code)
    predictions = predict_squad(nlp, source, paragraphs)
    save_json(target, {x.question.id: x.text for x in predictions})
    msg.good(f"Wrote {target}: {_counted(bool(x.text) for x in predictions)}")
    if no_answer_scores is not None:
        save_json(no_answer_scores, {x.question.id: x.no_answer for x in predictions})
        msg.good(f"Wrote {no_answer_scores}")
    print_scores(predictions, msg)


def answer_lines(
    pipeline: str, source: Path, target: Path, msg: Printer, code: Path | None = None
) -> None:
    """Write the objects of a .jsonl file with answers."""
    records, asked = read_lines_asked(source)
    nlp = load_answering(pipeline, code)
    n_answers: list[int] = []
    with whole_file(target) as temporary, temporary.open("w", encoding="utf8") as file:
        rows = zip(predict(nlp, source, asked), records, asked, strict=True)
        for found, record, of_one in rows:
            pairs = zip(of_one.questions, found, strict=True)
            answers = [
                described_answers(question, offsets, of_one.text) for question, offsets in pairs
            ]
            file.write(json.dumps({**record, "answers": answers}, ensure_ascii=False) + "\n")
            n_answers += [len(offsets.answers) for offsets in found]
    msg.good(f"Wrote {target}: {_counted(n > 0 for n in n_answers)}")


def load_answering(name: str, code: Path | None = None) -> Language:
    """Load a pipeline. Raises ConfigError if none of its components writes ``Doc._.answers``."""
    nlp = load_pipeline(name, code=code)
    if not answers_questions(nlp):
        raise ConfigError(
            f"PIPELINE: no component of {name} ({', '.join(nlp.pipe_names) or 'empty'}) answers "
            "questions: one that writes Doc._.answers is needed."
        )
    return nlp


def predict_squad(
    nlp: Language, source: Path, paragraphs: Sequence[SquadParagraph]
) -> list[Prediction]:
    """The best answers to all questions, in the order of the file."""
    asked = [Asked(x.location, x.text, [q.text for q in x.questions]) for x in paragraphs]
    predictions = []
    for found, paragraph in zip(predict(nlp, source, asked), paragraphs, strict=True):
        for question, offsets in zip(paragraph.questions, found, strict=True):
            text = best_text(paragraph.text, offsets)
            predictions.append(Prediction(question, text, offsets.no_answer))
    return predictions


def predict(nlp: Language, source: Path, asked: Sequence[Asked]) -> Iterator[list[Offsets]]:
    """Yield the answers to the questions of each text, by characters."""

    def documents() -> Iterator[Doc]:
        for of_one in asked:
            with errors_at(f"{source}, {of_one.location}"):
                doc = make_text_doc(nlp, of_one.text)
            set_questions(doc, of_one.questions)
            yield doc

    bar = tqdm(nlp.pipe(documents()), "answer", total=len(asked), leave=False, disable=None)
    for doc in bar:
        yield predicted_offsets(doc)


def read_lines_asked(source: Path) -> tuple[list[dict[str, Any]], list[Asked]]:
    """The objects of a .jsonl file, and what they ask. Raises CorpusError, with the line."""
    records, asked = [], []
    for location, record in read_json_lines(source):
        with errors_at(f"{source}, {location}"):
            text = get_value(record, "text", str, "the record")
            questions = get_strings(record, "questions", "the record")
            check_unicode(json.dumps(record, ensure_ascii=False))
        records.append(record)
        asked.append(Asked(location, text, questions))
    if not asked:
        raise CorpusError(f"{source} is empty.")
    return records, asked


def print_scores(predictions: Sequence[Prediction], msg: Printer) -> None:
    """Print official scores of the questions whose gold answers are given, in percent."""
    scored = [
        (x.no_answer, score_answer(x.text, [gold.text for gold in x.question.answers]))
        for x in predictions
        if x.question.answers is not None
    ]
    if not scored:
        return
    scores = [score for _, score in scored]
    unanswerable = [score for score in scores if not score.answerable]
    rows = [_row("all questions", scores)]
    if unanswerable:
        rows.append(_row("with an answer", [score for score in scores if score.answerable]))
        rows.append(_row("without an answer", unanswerable))
    msg.table(rows, header=("", "exact match", "F1", "questions"), aligns=("l", "r", "r", "r"))
    if unanswerable:
        no_answer = [x for x, _ in scored]
        _print_best("exact match", best_threshold(scores, no_answer, "exact"), msg)
        _print_best("F1", best_threshold(scores, no_answer, "f1"), msg)


def _check_targets(source: Path, targets: Sequence[Path], force: bool) -> None:
    """Raise ConfigError for files that cannot be written, before the pipeline runs."""
    paths = [source.resolve(), *(path.resolve() for path in targets)]
    if len(set(paths)) < len(paths):
        raise ConfigError("INPUT, OUT and --no-answer-scores must be different files.")
    for path in targets:
        check_file(path, force)
        path.parent.mkdir(parents=True, exist_ok=True)


def _check_ids(source: Path, paragraphs: Iterable[SquadParagraph]) -> None:
    """Raise CorpusError for missing and repeated ids: the predictions have one text per id."""
    questions = [(x.location, question) for x in paragraphs for question in x.questions]
    nameless = [(location, x.text) for location, x in questions if not x.id]
    if nameless:
        location, text = nameless[0]
        raise CorpusError(
            f"{source}: questions without an id: {len(nameless)} (first: {text!r}, {location}). "
            "Every question needs an id of its own."
        )
    counts = Counter(question.id for _, question in questions)
    repeated = [name for name, n in counts.items() if n > 1]
    if repeated:
        more = ", ..." if len(repeated) > _N_NAMED else ""
        raise CorpusError(
            f"{source}: ids of several questions: {', '.join(repeated[:_N_NAMED])}{more} "
            f"({len(repeated)} ids). Every question needs an id of its own."
        )
    if not counts:
        raise CorpusError(f"{source} has no questions.")


def _counted(answered: Iterable[bool]) -> str:
    flags = list(answered)
    return f"{sum(flags):,} of {len(flags):,} questions are answered"


def _row(name: str, scores: Sequence[AnswerScore]) -> tuple[str, str, str, str]:
    mean = mean_score(scores)
    return name, percent(mean.exact), percent(mean.f1), f"{mean.questions:,}"


def _print_best(name: str, best: Best | None, msg: Printer) -> None:
    if best is None:
        return
    kept = "no answer is kept"
    if best.threshold is not None:
        kept = f"answers are kept up to a 'no answer' probability of {best.threshold:.4g}"
    msg.text(f"Best {name} {percent(best.value)}, if {kept}")
