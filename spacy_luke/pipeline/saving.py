"""Components keep their encoder in files of its own, and are saved only if they can be loaded."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from spacy.pipeline import TrainablePipe
from thinc.api import Config

from ..errors import ConfigError
from ..files import remove_folder
from ..layers.encoder import ENCODER, module_of, shim_of
from ..layers.encoder_files import FOLDER, apart


class KeepsEncoderApart(TrainablePipe):
    """A component that, on disk, has its encoder in the folder ``encoder``: weights and
    vocabularies are mapped into memory from there. As bytes it is in one piece, as all components
    are."""

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Write the component to a directory. If it listens to another one, an encoder that an
        earlier save left there is removed. Raises ConfigError, before it writes, if its pipeline is
        saved there and has a listener without an upstream."""
        check_upstreams(Path(path))
        exclude = tuple(exclude)
        encoders = [node for node in self.model.walk() if node.name == ENCODER]
        for node in encoders:
            if shim_of(node).module is not None:
                module_of(node)  # settings that were changed at loading take effect
        folder = Path(path) / FOLDER
        with apart(folder):
            super().to_disk(path, exclude=exclude)
        if not encoders and "model" not in exclude:
            with suppress(FileNotFoundError):  # another process may save to the same place
                remove_folder(folder)

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> "KeepsEncoderApart":
        """Read the component from a directory."""
        with apart(Path(path) / FOLDER):
            super().from_disk(path, exclude=exclude)
        return self


def check_upstreams(path: Path) -> None:
    """Raise ConfigError if a listener of a saved pipeline has no upstream in it: it could not be
    loaded. path: of the component that is about to be saved; spaCy has written the config beside
    it by then."""
    file = path.parent / "config.cfg"
    if not file.exists():
        return  # a component alone
    config = Config().from_disk(file, interpolate=False)
    names = config.get("nlp", {}).get("pipeline", [])
    if path.name not in names:
        return  # the config of something else
    upstreams: set[str] = set()
    for name in names:
        block = config["components"].get(name, {})
        for wanted in set(_wanted(block)) - upstreams - ({"*"} if upstreams else set()):
            raise ConfigError(
                f"{name} listens to an upstream component {wanted!r}, and the pipeline has none "
                f"before it: it could not be loaded. Add a 'luke' component (the pipeline is "
                f"{', '.join(names)}), or give {name} an encoder of its own by "
                "nlp.replace_listeners before the upstream is removed. If the upstream was "
                f"renamed, change model.encoder.upstream in nlp.get_pipe_config({name!r}) too."
            )
        if _architecture(block.get("model")) == "spacy-luke.LukeEncoder.v1":
            upstreams.add(name)


def _wanted(block: Mapping) -> Iterator[str]:
    """The upstreams that the listeners in a block of a config name."""
    if _architecture(block) == "spacy-luke.LukeListener.v1":
        yield block.get("upstream", "*")
    for value in block.values():
        if isinstance(value, Mapping):
            yield from _wanted(value)


def _architecture(block: object) -> object:
    return block.get("@architectures") if isinstance(block, Mapping) else None
