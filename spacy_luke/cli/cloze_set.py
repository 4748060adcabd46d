"""``spacy luke cloze-set``: queries with a gap, from the links of articles."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import srsly
import typer
from spacy.tokens import Doc, DocBin
from wasabi import Printer

from ..corpora.record import to_record
from ..errors import ConfigError, CorpusError
from ..files import whole_file
from ..pretraining.settings import ClozeSettings
from . import app, exit_on_error
from .options import ForceOption
from .saving import check_file
from .stages import pretraining_extra

SUFFIXES = (".json", ".spacy")
VERSION = "spacy-luke"


@app.command("cloze-set")
def cloze_set_cli(
    articles: Annotated[
        Path, typer.Argument(metavar="ARTICLES", help="A folder of 'spacy luke articles'.")
    ],
    out: Annotated[
        Path,
        typer.Argument(
            metavar="OUT",
            help="A .spacy file, or a .json file in the shape of ReCoRD. With --dev or --test, a "
            "folder of .spacy files.",
        ),
    ],
    limit: Annotated[
        int, typer.Option("--limit", "-n", help="Maximum queries, drawn by seed; 0: all.")
    ] = ClozeSettings.limit,
    max_words: Annotated[
        int, typer.Option(help="Maximum words of a passage.")
    ] = ClozeSettings.max_words,
    dev: Annotated[
        float, typer.Option(help="Share of the articles for development.")
    ] = ClozeSettings.dev,
    test: Annotated[float, typer.Option(help="Share of the articles for tests.")] = (
        ClozeSettings.test
    ),
    seed: Annotated[int, typer.Option(help="Seed of all that is drawn.")] = ClozeSettings.seed,
    json: Annotated[
        bool, typer.Option("--json", help="Write .json files to the folder of --dev and --test.")
    ] = False,
    force: ForceOption = False,
) -> None:
    """Make a cloze set of a wiki: a sentence with a hidden link, and a passage of the same article
    with another link to the same entity. The candidates are the links of the passage.

    The same articles and options give the same files.

    \b
    Example:
    python -m spacy luke cloze-set work/articles cloze --dev 0.1 --test 0.1 --limit 20000
    """
    msg = Printer()
    with exit_on_error(msg):
        settings = ClozeSettings(limit, max_words, dev, test, seed)
        is_split = bool(dev or test)
        if is_split and out.suffix in SUFFIXES:
            raise ConfigError(f"OUT: {out} must be a folder, because the articles are split.")
        if not is_split and out.suffix not in SUFFIXES:
            raise ConfigError(f"OUT: {out} must end in {' or '.join(SUFFIXES)}.")
        if json and not is_split:
            raise ConfigError("--json is for a folder; without a split, OUT ends in .json.")
        with pretraining_extra():
            from ..pretraining.cloze_sets import LINKED_AGAIN, LINKS, PARTS, make_cloze_set
            from ..pretraining.linked_entities import language_of
            from ..pretraining.shards import blank_language
        suffix = SUFFIXES[not json]
        paths = {part: out / f"{part}{suffix}" if is_split else out for part in PARTS}
        for path in paths.values():
            check_file(path, force)
        made = make_cloze_set(articles, blank_language(language_of(articles)), settings)
        parts = {part: docs for part, docs in made.parts.items() if docs}
        if not parts:
            raise CorpusError(
                f"{articles} has no link to an entity that another sentence of the article links: "
                "no query can be made."
            )
        for part, path in paths.items():
            if part in parts:
                write_set(parts[part], path)
            elif is_split and path.exists():
                # Of another split: its documents may be in the other parts now.
                path.unlink()
                msg.warn(f"{path} was removed: there is no document for it now.")
    rows = [(what, f"{n:,}") for what, n in made.counts.items()]
    msg.table(rows, header=("articles", "count"), divider=True, aligns=("l", "r"))
    share = made.counts[LINKED_AGAIN] / made.counts[LINKS]
    msg.info(f"{share:.1%} of the links are to an entity that another sentence links.")
    msg.good(f"{out}: " + ", ".join(f"{part} {len(docs):,}" for part, docs in parts.items()))


def write_set(docs: Sequence[Doc], path: Path) -> None:
    """Write documents with queries as ``.spacy``, or in the shape of ReCoRD as ``.json``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as temporary:
        if path.suffix == ".json":
            srsly.write_json(temporary, to_record(docs, VERSION))
        else:
            DocBin(docs=docs, store_user_data=True).to_disk(temporary)
