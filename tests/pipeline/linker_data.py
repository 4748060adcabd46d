"""A knowledge base in which names are ambiguous, annotated texts, and pipelines."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from thinc.api import fix_random_seed

from tests.kb.conftest import build

RECORDS = [
    {
        "id": "city",
        "name": "Tokyo",
        "aliases": {"Tokyo": 6, "Kyoto": 1},
        "description": "the capital of Japan",
        "type": "LOC",
    },
    {
        "id": "band",
        "name": "Tokyo (band)",
        "aliases": {"Tokyo": 4},
        "description": "a band that sang songs",
        "type": "ORG",
    },
    {"id": "ada", "name": "Ada Lovelace", "description": "was born in London", "type": "PER"},
    {"id": "kyoto", "name": "Kyoto", "aliases": {"Kyoto": 3}},
]
# Words, and mentions: first and last token, gold id ("" is not annotated).
TEXTS = [
    ("Tokyo is the capital of Japan .", [(0, 1, "city"), (5, 6, "")]),
    ("Tokyo sang their best songs .", [(0, 1, "band")]),
    ("Ada Lovelace was born in London .", [(0, 2, "ada"), (5, 6, "NIL")]),
    ("The University of Tokyo was founded .", [(3, 4, "city")]),
    ("She sang in Tokyo , and Tokyo sang .", [(3, 4, "city"), (6, 7, "band")]),
    ("Kyoto disagreed .", [(0, 1, "NIL")]),
]
Text = tuple[str, Sequence[tuple[int, int, str]]]


def make_doc(nlp: Language, text: Text, links: bool, label: str = "X") -> Doc:
    words, mentions = text
    doc = Doc(nlp.vocab, words=words.split(" "))
    spans = [Span(doc, a, b, label, kb_id=kb_id if links else "") for a, b, kb_id in mentions]
    doc.set_ents(spans)
    return doc


def make_docs(nlp: Language, texts: Sequence[Text] = TEXTS, label: str = "X") -> list[Doc]:
    """Documents with mentions that are not linked."""
    return [make_doc(nlp, text, False, label) for text in texts]


def linked(nlp: Language, texts: Sequence[Text] = TEXTS, **settings: Any) -> list[Doc]:
    return list(nlp.pipe(make_docs(nlp, texts), **settings))


def make_examples(nlp: Language, texts: Sequence[Text] = TEXTS) -> list[Example]:
    return [Example(make_doc(nlp, x, False), make_doc(nlp, x, True)) for x in texts]


def make_linker(
    encoder: Path | dict[str, Any],
    folder: Path,
    records: Sequence[dict[str, Any]] = RECORDS,
    model: dict[str, Any] | None = None,
    texts: Sequence[Text] = TEXTS,
    **config: Any,
) -> Language:
    """An initialised pipeline with an untrained linker. The knowledge base is written to a folder.
    It has no type biases by default.

    encoder: a checkpoint, or the config of an encoder block.
    """
    fix_random_seed(0)
    if not isinstance(encoder, dict):
        encoder = {"@architectures": "spacy-luke.LukeEncoder.v1", "name": str(encoder)}
    nlp = spacy.blank("en")
    if encoder["@architectures"] == "spacy-luke.LukeListener.v1":
        nlp.add_pipe("luke", config={"model": {"name": encoder.pop("name")}})
    build(folder, records)
    settings = {"model": {**(model or {}), "encoder": encoder}, "type_bias": {}, **config}
    nlp.add_pipe("luke_linker", config=settings)
    loader = {"@misc": "spacy-luke.KBFromFile.v1", "kb_path": str(folder)}
    nlp.config["initialize"]["components"] = {"luke_linker": {"kb_loader": loader}}
    nlp.initialize((lambda: make_examples(nlp, texts)) if texts else None)
    return nlp


def links(doc: Doc) -> list[str]:
    return [ent.kb_id_ for ent in doc.ents]
