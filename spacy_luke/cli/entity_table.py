"""``spacy luke entity-table``: prune, extend or exchange the entities of a pipeline's encoder."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, get_args

import spacy
import srsly
import typer
from spacy.language import Language
from spacy.tokens import DocBin
from wasabi import Printer

from ..errors import ConfigError, CorpusError, LukeError
from . import app
from .loading import load_pipeline
from .saving import check_free, save_pipeline


@app.command("entity-table")
def entity_table_cli(
    pipeline: Annotated[Path, typer.Argument(metavar="PIPELINE", help="A trained pipeline.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Directory of the new pipeline.")],
    keep: Annotated[
        Path | None, typer.Option(help="Keep these entities alone: names, one a line.")
    ] = None,
    lite: Annotated[bool, typer.Option("--lite", help="Keep the special entities alone.")] = False,
    source: Annotated[
        str | None,
        typer.Option("--from", help="First join the entities of this checkpoint or pipeline."),
    ] = None,
    add: Annotated[
        Path | None,
        typer.Option(
            help="Add entities: documents whose entities have a kb_id (.spacy), or JSON lines of "
            '{"title", "description"}, the description being optional.'
        ),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(help="How the table is kept: trained, stored, or half (see LukeEncoder)."),
    ] = None,
    component: Annotated[
        str, typer.Option(help="The component, where several have an encoder.")
    ] = "",
) -> None:
    """Change which entities an encoder knows. Rows that are kept are kept exactly.

    --from makes a lite model full; --lite or --keep make it small; --add places entities of one's
    own by the masked-entity head. They are done in this order.
    """
    from ..layers.encoder import module_of
    from ..pipeline import entity_store as store
    from ..pipeline.card import refresh

    msg = Printer()
    try:
        check_free(out)
        nlp = load_pipeline(pipeline) if form is None else _in_form(pipeline, form)
        node = store.encoder_of(nlp, component)
        before = len(module_of(node).entities)
        if source is not None:
            other = _checkpoint_of(source)
            vocab = store.joined(other.entities, module_of(node).entities)
            store.set_entities(node, vocab, other)
        if keep is not None:
            kept = store.keep_entities(
                module_of(node).entities, _names(keep), nlp.vocab.lang or None
            )
            if kept.missing:
                msg.warn(
                    f"{len(kept.missing)} names of {keep} are not in the vocabulary, "
                    f"{kept.missing[0]!r} first."
                )
            store.set_entities(node, kept.vocab)
        if lite:
            store.set_entities(node, store.lite(module_of(node).entities))
        if add is not None:
            titles = store.add_entities(node, list(_mentions(add, nlp)), nlp.vocab.lang or None)
            msg.info(f"Added {len(titles)} entities")
        refresh(nlp)
        save_pipeline(nlp, out)
        after = len(module_of(node).entities)
    except (LukeError, OSError, ValueError) as err:
        msg.fail(str(err))
        raise typer.Exit(1) from None
    msg.good(f"Saved {out}: {after} entities (before: {before})")


def _checkpoint_of(source: str) -> Any:
    """A published checkpoint, or the only encoder of a pipeline."""
    from ..checkpoint.hub import resolve
    from ..checkpoint.read import read_checkpoint
    from ..layers.encoder import module_of, to_checkpoint
    from ..pipeline.entity_store import encoder_of

    if (Path(source) / "meta.json").is_file():
        return to_checkpoint(module_of(encoder_of(load_pipeline(Path(source)))))
    return read_checkpoint(resolve(source), name=source)


def _names(path: Path) -> list[str]:
    try:
        return [line for line in path.read_text(encoding="utf8").split("\n") if line.strip()]
    except UnicodeDecodeError as err:
        raise CorpusError(f"{path} is no text in UTF-8: {err}.") from err


def _mentions(path: Path, nlp: Language) -> Iterator[Any]:
    from ..pipeline.entity_store import Mention

    if path.suffix == ".spacy":
        for doc in DocBin().from_disk(path).get_docs(nlp.vocab):
            yield from (Mention(x.kb_id_, doc, x.start, x.end) for x in doc.ents if x.kb_id_)
        return
    for number, entry in enumerate(srsly.read_jsonl(path), start=1):
        title = entry.get("title") if isinstance(entry, dict) else None
        text = entry.get("description") or title if title else None
        if not isinstance(title, str) or not isinstance(text, str):
            raise CorpusError(f'{path}, record {number}: expected {{"title", "description"}}.')
        yield Mention(title, *_written(title, text, nlp))


def _written(title: str, text: str, nlp: Language) -> tuple[Any, int, int]:
    """The description as a document, and where it first names the entity; a description that does
    not is put behind the name."""
    doc = nlp.make_doc(text)
    found = re.search(rf"(?<!\w){re.escape(title)}(?!\w)", text, re.IGNORECASE)
    span = doc.char_span(*found.span(), alignment_mode="expand") if found else None
    if span is None:
        doc = nlp.make_doc(f"{title}: {text}")
        span = doc.char_span(0, len(title), alignment_mode="expand")
    assert span is not None  # characters of the document
    return doc, span.start, span.end


def _in_form(path: Path, form: str) -> Language:
    """The pipeline with another form of entity table. Raises ConfigError for one unknown."""
    from ..layers.encoder import ENCODER, EntityTable

    forms = get_args(EntityTable)
    if form not in forms:
        raise ConfigError(f"--form is {form!r}; use one of {', '.join(forms)}.")
    nlp = load_pipeline(path)
    overrides = {}
    for name, pipe in nlp.pipeline:
        model: Any = getattr(pipe, "model", None)
        if not hasattr(model, "walk") or all(node.name != ENCODER for node in model.walk()):
            continue
        place = "" if model.name == ENCODER else ".encoder"
        if place and "encoder" not in nlp.config["components"][name]["model"]:
            raise ConfigError(
                f"--form: {name} is no component of ours; set entity_table where its encoder is."
            )
        overrides[f"components.{name}.model{place}.entity_table"] = form
    return spacy.load(path, config=overrides)
