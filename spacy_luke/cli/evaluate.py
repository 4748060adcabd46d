"""``spacy luke evaluate``: scores end to end and, under other names, with gold entities."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from wasabi import Printer

from ..annotations.group_spans import Row, row_of, rows_of
from ..annotations.relations import gold_offsets
from ..corpora.preset import preset_sents
from ..errors import ConfigError
from ..metrics.links import AMBIGUOUS
from . import app, exit_on_error
from .figures import percent
from .loading import (
    Code,
    TypesFromLabels,
    answers_questions,
    consumed,
    consumes_entities,
    load_examples,
    load_pipeline,
    predicts_entities,
    preset_gold,
    use_device,
    writes_groups,
)
from .options import ForceOption, GpuOption, PipelineArgument
from .predicted import warn_of_predictions
from .saving import check_file, save_json

GOLD = "gold_"
_N_CHECKED = 8
_CALIBRATION = ("_calibration_error", "_calibration_error_by_chance")
_SHOWN = (
    *("_p", "_r", "_f", "_acc", "_recall", "_recall_1", "_em", "_f1", "_unanswerable"),
    *_CALIBRATION,
)
_BY_LABEL = "_per_type"
_LAYERS = {"ents": "ents", "rels": "relations"}
"""Beginning of the names of scores -> layer. (Types may be implied, so that no component has
them.)"""
_NUMBER = "_mentions"


@app.command("evaluate")
def evaluate_cli(
    pipeline: PipelineArgument,
    docs: Annotated[Path, typer.Argument(metavar="DOCS", help="Annotated documents, .spacy.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Also write all scores, .json.")
    ] = None,
    gold_sents: Annotated[
        bool,
        typer.Option("--gold-sents", help="Give the pipeline the annotated sentence starts."),
    ] = False,
    types_from_labels: TypesFromLabels = False,
    code: Code = None,
    gpu_id: GpuOption = -1,
    force: ForceOption = False,
) -> None:
    """Score a pipeline whose components consume entities, write spans groups, or answer questions.

    Scores with spaCy's names are end to end: with the pipeline's own entities. Components that
    consume entities are also scored with the annotated entities: these scores begin with "gold_". A
    pipeline that does not predict entities has only these, and the scores of components that write
    spans groups. Components that answer questions get the questions of the documents.

    --gold-sents: published scores of corpora that are split into sentences use these sentences.

    \b
    Example:
    python -m spacy luke evaluate model-best test.spacy --output scores.json
    """
    msg = Printer()
    with exit_on_error(msg):
        if output is not None:
            check_file(output, force)
        use_device(gpu_id)
        nlp = load_pipeline(pipeline, code=code)
        examples = load_examples(docs, nlp, types_from_labels)
        warn_of_predictions(nlp, examples, docs)
        scores = evaluate(nlp, examples, gold_sents)
        if output is not None:
            save_json(output, scores)
    print_scores(scores, msg)
    for line in unknown_labels(nlp, examples, scores):
        msg.warn(line)
    if output is not None:
        msg.good(f"Saved scores to {output}")


def evaluate(
    nlp: Language, examples: Sequence[Example], gold_sents: bool = False
) -> dict[str, Any]:
    """Scores end to end and, with the prefix ``gold_``, with gold entities.

    gold_sents: predicted documents get the sentence starts of their references, if there are any.

    The examples are not changed. Raises ConfigError if no component reads or writes entities or
    spans groups, or answers questions.
    """
    predicting, consuming = predicts_entities(nlp), consumes_entities(nlp)
    others = (*answers_questions(nlp), *writes_groups(nlp))
    answering = [name for name in others if name not in consuming]
    if not predicting and not consuming and not answering:
        raise ConfigError(
            "No component of this pipeline reads or writes Doc.ents, or writes Doc._.answers or a "
            f"spans group: {', '.join(nlp.pipe_names)}."
        )
    given = [_bare(eg, gold_sents) for eg in examples] if consuming else []
    if consuming:
        preset_gold(given, nlp)
        with nlp.select_pipes(disable=predicting):
            _check_given(nlp, given)
    scores: dict[str, Any] = {}
    if predicting:
        scores.update(nlp.evaluate([_bare(eg, gold_sents) for eg in examples]))
    elif answering:  # what other components do without entities says nothing
        found = nlp.evaluate([_bare(eg, gold_sents) for eg in examples], per_component=True)
        scores.update(_of(found, answering))
    if consuming:
        with nlp.select_pipes(disable=predicting):
            found = nlp.evaluate(given, per_component=True)
        scores.update({GOLD + key: x for key, x in _of(found, consuming).items()})
    return scores


def _bare(eg: Example, gold_sents: bool) -> Example:
    """A copy whose predicted document has no entities: preset ones would count as predictions."""
    predicted = eg.predicted.copy()
    predicted.set_ents([], default="missing")
    bare = Example(predicted, eg.reference)
    if gold_sents:
        preset_sents(bare)
    return bare


def _check_given(nlp: Language, given: Sequence[Example]) -> None:
    """Raise ConfigError if the pipeline changes the given entities. Checked on a few documents,
    because ``nlp.evaluate`` does not return its predictions."""
    keys = consumed(nlp)

    def entities(doc: Doc) -> list[tuple[str | None, Row]]:
        """All consumed spans, by characters, because tokens may be split or merged."""
        rows = [(None, row_of(ent)) for ent in doc.ents if None in keys]
        named = [key for key in keys if key in doc.spans]
        return rows + [(key, row) for key in named for row in rows_of(doc.spans[key])]

    docs = [eg.predicted.copy() for eg in given if entities(eg.predicted)][:_N_CHECKED]
    before = [entities(doc) for doc in docs]
    if [entities(doc) for doc in nlp.pipe(docs)] != before:
        raise ConfigError(
            "The pipeline changed gold entities or spans that it was given: one of its components "
            f"({', '.join(nlp.pipe_names)}) writes them without declaring it. Register the "
            'component with assigns=["doc.ents"] or "doc.spans".'
        )


def unknown_labels(
    nlp: Language, examples: Sequence[Example], scores: dict[str, Any]
) -> Iterator[str]:
    """What is said of entities and relations with labels that no component has, so that they count
    as missed."""
    from ..pipeline.trial import labels_of

    gold: dict[str, set[str]] = {"ents": set(), "rels": set()}
    for eg in examples:
        gold["ents"].update(ent.label_ for ent in eg.reference.ents)
        gold["rels"].update(x[2] for x in gold_offsets(eg.reference))
    for prefix, layer in _LAYERS.items():
        scored = [scores.get(f"{x}{prefix}{_BY_LABEL}") for x in ("", GOLD)]
        # A component that does not say which labels it writes may have found some.
        found = {x for by_label in scored for x, y in (by_label or {}).items() if y["r"]}
        unknown = gold[prefix] - found - labels_of(nlp, layer)
        if unknown and any(scored):
            yield (
                f"{prefix}: the documents have labels that no component of the pipeline has, and "
                f"all of their annotations count as missed: {', '.join(sorted(unknown))}."
            )


def _of(scores: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """The scores of some components. scores: of each; a component may have no scorer."""
    return {key: value for name in names for key, value in scores.get(name, {}).items()}


def print_scores(scores: dict[str, Any], msg: Printer) -> None:
    """Print one row per score, in percent, and numbers of mentions."""
    rows = [
        (key, f"{value:,}" if key.endswith(_NUMBER) else f"{100 * value:.2f}")
        for key, value in scores.items()
        if isinstance(value, int | float) and key.endswith((*_SHOWN, _NUMBER))
    ]
    msg.table(rows, header=("score", ""), aligns=("l", "r"))
    for key, by_label in scores.items():
        if (
            key.endswith(_BY_LABEL)
            and by_label
            and all(isinstance(x, dict) for x in by_label.values())
        ):
            msg.table(
                [(x, *(percent(y[z]) for z in "prf")) for x, y in sorted(by_label.items())],
                header=(key, "P", "R", "F"),
                aligns=("l", "r", "r", "r"),
            )
    annotated = tuple(x for x in _SHOWN if x not in _CALIBRATION)
    missing = [
        key
        for key, value in scores.items()
        if value is None and key.endswith(annotated) and AMBIGUOUS not in key
    ]
    if missing:
        msg.warn("No score, because the documents lack its annotation:", ", ".join(missing))
