"""``spacy luke ...``: one file per command.

spaCy imports this module with every ``spacy`` command, so it must be light: commands import what
they need (above all torch) when they run.
"""

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer
from spacy.cli import app as spacy_app
from wasabi import Printer

from ..errors import LukeError

app = typer.Typer(name="luke", no_args_is_help=True)
spacy_app.add_typer(app, name="luke")


@app.callback()
def before_commands() -> None:
    """Commands of spacy-luke: import and export, convert corpora, tune, inspect, pretrain."""
    # Labels and titles of any script are printed, whatever the terminal can show.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


@contextmanager
def exit_on_error(msg: Printer, *others: type[Exception]) -> Iterator[None]:
    """Print an expected error as one message and exit with status 1."""
    expected: tuple[type[Exception], ...] = (LukeError, OSError, *others)
    try:
        yield
    except expected as err:
        msg.fail(str(err))
        raise typer.Exit(1) from None


from . import answer as _answer  # noqa: E402, F401  (registers its command on `app`)
from . import articles as _articles  # noqa: E402, F401
from . import asset as _asset  # noqa: E402, F401
from . import cloze_set as _cloze_set  # noqa: E402, F401
from . import convert as _convert  # noqa: E402, F401
from . import entities as _entities  # noqa: E402, F401
from . import entity_table as _entity_table  # noqa: E402, F401
from . import evaluate as _evaluate  # noqa: E402, F401
from . import export_checkpoint as _export_checkpoint  # noqa: E402, F401
from . import import_checkpoint as _import_checkpoint  # noqa: E402, F401
from . import kb as _kb  # noqa: E402, F401
from . import link_table as _link_table  # noqa: E402, F401
from . import names as _names  # noqa: E402, F401
from . import occurrences as _occurrences  # noqa: E402, F401
from . import page as _page  # noqa: E402, F401
from . import pretrain as _pretrain  # noqa: E402, F401
from . import shards as _shards  # noqa: E402, F401
from . import to_jsonl as _to_jsonl  # noqa: E402, F401
from . import tune as _tune  # noqa: E402, F401
