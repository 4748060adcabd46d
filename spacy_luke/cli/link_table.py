"""``spacy luke link-table``: link probabilities of texts, to find mentions in documents."""

from pathlib import Path
from typing import Annotated

import typer
from wasabi import Printer

from ..kb.link_table import LINKS
from ..pretraining.settings import LinkTableSettings
from . import app, exit_on_error
from .options import ForceOption, lang_option
from .saving import check_store
from .stages import pretraining_extra


@app.command("link-table")
def link_table_cli(
    occurrences: Annotated[
        Path, typer.Argument(metavar="OCCURRENCES", help="Folder of 'spacy luke occurrences'.")
    ],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder of the table.")],
    lang: Annotated[
        str, lang_option("that of OCCURRENCES; required if it has several languages")
    ] = "",
    min_probability: Annotated[
        float, typer.Option(help="Minimum link probability: times linked / times occurring.")
    ] = LinkTableSettings.min_probability,
    min_count: Annotated[
        int,
        typer.Option(
            help="Minimum links of a text to a title. Titles linked less often are ignored."
        ),
    ] = LinkTableSettings.min_count,
    min_share: Annotated[
        float,
        typer.Option(
            help="Minimum share of a text's most frequent title. 1: drop texts linked to several "
            "titles, as published."
        ),
    ] = LinkTableSettings.min_share,
    force: ForceOption = False,
) -> None:
    """Make a table of link probabilities, to be mapped into memory. Reports what was left out.

    A pipeline uses it as spacy-luke.linked_mentions.v1.

    \b
    Example:
    python -m spacy luke link-table work/occurrences links --min-probability 0.05
    """
    with pretraining_extra():
        from ..pretraining.link_probabilities import build_link_table
        from ..pretraining.manifest import read_manifest
        from ..pretraining.occurrences import STAGE

    msg = Printer()
    with exit_on_error(msg):
        check_store(out, force, LINKS)
        settings = LinkTableSettings(min_probability, min_count, min_share)
        counts = build_link_table(read_manifest(occurrences, STAGE), out, settings, lang)
        rows = [(name, f"{count:,}") for name, count in counts.items()]
        msg.table(rows, header=("link table", "count"), divider=True, aligns=("l", "r"))
        if not counts["texts kept"]:
            msg.warn("No text was kept: no mention will be found.")
    msg.good(f"Saved {out}")
