"""The encyclopedia's articles as entities, for ``spacy luke kb``.

An entity's id and name are the article's title, its description the article's first sentence, its
type the label of its mentions. Its aliases are the texts of these mentions, each with the number of
training articles that have it: the others are what the links are tested on. Redirects are aliases,
too.
"""

from collections import Counter
from pathlib import Path
from typing import Annotated
from xml.etree import ElementTree

import spacy
import srsly
import typer
from encyclopedia import BadAnnotations, read_articles
from wasabi import Printer

NAMESPACE = "{http://www.mediawiki.org/xml/export-0.11/}"


def main(
    annotations: Annotated[Path, typer.Argument(help="annotations.jsonl of the encyclopedia.")],
    dump: Annotated[Path, typer.Argument(help="encyclopedia.xml, for its redirects.")],
    out: Annotated[Path, typer.Argument(help="The file to write, JSON lines.")],
) -> None:
    """Write one line for each article."""
    msg = Printer()
    try:
        articles = [article for _, article in read_articles(annotations)]
        names = redirects(dump)
    except (BadAnnotations, OSError, ElementTree.ParseError) as err:
        msg.fail(str(err))
        raise typer.Exit(1) from None
    aliases = {article["title"]: Counter[str]() for article in articles}
    labels = {article["title"]: Counter[str]() for article in articles}
    for article in articles:
        names_here = set()
        for mention in article["mentions"]:
            title = mention["article"]
            if title is not None:
                labels[title][mention["type"]] += 1
                names_here.add((title, article["text"][mention["start"] : mention["end"]]))
        if article["split"] == "train":
            for title, name in names_here:
                aliases[title][name] += 1
    for name, title in names.items():
        if title in aliases:
            aliases[title].setdefault(name, 0)
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    out.parent.mkdir(parents=True, exist_ok=True)
    srsly.write_jsonl(
        out,
        (
            {
                "id": article["title"],
                "name": article["title"],
                "description": next(nlp(article["text"]).sents).text.strip(),
                "type": max(labels[article["title"]], key=labels[article["title"]].get, default=""),
                "aliases": {article["title"]: 0, **aliases[article["title"]]},
                "count": aliases[article["title"]].total(),
            }
            for article in articles
        ),
    )
    msg.good(f"Wrote {len(articles)} entities to {out}")


def redirects(dump: Path) -> dict[str, str]:
    """The titles of redirects -> those of their targets."""
    pages = ElementTree.parse(dump).getroot().iter(f"{NAMESPACE}page")
    targets = ((page, page.find(f"{NAMESPACE}redirect")) for page in pages)
    return {
        str(page.findtext(f"{NAMESPACE}title")): target.get("title", "")
        for page, target in targets
        if target is not None
    }


if __name__ == "__main__":
    typer.run(main)
