"""``spacy luke kb`` and ``spacy luke kb-edit``: build and change a knowledge base."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from spacy.util import registry
from wasabi import Printer

from ..errors import ConfigError
from ..files import beside
from ..kb.build import MAX_MEANINGS, build_kb
from ..kb.edit import edit_kb
from ..kb.entity import Entity, Findings
from ..kb.layout import META
from ..kb.read_records import read_entities, read_ids
from ..kb.store import Store, verify
from ..kb.tables import Tables
from . import app, exit_on_error
from .loading import Code, get_pipeline_directory, is_pipeline, load_pipeline, use_device
from .options import ForceOption, GpuOption, lang_option
from .saving import check_store, remove_scores
from .stages import pretraining_extra

_LANGUAGE = re.compile("[a-z]{2,3}")
_MAX_MEANINGS_HELP = (
    "Maximum number of entities that an alias means; the most frequent ones are kept."
)

PipelineOption = Annotated[
    str | None,
    typer.Option(
        "--pipeline",
        help="Make the vectors of entities with this pipeline's encoder: a directory, or an "
        "installed package.",
    ),
]
TextOption = Annotated[
    str, typer.Option("--text", help="Text of a vector: 'name', or 'description' (both).")
]
HalfOption = Annotated[bool, typer.Option("--half", help="Vectors in half precision.")]
NamesOption = Annotated[
    bool,
    typer.Option("--names", help="Also vectors of all names, to find names written differently."),
]


@app.command("kb")
def kb_cli(
    entities: Annotated[
        Path,
        typer.Argument(
            metavar="ENTITIES",
            help="JSON lines or CSV with id, name, and optionally aliases, description, type, "
            "count; or a folder of 'spacy luke articles'; or a saved InMemoryLookupKB.",
        ),
    ],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder of the knowledge base.")],
    lang: Annotated[str, lang_option("that of the articles, or none")] = "",
    max_meanings: Annotated[int, typer.Option(help=_MAX_MEANINGS_HELP)] = MAX_MEANINGS,
    pipeline: PipelineOption = None,
    text: TextOption = "description",
    half: HalfOption = False,
    names: NamesOption = False,
    code: Code = None,
    gpu_id: GpuOption = -1,
    force: ForceOption = False,
) -> None:
    """Build a knowledge base for links, to be mapped into memory. Reports what was left out.

    \b
    Example:
    python -m spacy luke kb products.csv kb --lang en --pipeline model-best
    """
    from ..kb.read_spacy import is_lookup_kb

    msg = Printer()
    with exit_on_error(msg):
        check_store(out, force)
        if lang and _LANGUAGE.fullmatch(lang) is None and lang not in registry.languages:
            raise ConfigError(
                f"--lang {lang!r} is not the code of a language, such as 'en' or 'de'."
            )
        if (entities / META).is_file():
            raise ConfigError(
                f"ENTITIES: {entities} is a knowledge base already. To change it, or to make its "
                "vectors, use 'spacy luke kb-edit'."
            )
        add_vectors = _vector_maker(pipeline, text, half, names, gpu_id, code)
        findings = Findings()
        if is_lookup_kb(entities):
            _from_lookup(entities, out, lang, max_meanings, findings)
        elif entities.is_dir():
            with pretraining_extra():
                from ..pretraining.linked_entities import language_of, read_articles
            source, lang = read_articles(entities, findings), lang or language_of(entities)
            build_kb(source, out, lang, max_meanings, findings)
        else:
            build_kb(read_entities(entities, findings), out, lang, max_meanings, findings)
        _report(findings, msg)
        add_vectors(out, msg)
    msg.good(f"Saved {out}")


@app.command("kb-edit")
def kb_edit_cli(
    kb: Annotated[
        str,
        typer.Argument(
            metavar="KB", help="The directory of a knowledge base, or of a pipeline with one."
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder of the result. Default: KB is changed."),
    ] = None,
    add: Annotated[
        Path | None,
        typer.Option(
            help="Entities to add (JSON lines or CSV). An existing id replaces its entity."
        ),
    ] = None,
    remove: Annotated[Path | None, typer.Option(help="Ids to remove, one per line.")] = None,
    max_meanings: Annotated[
        int | None,
        typer.Option(help=f"{_MAX_MEANINGS_HELP} Defaults to that of KB."),
    ] = None,
    pipeline: PipelineOption = None,
    text: TextOption = "description",
    half: HalfOption = False,
    names: NamesOption = False,
    code: Code = None,
    gpu_id: GpuOption = -1,
    force: ForceOption = False,
) -> None:
    """Add, change and remove entities of a knowledge base, without training. With --pipeline also
    make missing vectors or, if another encoder made them, all.

    \b
    Example:
    python -m spacy luke kb-edit model-best --add more.csv --remove ids.txt
    """
    msg = Printer()
    with exit_on_error(msg):
        if add is None and remove is None and pipeline is None:
            raise ConfigError("Nothing to change: use --add, --remove or --pipeline.")
        add_vectors = _vector_maker(pipeline, text, half, names, gpu_id, code)
        path = get_pipeline_directory(kb, in_place=True)
        folder = _kb_folder(path)
        if out is not None:
            check_store(out, force)
        verify(folder)
        findings = Findings()
        new: Iterator[Entity] = iter(()) if add is None else read_entities(add, findings)
        ids: Iterator[str] = iter(()) if remove is None else read_ids(remove)
        tables = Tables(Store.open(folder))
        edit_kb(tables, new, ids, out or folder, findings, max_meanings)
        _report(findings, msg)
        if out is None and is_pipeline(path):
            remove_scores(path)
        add_vectors(out or folder, msg)
    msg.good(f"Saved {out or folder}")


def _vector_maker(
    pipeline: str | None, text: str, half: bool, names: bool, gpu_id: int, code: Path | None
) -> Callable[[Path, Printer], None]:
    """A function that adds vectors to a knowledge base, in half precision also if it has such.
    Everything is checked before one is built."""
    if text not in ("name", "description"):
        raise ConfigError(f"--text is {text!r}; use 'name' or 'description'.")
    if pipeline is None:
        if half or names or text != "description":
            raise ConfigError("--text, --half and --names are about vectors: they need --pipeline.")
        return lambda folder, msg: None
    from ..kb.knowledge_base import MappedKB
    from ..pipeline.entity_vectors import find_encoder, make_name_vectors, make_vectors

    use_device(gpu_id)
    nlp = load_pipeline(pipeline, code=code)
    find_encoder(nlp)

    def make(folder: Path, msg: Printer) -> None:
        kb = MappedKB.open(folder, nlp.vocab)
        present = [x.dtype for x in (kb.tables.vectors, kb.tables.name_vectors) if x is not None]
        keeps_half = half or np.dtype(np.float16) in present
        n_made = make_vectors(nlp, kb, text, keeps_half)  # type: ignore[arg-type]
        msg.text(f"vectors made: {n_made:,} of {len(kb):,}")
        if names:
            n_made = make_name_vectors(nlp, kb, keeps_half)
            msg.text(f"vectors of names made: {n_made:,} of {len(kb.tables.keys):,}")
        kb.tables.store.save(folder, over=kb.tables.store)

    return make


def _from_lookup(path: Path, out: Path, lang: str, max_meanings: int, findings: Findings) -> None:
    """Priors and vectors are kept as they are. The weights that made the vectors are unknown."""
    from ..kb.layout import VECTORS
    from ..kb.read_spacy import read_lookup_kb

    out = out.resolve()
    entities, vectors = read_lookup_kb(path)
    out.parent.mkdir(parents=True, exist_ok=True)
    with beside(out) as temporary:
        build_kb(entities, temporary, lang, max_meanings, findings, priors=True)
        store = Store.open(temporary)
        if vectors.any():
            store = store.replaced(VECTORS, vectors, vectors_hash="")
        store.save(out)


def _kb_folder(path: Path) -> Path:
    """The folder itself, or that of the only knowledge base in a pipeline. Raises ConfigError."""
    if (path / META).is_file() or not is_pipeline(path):
        return path
    folders = sorted(x.parent for x in path.glob(f"*/kb/{META}"))
    if len(folders) != 1:
        names = ", ".join(map(str, folders)) or "none"
        raise ConfigError(
            f"KB: {path} is a pipeline, and one knowledge base is required in it; it has {names}."
        )
    return folders[0]


def _report(findings: Findings, msg: Printer) -> None:
    for line in findings.lines():
        msg.text(line)
