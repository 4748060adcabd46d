"""What several commands load: a trained pipeline, annotated documents, a device."""

import zlib
from pathlib import Path

import spacy
from spacy.language import Language
from spacy.training import Corpus, Example

from ..errors import ConfigError, CorpusError


def use_device(gpu_id: int) -> None:
    """Compute on a GPU, or on the CPU where the number is -1. Raises ConfigError."""
    if gpu_id < 0:
        return
    try:
        spacy.require_gpu(gpu_id)
    except ValueError as err:
        raise ConfigError(f"--gpu-id is {gpu_id}, but no such GPU can be used: {err}") from err


def load_pipeline(path: Path) -> Language:
    """A trained pipeline from its directory. Raises ConfigError where there is none."""
    if not (path / "meta.json").is_file() or not (path / "config.cfg").is_file():
        raise ConfigError(f"PIPELINE: {path} is not the directory of a trained pipeline.")
    return spacy.load(path)


def load_examples(path: Path, nlp: Language) -> list[Example]:
    """Annotated documents and their texts without annotation, as ``spacy evaluate`` reads them.

    path: a ``.spacy`` file, or a directory of them. Raises CorpusError where nothing is read.
    """
    if not path.exists():
        raise CorpusError(f"{path} does not exist.")
    try:
        examples = list(Corpus(path)(nlp))
    except (ValueError, KeyError, zlib.error) as err:
        raise CorpusError(f"{path} cannot be read as .spacy data: {err}") from err
    if not examples:
        raise CorpusError(f"{path} holds no document.")
    return examples


def predicts_entities(nlp: Language) -> list[str]:
    """The components that write ``Doc.ents``; a luke_ner in nested mode does not."""
    return [
        name
        for name, pipe in nlp.pipeline
        if "doc.ents" in nlp.get_pipe_meta(name).assigns
        and not (getattr(pipe, "cfg", None) or {}).get("nested")
    ]


def consumes_entities(nlp: Language) -> list[str]:
    """The components that read ``Doc.ents`` and are scored by what they make of them."""
    return [
        name
        for name in nlp.pipe_names
        if "doc.ents" in nlp.get_pipe_meta(name).requires
        and nlp.get_pipe_meta(name).default_score_weights
    ]
