"""A page: predicted documents beside their annotation, with counts of all."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from tqdm import tqdm

from ...errors import ConfigError
from ..loading import consumed_groups, predicts_entities, preset_gold
from .charts import Bar, Curve, histogram, reliability_curves
from .counts import LabelCounts, Written, count_labels, count_written, what_is_written
from .document import ShownDoc, View, entities_of, gold_entities, predicted_entities, show
from .documents import TITLE
from .layers import (
    ENTITIES,
    NAMES,
    Layer,
    has_layer,
    layers_as_they_are,
    predicted_layers,
    scored_layers,
    written_as_it_is,
)
from .links import linking_kb
from .questions import ANSWERS, QuestionCounts, count_questions


@dataclass
class HtmlPage:
    """The input of the template.

    n_docs: number of documents counted. Fewer may be shown.
    layers: what is predicted, annotated and compared.
    tallies: counts of each layer that is both predicted and annotated.
    questions: counts of questions; empty without annotation.
    entities: "predicted", "given" (gold entities, which are not counted), "shown" (documents
        without pipeline) or "" if there are none.
    notes: warnings.
    is_predicted: false if the documents are shown as they are.
    """

    title: str
    meta: list[tuple[str, str]]
    n_docs: int
    entities: str = "predicted"
    layers: list[Layer] = field(default_factory=list)
    documents: list[ShownDoc] = field(default_factory=list)
    tallies: list[LabelCounts] = field(default_factory=list)
    bars: list[Bar] = field(default_factory=list)
    curves: list[Curve] = field(default_factory=list)
    questions: list[QuestionCounts] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    is_predicted: bool = True

    @property
    def compared(self) -> list[str]:
        """What is both predicted and annotated."""
        return [tally.what for tally in self.tallies] + ["answers"] * bool(self.questions)


def make_page(
    nlp: Language,
    examples: Sequence[Example],
    limit: int,
    title: str,
    source: str = "the documents",
    scored: Collection[str] = (),
) -> HtmlPage:
    """Predict entities, relations, types, links and answers to questions, and compare them with the
    annotation.

    A pipeline that writes these but no entities gets gold entities. What the pipeline does not
    write is not shown. limit: maximum documents shown; 0: all. source: the name of the documents.
    scored: layers of the references that are predictions, see :func:`.read_documents`.

    Raises ConfigError if the pipeline writes nothing that the page shows, or reads entities that
    the documents lack.
    """
    written, kb = what_is_written(nlp), linking_kb(nlp)
    references = [eg.reference for eg in examples]
    page = HtmlPage(title, _meta(nlp, source), len(examples))
    writers = _writers_of_entities(nlp, written)
    if not writers:
        _give_entities(page, nlp, examples, written)
    page.layers = predicted_layers(nlp, written, writers, references, scored, source)
    compared = {x for x in NAMES if any(has_layer(doc, x, written) for doc in references)}
    docs = nlp.pipe([eg.predicted for eg in examples])
    bar = tqdm(docs, "predict", total=len(examples), leave=False, disable=None)
    predictions = [Example(doc, eg.reference) for doc, eg in zip(bar, examples)]
    _show_all(page, predictions, limit, View(written, kb, compared, page.entities == "given"))
    page.tallies += count_written(written, predictions)
    if ANSWERS in written:
        page.questions = count_questions(predictions)
    page.curves = reliability_curves(nlp, predictions)
    page.notes = list(_doubts(page, references, source))
    return page


def page_as_it_is(docs: Sequence[Doc], limit: int, title: str, source: str) -> HtmlPage:
    """Show what documents contain, compared with nothing.

    Raises ConfigError if they contain nothing that the page shows.
    """
    present = [layer for layer in NAMES if any(has_layer(doc, layer) for doc in docs)]
    if not present:
        raise ConfigError(
            f"{source} contains no entities, types, relations, links or answers. Give a PIPELINE "
            "that predicts them."
        )
    page = HtmlPage(title, [("Documents", source)], len(docs))
    page.is_predicted = False
    page.entities = "shown" if ENTITIES in present else ""
    written = written_as_it_is(docs, present)
    scored = scored_layers(docs, written)
    page.layers = layers_as_they_are(docs, present, scored, written)
    pairs = [Example(doc, _bare(doc)) for doc in docs]
    view = View(written, None, (), given=False, unscored=set(present) - scored)
    _show_all(page, pairs, limit, view)
    return page


def _bare(doc: Doc) -> Doc:
    """The same text and title without any annotation."""
    words, spaces = [x.text for x in doc], [bool(x.whitespace_) for x in doc]
    title = {TITLE: doc.user_data[TITLE]} if TITLE in doc.user_data else {}
    return Doc(doc.vocab, words=words, spaces=spaces, user_data=title)


def _show_all(page: HtmlPage, pairs: Iterable[Example], limit: int, view: View) -> None:
    """Add documents, and the counts and scores of their entities."""
    scored: list[tuple[float, bool | None]] = []
    tally, annotated = LabelCounts(NAMES[ENTITIES]), False
    for number, pair in enumerate(pairs, start=1):
        gold = None if page.entities == "given" else gold_entities(pair.reference)
        predicted = entities_of(pair.predicted) if gold is None else predicted_entities(pair)
        if not limit or number <= limit:
            page.documents.append(
                show(pair.predicted, pair.reference, predicted, gold, number, view)
            )
        keys = None if gold is None else {entity.key for entity in gold}
        scored += [
            (e.score, None if keys is None or not e.compared else e.key in keys)
            for e in predicted
            if e.score is not None
        ]
        if gold is not None:
            count_labels(tally, predicted, gold)
            annotated = True
    if page.entities != "given":
        page.bars = histogram(scored)
    if annotated and page.entities == "predicted":
        page.tallies.append(tally)


def _writers_of_entities(nlp: Language, written: Written) -> list[str]:
    """The components that write ``Doc.ents``. Raises ConfigError if nothing is written to show."""
    writers = predicts_entities(nlp)
    if not writers and not written:
        raise ConfigError(
            f"No component of the pipeline ({', '.join(nlp.pipe_names) or 'empty'}) writes "
            "Doc.ents, relations, types, links or answers. (A luke_ner with nested = true does not "
            "write Doc.ents.)"
        )
    return writers


def _give_entities(
    page: HtmlPage, nlp: Language, examples: Sequence[Example], written: Written
) -> None:
    """Give the pipeline the entities, and consumed groups, of the references."""
    groups = consumed_groups(nlp)
    references = [eg.reference for eg in examples]
    given = any(doc.has_annotation("ENT_IOB") for doc in references)
    page.entities = "given" if given else ""
    in_groups = any(doc.spans.get(key) for doc in references for key in groups)
    if not given and not in_groups and ANSWERS not in written:
        raise ConfigError(
            f"The pipeline ({', '.join(nlp.pipe_names)}) reads entities and writes none, and the "
            "documents have none. Give documents with entities, or a pipeline that finds them."
        )
    preset_gold(examples, nlp)


def _doubts(page: HtmlPage, references: Iterable[Doc], source: str) -> Iterator[str]:
    """Entities that are compared as annotation, but may be predictions: some have scores, or none
    has and all agree with the same pipeline."""
    scored = [x.score is not None for doc in references for x in gold_entities(doc) or ()]
    for tally in page.tallies:
        counts = tally.total
        agree = counts.agreed and not counts.spurious and not counts.missed
        if tally.what == NAMES[ENTITIES] and any(scored):
            yield (
                f"{sum(scored):,} of {len(scored):,} entities of {source} have scores, so they "
                "may be predictions. They are compared because the others have none, as after "
                "corrections by hand."
            )
        elif tally.what == NAMES[ENTITIES] and agree and not page.bars:
            yield (
                f"All {counts.agreed} entities agree. If a pipeline without scores wrote {source}, "
                "its predictions were compared with themselves: give the documents alone to show "
                "them as they are."
            )


def _meta(nlp: Language, source: str) -> list[tuple[str, str]]:
    rows = [
        ("Pipeline", f"{nlp.meta['lang']}_{nlp.meta['name']} {nlp.meta['version']}"),
        ("Components", ", ".join(nlp.pipe_names)),
        ("Documents", source),
    ]
    for name, pipe in nlp.pipeline:
        cfg: Any = getattr(pipe, "cfg", None) or {}
        rows += [
            (f"{name}.{key}", f"{cfg[key]:g}")
            for key in ("nil_bias", "known_bias", "threshold", "score_threshold")
            if cfg.get(key) is not None
        ]
        if cfg.get("thresholds"):  # of labels; the one above is that of others
            shown = (
                f"{x} {'never' if y is None else f'{y:.3g}'}" for x, y in cfg["thresholds"].items()
            )
            rows.append((f"{name}.thresholds", ", ".join(shown)))
        if "calibration" in cfg:
            rows.append((f"{name}.calibration", "yes" if cfg["calibration"] else "no"))
    return rows
