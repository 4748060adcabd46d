"""The encyclopedia's annotations to ``.spacy`` files: one for each split, one document an article.

An entity's label is the mention's type, its ``kb_id_`` the title of the article it means (empty
where there is none). The article's title is under ``doc.user_data["title"]``.
"""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import spacy
import typer
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from wasabi import Printer

SPLITS = ("train", "dev", "test")
KEYS = ("title", "split", "text", "mentions")


class BadAnnotations(ValueError):
    """A line of the annotations cannot be used; the message names file, line and fault."""


def main(
    annotations: Annotated[Path, typer.Argument(help="annotations.jsonl of the encyclopedia.")],
    out_dir: Annotated[Path, typer.Argument(help="Directory of train, dev and test.spacy.")],
    lang: Annotated[str, typer.Option(help="Language code of the tokenizer.")] = "en",
) -> None:
    """Write train.spacy, dev.spacy and test.spacy by the annotations' own split."""
    msg = Printer()
    try:
        prepare(annotations, out_dir, lang, msg)
    except (BadAnnotations, OSError) as err:
        msg.fail(str(err))
        raise typer.Exit(1) from None


def prepare(annotations: Path, out_dir: Path, lang: str, msg: Printer) -> None:
    """Convert the annotations and print counts. Raises BadAnnotations or OSError."""
    nlp = spacy.blank(lang)
    nlp.add_pipe("sentencizer")
    bins = {split: DocBin(store_user_data=True) for split in SPLITS}
    counts = {split: Counter[str]() for split in SPLITS}
    cut = 0
    for where, article in read_articles(annotations):
        doc, n_cut = to_doc(nlp, article, where)
        bins[article["split"]].add(doc)
        counts[article["split"]].update(
            articles=1, sentences=len(list(doc.sents)), tokens=len(doc), entities=len(doc.ents)
        )
        cut += n_cut
    out_dir.mkdir(parents=True, exist_ok=True)
    for split, doc_bin in bins.items():
        doc_bin.to_disk(out_dir / f"{split}.spacy")
    columns = ("articles", "sentences", "tokens", "entities")
    rows = [(split, *(counts[split][column] for column in columns)) for split in SPLITS]
    msg.table(rows, header=("", *columns), aligns=("l", *"rrrr"))
    if cut:
        msg.warn(f"Mentions that begin or end inside a token, left out: {cut}")
    msg.good(f"Wrote {', '.join(f'{split}.spacy' for split in SPLITS)} to {out_dir}")


def read_articles(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(where, article) of each line, ``where`` for messages. Raises BadAnnotations."""
    if not path.is_file():
        raise BadAnnotations(f"{path} is not a file.")
    with path.open(encoding="utf8") as lines:
        for number, line in enumerate(lines, start=1):
            where = f"{path}, line {number}"
            try:
                article = json.loads(line)
            except json.JSONDecodeError as err:
                raise BadAnnotations(f"{where}: not JSON ({err}).") from err
            missing = [key for key in KEYS if key not in article]
            if missing:
                raise BadAnnotations(f"{where}: no {', '.join(missing)}.")
            if article["split"] not in SPLITS:
                raise BadAnnotations(
                    f"{where}: the split is {article['split']!r}, not {', '.join(SPLITS)}."
                )
            yield where, article


def to_doc(nlp: Language, article: dict[str, Any], where: str) -> tuple[Doc, int]:
    """An article as a document, and how many mentions do not fit its tokens."""
    doc = nlp(article["text"])
    doc.user_data["title"] = article["title"]
    spans = [
        doc.char_span(
            mention["start"],
            mention["end"],
            label=mention["type"],
            kb_id=mention["article"] or "",
        )
        for mention in article["mentions"]
    ]
    found = [span for span in spans if span is not None]
    try:
        doc.set_ents(found)
    except ValueError as err:
        raise BadAnnotations(f"{where}: mentions overlap ({err}).") from err
    return doc, len(spans) - len(found)


if __name__ == "__main__":
    typer.run(main)
