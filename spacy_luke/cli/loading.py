"""Shared by commands: load a trained pipeline and annotated documents, choose a device."""

import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import spacy
import typer
from spacy.language import Language
from spacy.tokens import DocBin
from spacy.training import Corpus, Example
from spacy.training.corpus import walk_corpus
from spacy.util import get_package_path, import_file, is_package

from ..annotations.queries import copy_queries
from ..annotations.questions import copy_questions
from ..corpora.preset import PresetCounts, add_types_from_labels, preset_entities, preset_spans
from ..errors import ConfigError, CorpusError, LukeError
from ..report import LOGGER
from .saving import SIGNS

TypesFromLabels = Annotated[
    bool,
    typer.Option("--types-from-labels", help="Use labels as types of entities without types."),
]


Code = Annotated[
    Path | None,
    typer.Option(
        "--code", "-c", help="A Python file with functions that PIPELINE needs, imported first."
    ),
]


def use_device(gpu_id: int) -> None:
    """Use a GPU, or the CPU if gpu_id is negative. Raises ConfigError."""
    if gpu_id < 0:
        return
    try:
        spacy.require_gpu(gpu_id)
    except ValueError as err:
        raise ConfigError(f"--gpu-id is {gpu_id}, but this GPU cannot be used: {err}") from err


def load_pipeline(
    name: str | Path, config: Mapping[str, Any] | None = None, code: Path | None = None
) -> Language:
    """Load a trained pipeline: as for ``spacy.load``, an installed package or else a directory.

    config: overrides of its settings. code: a Python file that registers functions of the pipeline;
    it is imported first.

    Raises ConfigError if there is no such pipeline, or if it or the code cannot be loaded.
    """
    if code is not None:
        _import_code(code)
    if is_package(str(name)):
        get_pipeline_directory(str(name))
    elif not is_pipeline(Path(name)):
        raise ConfigError(
            f"PIPELINE: {name} is not the directory of a trained pipeline, and no installed "
            "package has this name."
        )
    try:
        return spacy.load(name, config=dict(config or {}))
    except LukeError:
        raise
    except ValueError as err:  # above all spaCy's E002: a factory that is not registered
        raise ConfigError(f"PIPELINE: {name} cannot be loaded: {err}") from err


def get_pipeline_directory(name: str, in_place: bool = False) -> Path:
    """The directory of a pipeline, which may be an installed package. It is not checked otherwise.

    in_place: to be changed, which an installed package is not.

    Raises ConfigError for a package that is not a pipeline or must not be changed.
    """
    if not is_package(name):
        return Path(name)
    if in_place:
        raise ConfigError(
            f"PIPELINE: {name} is an installed package. Packages are not changed in place: give a "
            f"directory. One is written by spacy.load({name!r}).to_disk(DIRECTORY)."
        )
    try:
        package = get_package_path(name)
    except ImportError as err:
        raise ConfigError(f"PIPELINE: the installed package {name} is not a pipeline.") from err
    for directory in package.glob("*-*"):
        if is_pipeline(directory):
            return directory
    raise ConfigError(f"PIPELINE: the installed package {name} is not a pipeline.")


def is_pipeline(path: Path) -> bool:
    """Whether a directory contains a saved pipeline."""
    return all((path / sign).is_file() for sign in SIGNS)


def _import_code(path: Path) -> None:
    if not path.is_file():
        raise ConfigError(f"--code: {path} is not a file.")
    try:
        import_file("python_code", path)
    except Exception as err:  # whatever the user's code raises
        raise ConfigError(f"--code: {path}: {type(err).__name__}: {err}") from err


def load_examples(path: Path, nlp: Language, types_from_labels: bool = False) -> list[Example]:
    """Annotated documents, and copies with their questions and queries but without annotation.
    Otherwise as ``spacy evaluate`` reads them.

    path: a ``.spacy`` file, or a directory of them.
    types_from_labels: use labels as types, for entities and spans of typed groups without types, as
        ``spacy-luke.PresetEntsCorpus.v1``.

    Raises CorpusError if there are no documents.
    """
    if not path.exists():
        raise CorpusError(f"{path} does not exist.")
    try:
        examples = list(Corpus(path)(nlp))
    except (ValueError, KeyError, TypeError, zlib.error) as err:
        raise CorpusError(f"{path} cannot be read as .spacy data: {err}") from err
    n_empty = sum(len(DocBin().from_disk(x)) for x in walk_corpus(path, ".spacy")) - len(examples)
    if not examples:
        raise CorpusError(f"{path} contains no documents{' but empty ones' if n_empty else ''}.")
    if n_empty:
        LOGGER.warning("%s: %d empty documents skipped", path, n_empty)
    for example in examples:
        copy_questions(example.reference, example.predicted)
        copy_queries(example.reference, example.predicted)
    if types_from_labels:
        typing = [x for x in nlp.pipe_names if "span._.types" in nlp.get_pipe_meta(x).assigns]
        for key in [_settings(nlp.get_pipe(name)).get("spans_key") for name in typing] or [None]:
            for example in examples:
                add_types_from_labels(example.reference, key)
    return examples


def predicts_entities(nlp: Language) -> list[str]:
    """The components that write ``Doc.ents``, or a spans group that another component consumes."""
    groups = consumed_groups(nlp)
    names = []
    for name, pipe in nlp.pipeline:
        assigns, settings = nlp.get_pipe_meta(name).assigns, _settings(pipe)
        group = _group_of(pipe)
        writes_ents = "doc.ents" in assigns and not settings.get("nested")
        writes_ents = writes_ents or getattr(pipe, "annotate_ents", False)  # span_ruler
        if writes_ents or ("doc.spans" in assigns and group in groups):
            names.append(name)
    return names


def consumes_entities(nlp: Language) -> list[str]:
    """The components that read ``Doc.ents`` and have scores."""
    return [
        name
        for name in nlp.pipe_names
        if "doc.ents" in nlp.get_pipe_meta(name).requires
        and nlp.get_pipe_meta(name).default_score_weights
    ]


def consumed_groups(nlp: Language) -> set[str]:
    """The spans groups that components read instead of ``Doc.ents``."""
    return {key for key in consumed(nlp) if key is not None}


def consumed(nlp: Language) -> set[str | None]:
    """The spans groups that components read; None for ``Doc.ents``."""
    return {_settings(nlp.get_pipe(name)).get("spans_key") for name in consumes_entities(nlp)}


def answers_questions(nlp: Language) -> list[str]:
    """The components that write ``Doc._.answers``."""
    return [x for x in nlp.pipe_names if "doc._.answers" in nlp.get_pipe_meta(x).assigns]


def writes_groups(nlp: Language) -> list[str]:
    """The components with scores that write a spans group, and no entities that others consume:
    ``luke_ner`` with ``nested``, spaCy's ``spancat``."""
    predicting = predicts_entities(nlp)
    return [
        name
        for name in nlp.pipe_names
        if "doc.spans" in nlp.get_pipe_meta(name).assigns
        and name not in predicting
        and getattr(nlp.get_pipe(name), "scorer", None) is not None
    ]


def group_keys(nlp: Language, names: Iterable[str]) -> list[str]:
    """The spans groups that components write."""
    keys = (_group_of(nlp.get_pipe(name)) for name in names)
    return list(dict.fromkeys(key for key in keys if key))


def _group_of(pipe: Any) -> str | None:
    key: str | None = getattr(pipe, "key", _settings(pipe).get("spans_key"))
    return key


def preset_gold(examples: Iterable[Example], nlp: Language) -> None:
    """Copy gold entities, and gold spans of consumed groups, to predicted documents. Their links
    are copied only if a component needs them, because it merges entities, and none would keep them
    as its own answers. Logs a warning for those that do not align with tokens."""
    groups, counts = sorted(consumed_groups(nlp)), PresetCounts()
    links = any(_merges_entities(nlp, name) for name in nlp.pipe_names)
    links = links and not any(_keeps_links(nlp, name) for name in nlp.pipe_names)
    for example in examples:
        counts.docs += 1
        preset_entities(example, counts, links)
        for key in groups:
            preset_spans(example, key, counts, links)
    counts.log(", ".join(groups))


def _merges_entities(nlp: Language, name: str) -> bool:
    """Whether a component takes mentions with one ``kb_id_`` as one entity."""
    completes = "doc._.completions" in nlp.get_pipe_meta(name).assigns
    return completes or bool(_settings(nlp.get_pipe(name)).get("merge_entities"))


def _keeps_links(nlp: Language, name: str) -> bool:
    """Whether a linker leaves the links that mentions have."""
    links = "token.ent_kb_id" in nlp.get_pipe_meta(name).assigns
    return links and not _settings(nlp.get_pipe(name)).get("overwrite", True)


def _settings(pipe: Any) -> dict[str, Any]:
    return getattr(pipe, "cfg", None) or {}
