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

from ..corpora.lines import read_lines
from ..errors import ConfigError, CorpusError, LukeError
from ..vocab import editing
from ..vocab.entity_vocab import SPECIALS, EntityVocab
from . import app
from .loading import load_pipeline
from .saving import check_free, save_pipeline


@app.command("entity-table")
def entity_table_cli(
    pipeline: Annotated[Path, typer.Argument(metavar="PIPELINE", help="A trained pipeline.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Directory of the new pipeline.")],
    keep: Annotated[
        Path | None,
        typer.Option(
            help="Keep these entities alone: names, one a line, or the file of a vocabulary of as "
            "many languages."
        ),
    ] = None,
    lite: Annotated[bool, typer.Option("--lite", help="Keep the special entities alone.")] = False,
    source: Annotated[
        str | None,
        typer.Option("--from", help="First join the entities of this checkpoint or pipeline."),
    ] = None,
    anew: Annotated[
        bool, typer.Option("--anew", help="Draw all rows but the special ones anew.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Of rows that are drawn anew.")] = 0,
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

    --from makes a lite model full; --lite or --keep make it small; --anew re-initialises what is
    left; --add places entities of one's own by the masked-entity head. They are done in this order.
    """
    from ..layers.encoder import module_of
    from ..pipeline import entity_store as store
    from ..pipeline.model_card import refresh

    msg = Printer()
    try:
        check_free(out)
        nlp = load_pipeline(pipeline) if form is None else _in_form(pipeline, form, component)
        node = store.find_encoder(nlp, component)
        before = len(module_of(node).entities)
        titles = _titles_of(nlp, node)
        if source is not None:
            other = _checkpoint_of(source)
            vocab = editing.joined(other.entities, module_of(node).entities)
            store.replace_entities(node, vocab, other)
        if keep is not None:
            names = _names(keep, titles)
            kept = editing.keep_entities(module_of(node).entities, names, nlp.vocab.lang or None)
            if len(kept.missing) == len(names):
                raise ConfigError(f"{keep} names no entity of the vocabulary (--lite keeps none).")
            if kept.missing:
                msg.warn(
                    f"{len(kept.missing)} names of {keep} are not in the vocabulary, "
                    f"{kept.missing[0]!r} first."
                )
            store.replace_entities(node, kept.vocab)
        if lite:
            store.replace_entities(node, editing.lite(module_of(node).entities))
        if anew:
            store.reinitialize_entities(node, seed)
        if add is not None:
            mentions = list(_mentions(add, nlp, titles))
            known = len(module_of(node).entities)
            placed = store.add_entities(node, mentions, nlp.vocab.lang or None)
            n_new = len(module_of(node).entities) - known
            msg.info(f"Added {n_new} entities, replaced the rows of {len(placed) - n_new}")
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
    from ..pipeline.entity_store import find_encoder

    if (Path(source) / "meta.json").is_file():
        return to_checkpoint(module_of(find_encoder(load_pipeline(Path(source)))))
    return read_checkpoint(resolve(source), name=source)


def _titles_of(nlp: Language, node: Any) -> dict[str, str]:
    """What a ``kb_id_`` (a QID) that is not in the vocabulary is called there, by the component's
    table."""
    from ..layers.encoder import module_of

    vocab, language = module_of(node).entities, nlp.vocab.lang or None
    for _, pipe in nlp.pipeline:
        if getattr(pipe, "model", None) is node:
            titles = getattr(pipe, "cfg", {}).get("titles", {})
            return {x: title for x, title in titles.items() if vocab.find(x, language) is None}
    return {}


def _names(path: Path, titles: dict[str, str]) -> list[str]:
    if path.suffix in (".json", ".jsonl"):
        found = list(EntityVocab.from_file(path).names)
    else:
        found = [line.partition("\t")[0].strip() for _, line in read_lines(path)]
    names = [name for name in found if name and name not in SPECIALS]
    return [titles.get(name, name) for name in names]


def _mentions(path: Path, nlp: Language, titles: dict[str, str]) -> Iterator[Any]:
    from ..pipeline.entity_store import TitledMention

    if path.suffix == ".spacy":
        for doc in DocBin().from_disk(path).get_docs(nlp.vocab):
            for ent in doc.ents:
                if ent.kb_id_:
                    name = titles.get(ent.kb_id_, ent.kb_id_)
                    yield TitledMention(name, doc, ent.start, ent.end)
        return
    for number, entry in enumerate(srsly.read_jsonl(path), start=1):
        title = entry.get("title") if isinstance(entry, dict) else None
        text = entry.get("description") or title if title else None
        if not isinstance(title, str) or not isinstance(text, str):
            raise CorpusError(f'{path}, record {number}: expected {{"title", "description"}}.')
        yield TitledMention(title, *_written(title, text, nlp))


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


def _in_form(path: Path, form: str, component: str) -> Language:
    """The pipeline with another form of a component's entity table. Raises ConfigError for one
    unknown."""
    from ..layers.encoder import ENCODER, EntityTable
    from ..pipeline.entity_store import find_encoder

    forms = get_args(EntityTable)
    if form not in forms:
        raise ConfigError(f"--form is {form!r}; use one of {', '.join(forms)}.")
    nlp = load_pipeline(path)
    node = find_encoder(nlp, component)
    pipes: list[tuple[str, Any]] = [(x, y) for x, y in nlp.pipeline if hasattr(y, "model")]
    name, pipe = next((x, y) for x, y in pipes if any(z is node for z in y.model.walk()))
    place = "" if pipe.model.name == ENCODER else ".encoder"
    if place and "encoder" not in nlp.config["components"][name]["model"]:
        raise ConfigError(
            f"--form: {name} is no component of ours; set entity_table where its encoder is."
        )
    setting = f"components.{name}.model{place}.entity_table"
    return spacy.load(path, config={setting: form})
