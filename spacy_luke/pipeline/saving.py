"""Components save their encoder in separate files, and only if the pipeline can be loaded."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from spacy.pipeline import TrainablePipe
from thinc.api import Config

from ..errors import ConfigError
from ..files import remove_folder
from ..layers.encoder import ENCODER, module_of, shim_of
from ..layers.encoder_files import FOLDER, apart


class SavesEncoderApart(TrainablePipe):
    """A component that saves its encoder in the folder ``encoder``, from which weights and
    vocabularies are mapped into memory. Serialised to bytes it is one piece, as all components."""

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Write the component to a directory. If it is a listener, an encoder from an earlier save
        is removed. If the pipeline that is saved there has a listener without an upstream, raises
        ConfigError before anything is written."""
        check_upstreams(Path(path))
        exclude = tuple(exclude)
        encoders = [node for node in self.model.walk() if node.name == ENCODER]
        for node in encoders:
            if shim_of(node).module is not None:
                module_of(node)  # applies settings that were overridden at loading
        folder = Path(path) / FOLDER
        with apart(folder):
            super().to_disk(path, exclude=exclude)
        if not encoders and "model" not in exclude:
            with suppress(FileNotFoundError):  # another process may save to the same place
                remove_folder(folder)

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> "SavesEncoderApart":
        """Read the component from a directory."""
        with apart(Path(path) / FOLDER):
            super().from_disk(path, exclude=exclude)
        return self


def check_upstreams(path: Path) -> None:
    """Raise ConfigError if a listener of a saved pipeline has no upstream in that pipeline, which
    then could not be loaded.

    path: of the component that is about to be saved. spaCy writes the config beside it first.
    """
    file = path.parent / "config.cfg"
    if not file.exists():
        return  # only this component is saved
    config = Config().from_disk(file, interpolate=False)
    names = config.get("nlp", {}).get("pipeline", [])
    if path.name not in names:
        return  # the config is of another pipeline
    upstreams: set[str] = set()
    for name in names:
        block = config["components"].get(name, {})
        available = upstreams | ({"*"} if upstreams else set())
        for missing in set(_upstream_names(block)) - available:
            raise ConfigError(
                f"{name} listens to an upstream component {missing!r}, and the pipeline has none "
                f"before it: it could not be loaded. Add a 'luke' component (the pipeline is "
                f"{', '.join(names)}), or give {name} its own encoder by nlp.replace_listeners "
                "before the upstream is removed. If the upstream was renamed, also change "
                f"model.encoder.upstream in nlp.get_pipe_config({name!r})."
            )
        if _architecture(block.get("model")) == "spacy-luke.LukeEncoder.v1":
            upstreams.add(name)


def _upstream_names(block: Mapping) -> Iterator[str]:
    """The upstreams that are named by the listeners in a block of a config."""
    if _architecture(block) == "spacy-luke.LukeListener.v1":
        yield block.get("upstream", "*")
    for value in block.values():
        if isinstance(value, Mapping):
            yield from _upstream_names(value)


def _architecture(block: object) -> object:
    return block.get("@architectures") if isinstance(block, Mapping) else None
