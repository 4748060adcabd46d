"""Components save their encoder in separate files, and only if the pipeline can be loaded."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from math import isclose
from pathlib import Path
from typing import Any, ClassVar

import srsly
from spacy.pipeline import TrainablePipe
from spacy.vocab import Vocab
from thinc.api import Config, Model

from ..errors import ConfigError, reading
from ..files import remove_folder, whole_file
from ..json_file import read_object
from ..layers.encoder import ENCODER, check_embeddings, module_of, shim_of
from ..layers.encoder_files import FOLDER, apart
from ..layers.listener import UpstreamLink, is_listener
from ..layers.transformer_data import link_of
from ..report import LOGGER
from ..validation import HasSettings

CONFIG = "config.cfg"
_LISTENER = "spacy-luke.LukeListener.v1"
_STOCK_LISTENER = "spacy-transformers.TransformerListener.v1"


class SavesEncoderApart(HasSettings, TrainablePipe):
    """A component that saves its encoder in the folder ``encoder``, from which weights and
    vocabularies are mapped into memory. Serialised to bytes it is one piece, as all components."""

    learned_settings: ClassVar[tuple[str, ...]] = ()
    """Settings that ``initialize`` learns if they are null."""

    vocab: Vocab
    model: Model
    scorer: Callable | None

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Write the component to a directory. If it is a listener, an encoder from an earlier save
        is removed. Settings are written as by :func:`save_settings`.

        Raises ConfigError, before the component is written, if it is a listener and the pipeline
        that is being saved does not contain its upstream. (spaCy has written ``config.cfg`` and
        ``meta.json`` by then.)
        """
        path, exclude = Path(path), tuple(exclude)
        nodes = list(self.model.walk())
        for node in filter(is_listener, nodes):
            check_upstream(path, node)
        encoders = [node for node in nodes if node.name == ENCODER]
        for node in encoders:
            if shim_of(node).module is not None:
                module_of(node)  # applies settings that were overridden at loading
        folder = path / FOLDER
        with apart(folder):
            super().to_disk(path, exclude=(*exclude, "cfg"))
        if not encoders and "model" not in exclude:
            with suppress(FileNotFoundError):  # another process may save to the same place
                remove_folder(folder)
        if "cfg" not in exclude:
            save_settings(path, self.cfg, self.learned_settings)

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> "SavesEncoderApart":
        """Read the component from a directory. Of a new component, settings that were overridden at
        loading, that is those that differ from the config beside it, count more than the saved
        ones. One that has weights already takes the saved ones, but for those of its model, which
        are those of the pipeline's config.

        Raises as :func:`check_learned`, and CheckpointError if another file cannot be read."""
        path, exclude = Path(path), tuple(exclude)
        if "cfg" not in exclude:
            check_learned(path, self.cfg)
        overridden: dict[str, Any] = {}
        for node in filter(is_listener, self.model.walk()):
            check_loaded_upstream(path, node.attrs["link"])
        with reading(f"The component in {path}"), apart(path / FOLDER):
            if not has_weights(self.model):
                overridden = overridden_settings(path, self.cfg)
            elif "cfg" not in exclude:
                self.cfg.update(saved_settings(path, self.cfg))
            super().from_disk(path, exclude=exclude)
        self._check_encoders()
        self.cfg.update(overridden)
        return self

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> "SavesEncoderApart":
        super().from_bytes(data, exclude=exclude)
        self._check_encoders()
        return self

    def _check_encoders(self) -> None:
        """Raise ConfigError if an encoder has other embeddings than its settings say now."""
        for node in self.model.walk():
            if node.name == ENCODER:
                check_embeddings(node)


def check_upstream(path: Path, listener: Model) -> None:
    """Raise ConfigError if a listener's upstream is not in the pipeline that is being saved, or not
    under the name that the config says, or not the last one before it if the config says ``*``: the
    pipeline could not be loaded, or would be loaded with another upstream.

    path: of the listener's component. spaCy writes the config beside it first. listener: ours, or a
    stock one.
    """
    link, config = link_of(listener), _config_beside(path)
    if config is None:
        return  # only this component is saved
    names = config["nlp"]["pipeline"]
    before = names[: names.index(path.name)]
    if link.component not in before:
        raise ConfigError(
            f"{path.name} listens to an upstream component, and the pipeline has none before it "
            f"(it is {', '.join(names)}): it could not be loaded. Add a 'luke' component, or give "
            f"{path.name} its own encoder by nlp.replace_listeners before the upstream is removed. "
            "What was written is no whole pipeline."
        )
    last = _last_upstream(config, path.name)
    if link.wanted == "*" and last not in ("", link.component):
        raise ConfigError(
            f"{path.name} listens to {link.component!r}, and when the pipeline is loaded, it would "
            f"listen to {last!r}, the last encoder before it. Name its encoder "
            "(model.encoder.upstream, or where its listener is, in "
            f"nlp.get_pipe_config({path.name!r})). What was written is no whole pipeline."
        )
    architecture = _LISTENER if is_listener(listener) else _STOCK_LISTENER
    names = set(_upstream_names(config["components"][path.name], architecture))
    wrong = names - {"*", link.component}
    if wrong:
        raise ConfigError(
            f"The upstream of {path.name} is {link.component!r} now, and its config says "
            f"{wrong.pop()!r}: it could not be loaded. Change model.encoder.upstream, or where its "
            "listener is, in "
            f"nlp.get_pipe_config({path.name!r}). What was written is no whole pipeline."
        )


def check_loaded_upstream(path: Path, link: UpstreamLink) -> None:
    """Raise ConfigError if a listener is loaded without the upstream that it was saved with, or one
    to any upstream (``*``) with another one.

    path: the listener's component, beside the config of the saved pipeline.
    """
    config = _config_beside(path)
    last = "" if config is None else _last_upstream(config, path.name)
    saved_with = last if link.wanted == "*" else link.wanted
    if config is not None and link.encoder is None and saved_with in config["nlp"]["pipeline"]:
        raise ConfigError(
            f"{path.name} listens to {saved_with!r}, which is not loaded. Load it, too (it may be "
            f"disabled), or exclude {path.name}."
        )
    if link.wanted == "*" and link.component and last not in ("", link.component):
        raise ConfigError(
            f"{path.name} listens to {last!r}, the last encoder before it, which is not loaded; "
            f"with that of {link.component!r} it would give other results. Load {last!r}, too (it "
            f"may be disabled), or exclude {path.name}."
        )


def check_listeners(path: Path, names: Iterable[str]) -> None:
    """Raise ConfigError if components that listen have other layers in the config of the pipeline
    that is being saved, as after ``nlp.replace_listeners`` has failed: spaCy changes the config
    first. The pipeline could not be loaded.

    path: of the component that they listen to. names: of the components.
    """
    config = _config_beside(path)
    blocks = {} if config is None else config["components"]
    for name in names:
        used = set(_architectures(blocks.get(name, {})))
        # Other architectures may make listeners, too.
        if "spacy-luke.LukeEncoder.v1" in used and _LISTENER not in used:
            raise ConfigError(
                f"{name} listens to {path.name}, and its config says otherwise: replacing its "
                "listeners failed. Load the pipeline again. What was written is no whole pipeline."
            )


def _last_upstream(config: Mapping, listener: str) -> str:
    """The last ``luke`` before a component, to which a listener to any upstream belongs; empty if
    there is none."""
    names = config["nlp"]["pipeline"]
    before = names[: names.index(listener)]
    found = [x for x in before if config["components"][x].get("factory") == "luke"]
    return str(found[-1]) if found else ""


def save_settings(
    path: Path, settings: Mapping[str, object], learned: Collection[str] = ()
) -> None:
    """Save each setting of a component once: in its block of the config beside it, which spaCy has
    written, or, if the block does not contain it, in the component's file ``cfg``.

    So ``cfg`` contains what is learned or tuned, such as labels, and, if a component is saved
    without a pipeline, all settings. A dictionary that differs from the config is there, too: names
    such as ``per:title`` cannot be keys of a config. And so is a setting in ``learned`` that
    does; a number or truth value in the config becomes null: a training with it, of other data,
    learns it again.
    """
    present = _config_beside(path)
    block = {} if present is None else present["components"][path.name]
    changed = {x: y for x, y in settings.items() if x in block and not _equal(block[x], y)}
    in_config = {
        name: value
        for name, value in changed.items()
        if not isinstance(value, dict) and name not in learned
    }
    own = {x: y for x, y in settings.items() if x not in block or x in changed.keys() - in_config}
    srsly.write_json(path / "cfg", own)
    # A dictionary stays: at loading, one can only be overridden where the config has a section.
    kept = (dict, type(None))
    in_config |= {x: None for x in changed if x in learned and not isinstance(block[x], kept)}
    if in_config:
        config = Config().from_disk(path.parent / CONFIG, interpolate=False)
        config["components"][path.name].update(in_config)
        with whole_file(path.parent / CONFIG) as temporary:
            config.to_disk(temporary)


def overridden_settings(path: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a component, before it is loaded, that differ from the config beside it: they
    were overridden at loading. They count more than those in ``cfg``, which contained all settings
    in earlier versions."""
    config = _config_beside(path)
    block = config["components"][path.name] if config is not None else {}
    own = read_object(path / "cfg") if (path / "cfg").exists() else {}
    overridden = {
        name: value
        for name, value in given.items()
        if name in block and not _equal(block[name], value)
    }
    for name, value in overridden.items():
        LOGGER.warning(
            "%s.%s is %r, as this pipeline's config says; it was saved with %r.",
            path.name,
            name,
            value,
            own.get(name, block[name]),
        )
    return overridden


def check_learned(path: Path, settings: Collection[str]) -> None:
    """Raise CheckpointError if the file ``cfg`` of a component is not an object, ConfigError if it
    is missing, or empty and :func:`save_settings` wrote something to it, such as labels: settings
    that the config beside it does not have."""
    file = path / "cfg"
    own = read_object(file) if file.exists() else {}
    if not file.exists() or not own and len(saved_settings(path, settings)) < len(settings):
        raise ConfigError(
            f"{file} is {'empty' if file.exists() else 'missing'}: it says what {path.name} has "
            "learned beside weights. The folder is not whole."
        )


def saved_settings(path: Path, names: Iterable[str]) -> dict[str, Any]:
    """Settings of a component in the config beside it, as :func:`save_settings` wrote them."""
    config = _config_beside(path)
    block = config["components"][path.name] if config is not None else {}
    return {name: block[name] for name in names if name in block}


def has_weights(model: Model) -> bool:
    """Whether a component was initialised, or loaded."""
    shims = [shim for node in model.walk() for shim in node.shims]
    return any(getattr(shim, "module", None) is not None for shim in shims)


def check_fixed_settings(path: Path, scorer: Any) -> None:
    """Raise ConfigError if settings of a loaded component's model that are part of what was learned
    (``fixed``) are not those of the config beside it: they were overridden at loading."""
    config = _config_beside(path)
    block = config["components"][path.name].get("model", {}) if config is not None else {}
    for name in scorer.fixed:
        now = getattr(scorer, name)
        saved = block.get(name, now)
        if not _equal(saved, now):
            raise ConfigError(
                f"{path.name}.model.{name} is {now!r}, and the component was initialised with "
                f"{saved!r}: this setting cannot be changed after nlp.initialize()."
            )


def _config_beside(path: Path) -> Config | None:
    """The interpolated config of the pipeline in whose folder a component is; None if the folder is
    not that of a pipeline with the component."""
    file = path.parent / CONFIG
    if not file.exists():
        return None
    config = Config().from_disk(file)
    return config if path.name in config.get("nlp", {}).get("pipeline", []) else None


def _equal(one: object, other: object) -> bool:
    """JSON may change the last bit of a number."""
    if isinstance(one, float) and isinstance(other, float):
        return isclose(one, other, rel_tol=1e-9)
    return one == other


def _architectures(block: Mapping) -> Iterator[str]:
    """The registered architectures that a block of a config uses."""
    if "@architectures" in block:
        yield block["@architectures"]
    for value in block.values():
        if isinstance(value, Mapping):
            yield from _architectures(value)


def _upstream_names(block: Mapping, architecture: str) -> Iterator[str]:
    """The upstreams that are named by the listeners of an architecture in a block of a config."""
    if block.get("@architectures") == architecture:
        yield block.get("upstream", "*")
    for value in block.values():
        if isinstance(value, Mapping):
            yield from _upstream_names(value, architecture)
