"""Shared by the commands of pretraining: options of the engine, and printed counts."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from wasabi import Printer

if TYPE_CHECKING:
    from ..pretraining.manifest import Manifest

EngineOption = Annotated[
    str, typer.Option("--engine", help="local: processes of this machine; dask: Dask workers.")
]
OutputOption = Annotated[Path, typer.Option("--output", "-o", help="Folder of the stage.")]
WorkersOption = Annotated[int, typer.Option("--workers", "-w", help="Processes; 0: one per core.")]
SchedulerOption = Annotated[
    str | None,
    typer.Option("--scheduler", help="Address of a Dask scheduler; default: a local cluster."),
]
Progress = Annotated[bool, typer.Option(help="Show a progress bar.")]


@contextmanager
def pretraining_extra() -> Iterator[None]:
    """Wrap the imports of a command: print an error if a library is not installed."""
    try:
        yield
    except ModuleNotFoundError as err:
        if err.name is None or err.name.startswith("spacy_luke"):
            raise
        library = err.name.partition(".")[0]
        Printer().fail(f"{library} is not installed: pip install 'spacy-luke[pretraining]'.")
        raise typer.Exit(1) from None


def print_counts(manifest: "Manifest", msg: Printer) -> None:
    """Print what a stage kept and dropped."""
    rows = [(name, f"{count:,}") for name, count in manifest.counts.items()]
    msg.table(rows, header=(manifest.stage, "count"), divider=True, aligns=("l", "r"))
    settings = manifest.settings
    languages = settings.get("languages") or [x for x in (settings.get("language"),) if x]
    suffix = f", in {', '.join(languages)}" if languages else ""
    msg.good(f"{manifest.folder}: {len(manifest.parts)} part(s){suffix}")
