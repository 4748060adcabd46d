"""Components keep their encoder in files of its own."""

from collections.abc import Iterable
from pathlib import Path

from spacy.pipeline import TrainablePipe

from ..layers.encoder import ENCODER, module_of, shim_of
from ..layers.encoder_files import FOLDER, apart


class KeepsEncoderApart(TrainablePipe):
    """A component that, on disk, has its encoder in the folder ``encoder``: weights and
    vocabularies are mapped into memory from there. As bytes it is in one piece, as all components
    are."""

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Write the component to a directory."""
        for node in self.model.walk():
            if node.name == ENCODER and shim_of(node).module is not None:
                module_of(node)  # settings that were changed at loading take effect
        with apart(Path(path) / FOLDER):
            super().to_disk(path, exclude=exclude)

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> "KeepsEncoderApart":
        """Read the component from a directory."""
        with apart(Path(path) / FOLDER):
            super().from_disk(path, exclude=exclude)
        return self
