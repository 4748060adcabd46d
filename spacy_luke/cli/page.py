"""``spacy luke page``: an HTML page of documents with predicted and gold annotation."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from tqdm import tqdm
from wasabi import Printer

from ..annotations.relations import relation_offsets
from ..annotations.scores import scores_of
from ..errors import ConfigError
from . import app, exit_on_error
from .loading import (
    TypesFromLabels,
    load_examples,
    load_pipeline,
    predicts_entities,
    preset_gold,
    use_device,
)
from .page_counts import (
    RELATIONS,
    TYPES,
    Counts,
    LabelCounts,
    Written,
    count,
    count_labels,
    count_written,
    what_is_written,
)
from .page_links import LINKS, ShownLink, linking_kb, show_links
from .page_questions import (
    ANSWERS,
    QuestionCounts,
    ShownQuestion,
    count_questions,
    show_questions,
)
from .page_relations import Drawn, draw_relations
from .page_template import TEMPLATE
from .page_text import Entity, Piece, cut_text, type_chips

if TYPE_CHECKING:
    from ..calibration import Bin
    from ..kb.knowledge_base import MappedKB

N_BINS = 20
"""Number of bars in the histogram of scores from 0 to 1."""


@dataclass
class ShownDoc:
    """A document of the page. counts: None if its entities are not annotated."""

    title: str
    pieces: list[Piece]
    counts: Counts | None
    n_words: int
    relations: Drawn
    links: list[ShownLink]
    questions: list[ShownQuestion]

    @property
    def n_right(self) -> int:
        """Questions whose best answer, or that there is none, is right."""
        return sum(question.kind == "agreed" for question in self.questions)

    @property
    def n_compared(self) -> int:
        """Questions with annotation."""
        return sum(question.kind != "plain" for question in self.questions)


class Bar(NamedTuple):
    """A bar of the histogram: entities with scores from ``low`` that agree, and that do not."""

    low: float
    agreed: int
    spurious: int


class Curve(NamedTuple):
    """How often the answers of a component are right, by score. error, by_chance: the calibration
    error, and what of it is to be expected of exact scores; from 0 to 1."""

    component: str
    bins: "list[Bin]"
    error: float
    by_chance: float


@dataclass
class HtmlPage:
    """The input of the template.

    n_docs: number of documents counted. Fewer may be shown.
    tallies: counts of each layer that is both predicted and annotated.
    questions: counts of questions; empty without annotation.
    entities: "predicted", "given" (gold entities, which are not counted) or "" if there are none.
    """

    title: str
    meta: list[tuple[str, str]]
    n_docs: int
    documents: list[ShownDoc]
    tallies: list[LabelCounts]
    bars: list[Bar]
    curves: list[Curve]
    questions: list[QuestionCounts]
    entities: str = "predicted"

    @property
    def compared(self) -> list[str]:
        """What is both predicted and annotated."""
        return [tally.what for tally in self.tallies] + ["answers"] * bool(self.questions)


@app.command("page")
def page_cli(
    pipeline: Annotated[Path, typer.Argument(metavar="PIPELINE", help="A trained pipeline.")],
    docs: Annotated[Path, typer.Argument(metavar="DOCS", help="Annotated documents, .spacy.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="The .html file to write.")],
    limit: Annotated[
        int, typer.Option("--limit", "-n", help="Maximum documents shown; 0: all.")
    ] = 20,
    title: Annotated[str, typer.Option(help="Title of the page.")] = "Entities",
    types_from_labels: TypesFromLabels = False,
    gpu_id: Annotated[int, typer.Option("--gpu-id", "-g", help="GPU, or -1 for the CPU.")] = -1,
) -> None:
    """Write a page of documents with predicted and annotated entities, their scores, and relations,
    types, links, and questions with their answers, if there are any.

    The page is one file without external resources. All documents are counted; --limit only limits
    those shown.

    \b
    Example:
    python -m spacy luke page model-best dev.spacy page.html --limit 50
    """
    msg = Printer()
    with exit_on_error(msg):
        if limit < 0:
            raise ConfigError(f"--limit is {limit}; use 0 (all) or more.")
        use_device(gpu_id)
        nlp = load_pipeline(pipeline)
        page = make_page(nlp, load_examples(docs, nlp, types_from_labels), limit, title)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(render(page), encoding="utf8")
    msg.good(f"Wrote {target}: {len(page.documents)} of {page.n_docs} documents")


def make_page(nlp: Language, examples: Sequence[Example], limit: int, title: str) -> HtmlPage:
    """Predict entities, relations, types, links and answers to questions, and compare them with the
    annotation.

    A pipeline that writes these but no entities gets gold entities. What the pipeline does not
    write is not shown. limit: maximum documents shown; 0: all. Raises
    ConfigError if the pipeline writes nothing that the page shows.
    """
    page = HtmlPage(title, _meta(nlp), len(examples), [], [], [], [], [])
    written, kb = what_is_written(nlp), linking_kb(nlp)
    if not _predicts_entities(nlp, written):
        given = any(eg.reference.has_annotation("ENT_IOB") for eg in examples)
        page.entities = "given" if given else ""
        preset_gold(examples, nlp)
    compare = any(relation_offsets(eg.reference) for eg in examples)
    scored: list[tuple[float, bool]] = []
    entities, annotated = LabelCounts("entities"), False
    docs = nlp.pipe([eg.predicted for eg in examples])
    bar = tqdm(docs, "predict", total=len(examples), leave=False, disable=None)
    predictions = [Example(doc, eg.reference) for doc, eg in zip(bar, examples)]
    for number, example in enumerate(predictions, start=1):
        doc, reference = example.predicted, example.reference
        gold = gold_entities(reference)
        predicted = predicted_entities(doc)
        if not limit or number <= limit:
            page.documents.append(
                show(doc, reference, predicted, gold, number, compare, written, kb)
            )
        if gold is not None:
            keys = {entity.key for entity in gold}
            scored += [(e.score, e.key in keys) for e in predicted if e.score is not None]
            count_labels(entities, predicted, gold)
            annotated = True
    page.tallies = count_written(written, predictions)
    if annotated and page.entities == "predicted":
        page.tallies.insert(0, entities)
    if ANSWERS in written:
        page.questions = count_questions(predictions)
    page.bars = histogram(scored)
    page.curves = reliability_curves(nlp, predictions)
    return page


def reliability_curves(nlp: Language, predictions: Sequence[Example]) -> list[Curve]:
    """One per component whose answers have scores and annotation."""
    from ..calibration import calibration_error, error_by_chance, reliability
    from ..pipeline.classifier_pipe import ClassifierPipe

    curves = []
    for name, pipe in nlp.pipeline:
        answers = pipe.answers(predictions) if isinstance(pipe, ClassifierPipe) else None
        if answers is None or not answers.found or not answers.n_gold:
            continue
        scores, right = answers.scores, answers.right
        error = calibration_error(scores, right) or 0.0
        curves.append(Curve(name, reliability(scores, right), error, error_by_chance(scores)))
    return curves


def gold_entities(doc: Doc) -> list[Entity] | None:
    """The annotated entities, or None if the document's entities are not annotated."""
    if not doc.has_annotation("ENT_IOB"):
        return None
    return [Entity(ent.start_char, ent.end_char, ent.label_) for ent in doc.ents]


def predicted_entities(doc: Doc) -> list[Entity]:
    """The entities, with scores if a spans group has them."""
    scores = scores_of(doc)
    return [
        Entity(e.start_char, e.end_char, e.label_, scores.get((e.start_char, e.end_char, e.label)))
        for e in doc.ents
    ]


def show(
    doc: Doc,
    reference: Doc,
    predicted: Sequence[Entity],
    gold: Sequence[Entity] | None,
    number: int,
    compare: bool,
    written: Written,
    kb: "MappedKB | None" = None,
) -> ShownDoc:
    """One document, cut into pieces at entity boundaries.

    compare: whether relations are annotated in the corpus. If so, predicted relations that this
        document lacks are spurious.
    """
    title = str(reference.user_data.get("title") or f"Document {number}")
    counts = None if gold is None else count(predicted, gold)
    chips = {}
    if TYPES in written:
        settings = written[TYPES]
        chips = type_chips(
            doc, reference, settings.get("ancestors", False), settings.get("spans_key")
        )
    questions = []
    if ANSWERS in written:
        questions = show_questions(doc, reference, f"question-{number}", **written[ANSWERS])
    answers = [answer for question in questions for answer in question.marks]
    pieces = cut_text(doc.text, predicted, gold, chips, answers)
    drawn = Drawn([], [])
    if RELATIONS in written:
        name, settings = f"relations-{number}", written[RELATIONS]
        drawn = draw_relations(doc, reference, compare, name, **settings)
    links = []
    if LINKS in written and kb is not None:
        links = show_links(doc, reference, kb, **written[LINKS])
    return ShownDoc(title, pieces, counts, len(doc), drawn, links, questions)


def histogram(scored: Iterable[tuple[float, bool]]) -> list[Bar]:
    """Count (score, whether the entity agrees) in N_BINS bars; empty without scores."""
    counts = Counter((min(int(score * N_BINS), N_BINS - 1), agrees) for score, agrees in scored)
    if not counts:
        return []
    return [Bar(i / N_BINS, counts[i, True], counts[i, False]) for i in range(N_BINS)]


def render(page: HtmlPage) -> str:
    """The page as HTML; all text is escaped."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    )
    environment.filters["percent"] = _percent
    labels = {label for shown in page.documents for label in _labels(shown)}
    labels |= {
        label for tally in page.tallies if tally.what == "entities" for label in tally.labels
    }
    hues = {
        label: round(25 + i * 360 / len(labels)) % 360 for i, label in enumerate(sorted(labels))
    }
    highest = max((bar.agreed + bar.spurious for bar in page.bars), default=0)
    return environment.from_string(TEMPLATE).render(
        page=page,
        hues=hues,
        highest=highest,
        types=any(piece.types for shown in page.documents for piece in shown.pieces),
        relations=any(any(shown.relations) for shown in page.documents),
        links=any(shown.links for shown in page.documents),
        questions=any(shown.questions for shown in page.documents),
    )


def _labels(shown: ShownDoc) -> set[str]:
    return {tag.label for piece in shown.pieces for tag in piece.tags}


def _percent(value: float | None) -> str:
    return "\N{EN DASH}" if value is None else f"{100 * value:.1f}"


def _predicts_entities(nlp: Language, written: Written) -> bool:
    """Whether the pipeline writes ``Doc.ents``. Raises ConfigError if it writes nothing to show."""
    predicted = bool(predicts_entities(nlp))
    if not predicted and not written:
        raise ConfigError(
            f"No component of the pipeline ({', '.join(nlp.pipe_names) or 'empty'}) writes "
            "Doc.ents, relations, types, links or answers. (A luke_ner with nested = true does not "
            "write Doc.ents.)"
        )
    return predicted


def _meta(nlp: Language) -> list[tuple[str, str]]:
    rows = [
        ("Pipeline", f"{nlp.meta['lang']}_{nlp.meta['name']} {nlp.meta['version']}"),
        ("Components", ", ".join(nlp.pipe_names)),
    ]
    settings: dict[str, Callable[[Any], str]] = {
        "nil_bias": "{:g}".format,
        "known_bias": "{:g}".format,
        "threshold": "{:g}".format,
        "score_threshold": "{:g}".format,
    }
    for name, pipe in nlp.pipeline:
        cfg: Any = getattr(pipe, "cfg", None) or {}
        rows += [
            (f"{name}.{key}", shape(cfg[key])) for key, shape in settings.items() if key in cfg
        ]
    return rows
