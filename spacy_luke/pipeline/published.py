"""Import a published checkpoint as a pipeline, and export a component as a published directory."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import spacy
from spacy.language import Language

from ..checkpoint.classes import BARE_MODEL, DISAMBIGUATION, MASKED_LM, class_named
from ..checkpoint.hub import resolve
from ..checkpoint.names import (
    MASKED_HEADS,
)
from ..checkpoint.read import Checkpoint, published_class
from ..checkpoint.write import write_checkpoint
from ..errors import ConfigError
from ..layers.candidate_scorer import only_rows, row_logits
from ..layers.encoder import ENCODER, module_of, to_checkpoint
from ..layers.entity_rows import TRANSFORM
from ..layers.published_head import class_names
from ..layers.task_head import Head
from ..layers.task_layer import encoder_of, head_of, scorer_of
from .classifier_pipe import PUBLISHED_MODES, ClassifierPipe
from .luke_linker import LukeLinker
from .model_card import record_preset
from .presets import preset_settings

LUKE, NER, LINKER = "luke", "luke_ner", "luke_linker"
_ADVICE = (
    "These can be exported: luke_ner trained in mode full without label_weight; luke_relation, "
    "luke_entity_typing and luke_cloze trained in mode markers; luke_qa; luke_linker with rows = "
    "'only' on a published disambiguation model; luke. To export the encoder alone, train with a "
    "luke component that the others listen to (configs/joint.cfg), and name it (--component luke)."
)


def import_checkpoint(
    name: str,
    language: str = "xx",
    settings: dict[str, Any] | None = None,
    preset: str | None = None,
) -> Language:
    """A pipeline with the component that reads a published checkpoint.

    Span, pair and entity classifiers become ``luke_ner`` (behind a ``sentencizer``),
    ``luke_relation`` and ``luke_entity_typing`` with their labels. Models that answer questions
    become ``luke_qa``, cloze models ``luke_cloze``. Disambiguation models become ``luke_linker``,
    with a knowledge base of their entities. All other checkpoints become ``luke``, which keeps
    their heads.

    name: a directory, or a name on the hub.
    language: of the pipeline. In a multilingual vocabulary (keys ``lang:title``), titles of this
        language are looked up.
    preset: the protocol of a published result (see ``presets.py``). By default a classifier uses
        its published mode, and text is cut as ``transformers`` does.
    settings: of the component; they override the preset's.

    Raises CheckpointError or VocabError, with the file and its error, if the checkpoint cannot be
    read. Raises ConfigError for a head that does not classify entities, an unknown preset, or a
    preset of another component.
    """
    architecture = published_class(resolve(name))
    row = class_named(architecture)
    if not row.component:
        raise ConfigError(
            f"{name} is a {architecture}: it classifies words or texts, not entities, so no "
            "component reads its head. Train spaCy's textcat or tagger on a 'luke' component "
            "through spacy-luke.LukeListener.v1 instead."
        )
    factory = row.component
    encoder = {
        "@architectures": "spacy-luke.LukeEncoder.v1",
        "name": name,
        "tokenization": "mentions",
    }
    config = _merged({"model": encoder if factory == LUKE else {"encoder": encoder}}, row.settings)
    if preset is not None:
        config = _merged(config, preset_settings(preset, factory))
    nlp = spacy.blank(language)
    if factory == NER:
        nlp.add_pipe("sentencizer")
    nlp.add_pipe(factory, config=_merged(config, settings or {}))
    if factory == LINKER:
        loader = {"@misc": "spacy-luke.KBFromEntityVocab.v1", "name": name}
        nlp.config["initialize"]["components"][LINKER] = {"kb_loader": loader}
    nlp.initialize()
    if preset is not None:
        record_preset(nlp, factory, preset)
    return nlp


def _merged(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """``one`` overridden by ``other``, section by section."""
    result = dict(one)
    for key, value in other.items():
        both = isinstance(value, dict) and isinstance(one.get(key), dict)
        result[key] = _merged(one[key], value) if both else value
    return result


def export_component(
    nlp: Language,
    out: Path,
    name: str = "",
    source_names: bool = False,
    overwrite: bool = False,
) -> str:
    """Write a component's encoder, and its classifier if it has one, as a published directory.

    name: the component; by default the only one that has a published form. source_names: tensors
    get the names of the file that the encoder was read from, even if ``transformers`` does not know
    them. overwrite: replace an existing directory. Returns the published class.

    Raises ConfigError for a component without a published form, and CheckpointError if ``out``
    exists or the encoder has parts that no published file has.
    """
    component: Any = nlp.get_pipe(name) if name in nlp.component_names else _only(nlp, name)
    model: Any = getattr(component, "model", None)
    if getattr(model, "name", "") != ENCODER and not isinstance(component, ClassifierPipe):
        raise ConfigError(f"{name} is not a LUKE component, and has no published form.")
    if model.name == ENCODER:
        checkpoint = to_checkpoint(module_of(model))
        architecture = _architecture_of(checkpoint)
    elif obstacle := _obstacle(component):
        raise ConfigError(f"{component.name} has no published form: {obstacle}. {_ADVICE}")
    elif isinstance(component, LukeLinker):
        architecture = DISAMBIGUATION.name
        checkpoint = _with_transform(
            to_checkpoint(encoder_of(component.model)), head_of(component.model)
        )
    else:
        head = head_of(component.model)
        architecture = head.kind.architecture
        checkpoint = _with_classifier(
            to_checkpoint(encoder_of(component.model)),
            head,
            component._classes(),
            component.published_nil,
        )
    write_checkpoint(out, checkpoint, architecture, source_names, overwrite)
    return architecture


def _only(nlp: Language, name: str) -> Any:
    if name:
        raise ConfigError(f"The pipeline has no component {name!r}; it has {nlp.component_names}.")
    obstacles = {name: _obstacle(pipe) for name, pipe in nlp.components}
    exportable = [name for name, obstacle in obstacles.items() if not obstacle]
    exportable = [x for x in exportable if x not in nlp.disabled] or exportable
    if not exportable:
        reasons = "; ".join(f"{name}: {x}" for name, x in obstacles.items()) or "it is empty"
        raise ConfigError(f"No component has a published form ({reasons}). {_ADVICE}")
    if len(exportable) > 1:
        raise ConfigError(
            f"The pipeline has {len(exportable)} components with a published form: {exportable}. "
            "Name one (--component)."
        )
    return nlp.get_pipe(exportable[0])


def _obstacle(pipe: Any) -> str:
    """Why a component has no published form; empty if it has one."""
    if isinstance(pipe, LukeLinker):
        mask_row = encoder_of(pipe.model).network.config.mask_row
        is_published = only_rows(pipe.model) and mask_row is not None
        return "" if is_published else "it is not a published disambiguation model"
    if not isinstance(pipe, ClassifierPipe):
        is_encoder = getattr(getattr(pipe, "model", None), "name", "") == ENCODER
        return "" if is_encoder else "not a LUKE component"
    head = head_of(pipe.model)
    if not head.kind.architecture:
        return "no published class has this task"
    if "label_weight" in head.config:
        return "no published classifier was trained with label_weight, or reads as much"
    mode = scorer_of(pipe.model).mode
    if mode not in PUBLISHED_MODES:
        return f"no published classifier has mode {mode}, and in another one its answers differ"
    if head.config.get("known_labels"):
        return "no published classifier reads known names"
    if not all(isinstance(name, str) for name in pipe._classes()):
        return "no published classifier has directions of pairs as classes"
    return ""


def _architecture_of(checkpoint: Checkpoint) -> str:
    """The source's class if its heads are still present; else the class for the present heads."""
    row = class_named(checkpoint.source.architecture)
    if row.head and row.head.keys() <= checkpoint.others.keys():
        return row.name
    masked = MASKED_LM.head.keys() <= checkpoint.others.keys()
    return (MASKED_LM if masked else BARE_MODEL).name


def _with_transform(checkpoint: Checkpoint, head: Head) -> Checkpoint:
    """The checkpoint with the transform of a linker's head."""
    rows = row_logits(head)
    assert rows is not None
    trained = {TRANSFORM[x]: tensor.cpu() for x, tensor in rows.transform.state_dict().items()}
    return replace(checkpoint, others={**checkpoint.others, **trained})


def _with_classifier(
    checkpoint: Checkpoint, head: Head, classes: list[str], negative: str
) -> Checkpoint:
    """The checkpoint with a component's classifier, its rows in the order of the source's.

    negative: the class that means "none of the labels".
    """
    same = checkpoint.source.architecture == head.kind.architecture
    source_names = class_names(checkpoint.config, head.kind) if same else {}  # ours -> theirs
    order = [x for x in source_names if x in classes]
    order += [x for x in classes if x not in order]
    if not source_names:  # published classifiers have the negative class first
        order.sort(key=lambda x: x != negative)
    rows = [classes.index(x) for x in order]
    # A class gets the name that it has in the source, unless a new label has that name.
    names = [source_names.get(x, x) for x in order]
    names = [x if name in classes else name for x, name in zip(order, names)]
    row = class_named(head.kind.architecture)
    replaced: tuple[str, ...] = (f"{row.classifier}.",)
    if not same:
        replaced += MASKED_HEADS
    others = {k: v for k, v in checkpoint.others.items() if not k.startswith(replaced)}
    others[row.weight] = head.classifier.weight[rows].detach().cpu()
    if head.classifier.bias is not None:
        others[row.bias] = head.classifier.bias[rows].detach().cpu()
    if row.classes:  # no file names them
        return replace(checkpoint, others=others)
    labels = {
        "id2label": {str(i): x for i, x in enumerate(names)},
        "label2id": {x: i for i, x in enumerate(names)},
    }
    config = replace(checkpoint.config, extra={**checkpoint.config.extra, **labels})
    return replace(checkpoint, config=config, others=others)
