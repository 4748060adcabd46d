"""Options that several commands have: one name, one letter, one meaning (docs/commands.md)."""

from typing import Annotated, Any

import typer

PipelineArgument = Annotated[
    str,
    typer.Argument(
        metavar="PIPELINE", help="A trained pipeline: a directory, or an installed package."
    ),
]
ForceOption = Annotated[
    bool, typer.Option("--force", "-F", help="Replace the output if it exists.")
]
GpuOption = Annotated[int, typer.Option("--gpu-id", "-g", help="GPU, or -1 for the CPU.")]


def lang_option(default: str) -> Any:
    """``--lang``. default: what the language is without the option, for the help."""
    return typer.Option(
        "--lang", "-l", help=f"Language code; xx: any. Default: {default}.", show_default=False
    )
