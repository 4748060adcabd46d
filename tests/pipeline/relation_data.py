"""Small documents with entities, relations and types."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from thinc.api import fix_random_seed

from tests.conftest import LANGUAGE

# words; entities (start, end, label, types); relations (head, tail, label) by entity number
SENTENCES: list[tuple[str, list[tuple], list[tuple]]] = [
    (
        "Ada Lovelace was born in London .",
        [(0, 2, "PER", ["/person", "/person/scientist"]), (5, 6, "LOC", ["/place"])],
        [(0, 1, "born_in")],
    ),
    (
        "Tokyo is the capital of Japan .",
        [(0, 1, "LOC", ["/place"]), (5, 6, "LOC", ["/place"])],
        [(0, 1, "located_in")],
    ),
    (
        "Japan has its capital in Tokyo .",
        [(0, 1, "LOC", ["/place"]), (5, 6, "LOC", ["/place"])],
        [(1, 0, "located_in")],
    ),
    (
        "France and Germany met Charles Babbage in Paris .",
        [
            (0, 1, "LOC", ["/place"]),
            (2, 3, "LOC", ["/place"]),
            (4, 6, "PER", ["/person", "/person/scientist"]),
            (7, 8, "LOC", ["/place"]),
        ],
        [(0, 1, "borders"), (3, 0, "located_in")],
    ),
    ("Kyoto disagreed with London .", [(0, 1, "LOC", []), (3, 4, "LOC", ["/place"])], []),
    ("She disagreed , of course !", [], []),
]


def annotate(doc: Doc, ents: list[tuple], relations: list[tuple] = (), types: bool = True) -> Doc:  # type: ignore[assignment]
    spans = [Span(doc, a, b, label=label) for a, b, label, _ in ents]
    doc.set_ents(spans, default="outside")
    if types:
        for span, (*_, names) in zip(spans, ents):
            span._.types = dict.fromkeys(names, 1.0)
    doc._.relations = [(spans[a], spans[b], label) for a, b, label in relations]
    return doc


def make_examples(nlp: Language, entities: bool = True) -> list[Example]:
    """entities: the predicted side has them too."""
    examples = []
    for text, ents, relations in SENTENCES:
        words = text.split(" ")
        predicted = Doc(nlp.vocab, words=words)
        if entities:
            annotate(predicted, ents, types=False)
        examples.append(Example(predicted, annotate(Doc(nlp.vocab, words=words), ents, relations)))
    return examples


def make_pipeline(
    factory: str, directory: Path, mode: str, encoder: dict | None = None, **config: Any
) -> Language:
    fix_random_seed(0)
    nlp = spacy.blank(LANGUAGE)
    model: dict[str, Any] = {"mode": mode}
    for key in ("view", "typed_markers", "max_mention_pieces"):
        if key in config:
            model[key] = config.pop(key)
    model["encoder"] = {
        "@architectures": "spacy-luke.LukeEncoder.v1",
        "name": str(directory),
        **(encoder or {}),
    }
    nlp.add_pipe(factory, config={"model": model, **config})
    return nlp


def found(nlp: Language, make: Callable = make_examples) -> list[list[tuple]]:
    """Relations by the texts of their sides."""
    docs = nlp.pipe([eg.predicted for eg in make(nlp)])
    return [[(r.head.text, r.tail.text, r.label) for r in doc._.relations] for doc in docs]


GOLD = [
    [("Ada Lovelace", "London", "born_in")],
    [("Tokyo", "Japan", "located_in")],
    [("Tokyo", "Japan", "located_in")],
    [("France", "Germany", "borders"), ("Paris", "France", "located_in")],
    [],
    [],
]
