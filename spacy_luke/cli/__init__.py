"""``spacy luke ...``: one file a command.

spaCy imports this module at every ``spacy`` command, so it must stay light: commands import
what they need (torch above all) when they run.
"""

import typer
from spacy.cli import app as spacy_app

app = typer.Typer(
    name="luke",
    help="Commands of spacy-luke: import and export, convert corpora, tune, inspect, pretrain.",
    no_args_is_help=True,
)
spacy_app.add_typer(app, name="luke")

from . import articles as _articles  # noqa: E402, F401  (registers its command on `app`)
from . import asset as _asset  # noqa: E402, F401
from . import convert as _convert  # noqa: E402, F401
from . import entities as _entities  # noqa: E402, F401
from . import entity_table as _entity_table  # noqa: E402, F401
from . import evaluate as _evaluate  # noqa: E402, F401
from . import export_checkpoint as _export_checkpoint  # noqa: E402, F401
from . import import_checkpoint as _import_checkpoint  # noqa: E402, F401
from . import page as _page  # noqa: E402, F401
from . import pretrain as _pretrain  # noqa: E402, F401
from . import shards as _shards  # noqa: E402, F401
from . import tune_nil as _tune_nil  # noqa: E402, F401
