"""The encyclopedia's annotations to ``.spacy`` files: one for each split, one document an article.

An entity's label is the mention's type, its ``kb_id_`` the title of the article it means ("NIL" if
there is none), its types those of that article. ``Doc._.relations`` holds the article's
relations, ``Doc._.questions`` and ``Doc._.answers`` its questions with their answers. The article's
title is under ``doc.user_data["title"]``.
"""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import spacy
import typer
from spacy.language import Language
from spacy.pipeline import EntityLinker
from spacy.tokens import Doc, DocBin, Span
from wasabi import Printer

from spacy_luke.annotations.questions import Offsets, set_answer_offsets, set_questions
from spacy_luke.annotations.relations import set_relations
from spacy_luke.annotations.types import set_types

SPLITS = ("train", "dev", "test")
KEYS = ("title", "split", "types", "text", "mentions", "relations", "questions")
COLUMNS = ("articles", "sentences", "tokens", "entities", "typed", "relations", "questions")


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
    articles = list(read_articles(annotations))
    types = {article["title"]: article["types"] for _, article in articles}
    for where, article in articles:
        doc, found = to_doc(nlp, article, types, where)
        bins[article["split"]].add(doc)
        counts[article["split"]].update(found)
    out_dir.mkdir(parents=True, exist_ok=True)
    for split, doc_bin in bins.items():
        doc_bin.to_disk(out_dir / f"{split}.spacy")
    rows = [(split, *(counts[split][column] for column in COLUMNS)) for split in SPLITS]
    msg.table(rows, header=("", *COLUMNS), aligns=("l", *"r" * len(COLUMNS)))
    total = sum(counts.values(), Counter[str]())
    if total["cut"]:
        msg.warn(f"Mentions that begin or end inside a token, left out: {total['cut']}")
    if total["cut relations"]:
        msg.warn(f"Relations of these mentions, left out with them: {total['cut relations']}")
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


def to_doc(
    nlp: Language, article: dict[str, Any], types: dict[str, list[str]], where: str
) -> tuple[Doc, Counter[str]]:
    """An article as a document, and counts: of COLUMNS, and of what does not fit its tokens.

    types: those of every article, by title.
    """
    doc = nlp(article["text"])
    doc.user_data["title"] = article["title"]
    spans: dict[int, Span | None] = {
        mention["id"]: doc.char_span(
            mention["start"],
            mention["end"],
            label=mention["type"],
            kb_id=mention["article"] or EntityLinker.NIL,
        )
        for mention in article["mentions"]
    }
    found = [span for span in spans.values() if span is not None]
    try:
        doc.set_ents(found)
    except ValueError as err:
        raise BadAnnotations(f"{where}: mentions overlap ({err}).") from err
    typed = [span for span in found if span.kb_id_ in types]
    for span in typed:
        set_types(span, dict.fromkeys(types[span.kb_id_], 1.0))
    relations = read_relations(article, spans, where)
    set_relations(doc, relations)
    answers = [read_answers(question, article["text"], where) for question in article["questions"]]
    set_questions(doc, [question["question"] for question in article["questions"]])
    set_answer_offsets(doc, answers)
    counts = Counter(
        {
            "articles": 1,
            "sentences": len(list(doc.sents)),
            "tokens": len(doc),
            "entities": len(doc.ents),
            "typed": len(typed),
            "relations": len(relations),
            "questions": len(answers),
            "cut": len(spans) - len(found),
            "cut relations": len(article["relations"]) - len(relations),
        }
    )
    return doc, counts


def read_relations(
    article: dict[str, Any], spans: dict[int, Span | None], where: str
) -> list[tuple[Span, Span, str]]:
    """Head, tail and label of each relation between spans that fit. Raises BadAnnotations."""
    found = []
    for relation in article["relations"]:
        absent = [relation[side] for side in ("head", "tail") if relation[side] not in spans]
        if absent:
            raise BadAnnotations(f"{where}: a relation of mention {absent[0]}, which is not there.")
        head, tail = spans[relation["head"]], spans[relation["tail"]]
        if head is not None and tail is not None:
            found.append((head, tail, relation["label"]))
    return found


def read_answers(question: dict[str, Any], text: str, where: str) -> Offsets:
    """The answers to a question by characters. Raises BadAnnotations if one is not in the text."""
    places = []
    for answer in question["answers"]:
        start, end = answer["start"], answer["start"] + len(answer["text"])
        if not answer["text"] or text[start:end] != answer["text"]:
            raise BadAnnotations(
                f"{where}: the answer {answer['text']!r} to {question['question']!r} is not at "
                f"character {start}."
            )
        places.append((start, end, 1.0))
    return Offsets(places, float(not places))


if __name__ == "__main__":
    typer.run(main)
