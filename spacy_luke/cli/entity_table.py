"""``spacy luke entity-table``: prune, extend or replace the entities of a pipeline's encoder."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, get_args

import typer
from spacy.language import Language
from spacy.tokens import DocBin
from spacy.util import is_package
from wasabi import Printer

from ..annotations.mentions import UNLINKED
from ..corpora.lines import read_lines
from ..errors import ConfigError, CorpusError
from ..kb.read_records import read_records
from ..vocab import editing
from ..vocab.entity_vocab import SPECIALS, EntityVocab
from . import app, exit_on_error
from .loading import Code, is_pipeline, load_pipeline
from .options import ForceOption, PipelineArgument
from .saving import check_free, save_pipeline


@app.command("entity-table")
def entity_table_cli(
    pipeline: PipelineArgument,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Directory of the new pipeline.")],
    keep: Annotated[
        Path | None,
        typer.Option(
            help="Keep only these entities: a file of names, one per line, or of a vocabulary with "
            "as many languages."
        ),
    ] = None,
    lite: Annotated[bool, typer.Option("--lite", help="Keep only the special entities.")] = False,
    source: Annotated[
        str | None,
        typer.Option("--from", help="First add the entities of this checkpoint or pipeline."),
    ] = None,
    anew: Annotated[
        bool, typer.Option("--anew", help="Re-initialise all rows except the special ones.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed of re-initialised rows.")] = 0,
    add: Annotated[
        Path | None,
        typer.Option(
            help="Add entities: documents whose entities have a kb_id (.spacy), or JSON lines or "
            "CSV with title and, optionally, description."
        ),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(help="Form of the table: trained, stored, or half (see LukeEncoder)."),
    ] = None,
    component: Annotated[
        str, typer.Option(help="The component. Required if several have an encoder.")
    ] = "",
    code: Code = None,
    force: ForceOption = False,
) -> None:
    """Change the entities of an encoder. Kept rows stay exactly the same.

    The options are applied in this order: --from adds entities; --keep or --lite remove entities;
    --anew re-initialises the rest; --add adds your own entities, with rows computed by the
    masked-entity head.

    \b
    Example:
    python -m spacy luke entity-table pipelines/luke pipelines/small --keep titles.txt
    """
    from ..layers.encoder import module_of
    from ..pipeline import entity_store as store
    from ..pipeline.model_card import refresh

    msg = Printer()
    with exit_on_error(msg, ValueError):
        check_free(out, force)
        nlp = load_pipeline(pipeline, code=code)
        if form is not None:
            nlp = _in_form(pipeline, nlp, form, component)
        node = store.find_encoder(nlp, component)
        n_before = len(module_of(node).entities)
        titles = _titles_of(nlp, node)
        if source is not None:
            other = _checkpoint_of(source)
            vocab = editing.joined(other.entities, module_of(node).entities)
            store.replace_entities(node, vocab, other)
        if keep is not None:
            names = _names(keep, titles)
            kept = editing.keep_entities(module_of(node).entities, names, nlp.vocab.lang or None)
            if len(kept.missing) == len(names):
                raise ConfigError(f"{keep} names no entity of the vocabulary (see also --lite).")
            if kept.missing:
                msg.warn(
                    f"{len(kept.missing)} names of {keep} are not in the vocabulary, "
                    f"for example {kept.missing[0]!r}."
                )
            store.replace_entities(node, kept.vocab)
        if lite:
            store.replace_entities(node, editing.lite(module_of(node).entities))
        if anew:
            store.reinitialize_entities(node, seed)
        if add is not None:
            mentions = list(_mentions(add, nlp, titles))
            n_known = len(module_of(node).entities)
            placed = store.add_entities(node, mentions, nlp.vocab.lang or None)
            n_new = len(module_of(node).entities) - n_known
            msg.info(f"Added {n_new} entities, replaced the rows of {len(placed) - n_new}")
        nlp.meta["performance"] = {}  # that of other entities
        refresh(nlp)
        save_pipeline(nlp, out, force)
        n_after = len(module_of(node).entities)
    msg.good(f"Saved {out}: {n_after} entities (before: {n_before})")


def _checkpoint_of(source: str) -> Any:
    """A published checkpoint, or the only encoder of a pipeline."""
    from ..checkpoint.hub import resolve
    from ..checkpoint.read import read_checkpoint
    from ..layers.encoder import module_of, to_checkpoint
    from ..pipeline.entity_store import find_encoder

    if is_package(source) or is_pipeline(Path(source)):
        return to_checkpoint(module_of(find_encoder(load_pipeline(source))))
    return read_checkpoint(resolve(source), name=source)


def _titles_of(nlp: Language, node: Any) -> dict[str, str]:
    """``kb_id_`` (a QID) that is not in the vocabulary -> title, from the component's settings."""
    from ..layers.encoder import module_of

    vocab, language = module_of(node).entities, nlp.vocab.lang or None
    for _, pipe in nlp.components:
        if getattr(pipe, "model", None) is node:
            titles = getattr(pipe, "cfg", {}).get("titles", {})
            return {x: title for x, title in titles.items() if vocab.find(x, language) is None}
    return {}


def _names(path: Path, titles: dict[str, str]) -> list[str]:
    if path.suffix in (".json", ".jsonl"):
        names = list(EntityVocab.from_file(path).names)
    else:
        names = [line.partition("\t")[0].strip() for _, line in read_lines(path)]
    return [titles.get(name, name) for name in names if name and name not in SPECIALS]


def _mentions(path: Path, nlp: Language, titles: dict[str, str]) -> Iterator[Any]:
    from ..pipeline.entity_store import TitledMention

    if path.suffix == ".spacy":
        for doc in DocBin().from_disk(path).get_docs(nlp.vocab):
            for ent in doc.ents:
                if ent.kb_id_ not in UNLINKED:
                    name = titles.get(ent.kb_id_, ent.kb_id_)
                    yield TitledMention(name, doc, ent.start, ent.end)
        return
    for where, entry in read_records(path, ("title",), ("description",)):
        title = entry.get("title")
        text = entry.get("description") or title
        if not title or not isinstance(title, str) or not isinstance(text, str):
            raise CorpusError(f"{where}: a title is required; it and the description are texts.")
        yield TitledMention(title, *_first_mention(title, text, nlp))


def _first_mention(title: str, text: str, nlp: Language) -> tuple[Any, int, int]:
    """The description as a document, and the tokens of its first mention of the entity. If there is
    none, the title is prepended."""
    doc = nlp.make_doc(text)
    match = re.search(rf"(?<!\w){re.escape(title)}(?!\w)", text, re.IGNORECASE)
    span = doc.char_span(*match.span(), alignment_mode="expand") if match else None
    if span is None:
        doc = nlp.make_doc(f"{title}: {text}")
        span = doc.char_span(0, len(title), alignment_mode="expand")
    assert span is not None  # the offsets are within the document
    return doc, span.start, span.end


def _in_form(pipeline: str, nlp: Language, form: str, component: str) -> Language:
    """Load the pipeline again with another form of a component's entity table.

    nlp: the pipeline in its own form. Raises ConfigError if the form is unknown."""
    from ..layers.encoder import ENCODER, EntityTable
    from ..pipeline.entity_store import find_encoder

    forms = get_args(EntityTable)
    if form not in forms:
        raise ConfigError(f"--form is {form!r}; use one of {', '.join(forms)}.")
    node = find_encoder(nlp, component)
    pipes: list[tuple[str, Any]] = [(x, y) for x, y in nlp.components if hasattr(y, "model")]
    name, pipe = next((x, y) for x, y in pipes if any(z is node for z in y.model.walk()))
    layer = "" if pipe.model.name == ENCODER else ".encoder"
    if layer and "encoder" not in nlp.config["components"][name]["model"]:
        raise ConfigError(
            f"--form: {name} is not a component of spacy-luke; set entity_table in the config of "
            "its encoder."
        )
    setting = f"components.{name}.model{layer}.entity_table"
    return load_pipeline(pipeline, {setting: form})
