"""``spacy luke page``: an HTML page of documents with predicted and gold annotation."""

from pathlib import Path
from typing import Annotated

import typer
from wasabi import Printer

from ..errors import ConfigError
from ..files import whole_file
from . import app, exit_on_error
from .loading import Code, TypesFromLabels, load_pipeline, use_device
from .options import ForceOption, GpuOption
from .pages.documents import read_documents
from .pages.page import HtmlPage, make_page, page_as_it_is
from .pages.render import render
from .saving import check_file

_FORM = "[PIPELINE] DOCS OUT"


@app.command("page")
def page_cli(
    arguments: Annotated[
        list[str],
        typer.Argument(
            metavar=_FORM,
            help="A trained pipeline (a directory or an installed package; without one, .spacy "
            "documents are shown as they are), documents (.spacy, .jsonl with texts, .txt, or a "
            "directory of these), and the .html file to write.",
        ),
    ],
    limit: Annotated[
        int, typer.Option("--limit", "-n", help="Maximum documents shown; 0: all.")
    ] = 20,
    title: Annotated[str, typer.Option(help="Title of the page.")] = "Entities",
    lines: Annotated[
        bool, typer.Option("--lines", help="Every line of a .txt file is a document.")
    ] = False,
    types_from_labels: TypesFromLabels = False,
    code: Code = None,
    gpu_id: GpuOption = -1,
    force: ForceOption = False,
) -> None:
    """Write a page of documents with entities, their scores, and relations, types, links, and
    questions with their answers, if there are any.

    With PIPELINE, these are predicted, and compared with the annotation of the documents if they
    have any. Predictions are never compared with predictions: documents with scores count as not
    annotated. Without PIPELINE, documents are shown as they are.

    The page is one file without external resources. All documents are counted; --limit only limits
    those shown.

    \b
    Example:
    python -m spacy luke page model-best dev.spacy page.html --limit 50
    """
    msg = Printer()
    with exit_on_error(msg):
        pipeline, docs, target = _parse(arguments)
        check_file(target, force)
        if limit < 0:
            raise ConfigError(f"--limit is {limit}; use 0 (all) or more.")
        use_device(gpu_id)
        nlp = None if pipeline is None else load_pipeline(pipeline, code=code)
        documents = read_documents(docs, nlp, lines, types_from_labels)
        examples, source = documents.examples, docs.name
        if nlp is None:
            page = page_as_it_is([eg.reference for eg in examples], limit, title, source)
        else:
            page = make_page(nlp, examples, limit, title, source, documents.scored)
        target.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(target) as temporary:
            # Names of files may have bytes that are no characters.
            temporary.write_text(render(page), encoding="utf8", errors="replace")
    _report(page, target, msg)


def _parse(arguments: list[str]) -> tuple[str | None, Path, Path]:
    if not 2 <= len(arguments) <= 3:
        raise ConfigError(f"{len(arguments)} arguments; give {_FORM}.")
    *pipeline, docs, target = arguments
    if Path(target).suffix.lower() not in (".html", ".htm"):
        raise ConfigError(f"OUT is {target}, not an .html file. Give {_FORM}.")
    return (pipeline[0] if pipeline else None), Path(docs), Path(target)


def _report(page: HtmlPage, target: Path, msg: Printer) -> None:
    for layer in page.layers:
        msg.info(f"{layer.name.capitalize()}: {layer.status}")
    for note in page.notes:
        msg.warn(note)
    msg.good(f"Wrote {target}: {len(page.documents)} of {page.n_docs} documents")
