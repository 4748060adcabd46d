"""Queries with a gap about a short passage, their answers, and pipelines."""

import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example
from thinc.api import fix_random_seed

from spacy_luke.annotations.queries import get_completions
from tests.conftest import LANGUAGE

PASSAGE = "Ada lived in London . Tokyo is the capital of Japan . Ada met Babbage ."
ENTS = [(0, 1), (3, 4), (5, 6), (10, 11), (12, 13), (14, 15)]
ANSWERS = {
    "@placeholder lived there .": "Ada",
    "She was born in @placeholder .": "London",
    "The city of @placeholder is large .": "Tokyo",
    "They signed in @placeholder of course .": "Japan",
    "Charles @placeholder disagreed .": "Babbage",
}
FILLER = "She disagreed , of course ! "


def make(directory, factory="luke_cloze", **config):
    fix_random_seed(0)
    nlp = spacy.blank(LANGUAGE)
    encoder = {"@architectures": "spacy-luke.LukeEncoder.v1", "name": str(directory)}
    model = {"encoder": {**encoder, **config.pop("encoder", {})}, **config.pop("model", {})}
    nlp.add_pipe(factory, config={"model": model, **config})
    return nlp


def asked(nlp, *queries, text=PASSAGE, ents=ENTS) -> Doc:
    doc = Doc(nlp.vocab, words=text.split(" "))
    doc.ents = [Span(doc, a, b, "X") for a, b in ents]
    doc._.queries = queries
    return doc


def long_text(nlp, *queries, before=6, after=6):
    """Entities at both ends and in the middle of a text of several windows."""
    words = f"{'Ada met . '}{FILLER * before}{PASSAGE} {FILLER * after}Babbage left ."
    words = words.split(" ")
    names = {"Ada", "London", "Tokyo", "Japan", "Babbage"}
    places = [(i, i + 1) for i, word in enumerate(words) if word in names]
    return asked(nlp, *queries, text=" ".join(words), ents=places)


def answered(doc: Doc, *texts) -> Doc:
    gold = doc.copy()
    gold._.queries = [(x.text, x.candidates) for x in doc._.queries] or []
    right = [[(text, [e for e in gold.ents if e.text == text])] if text else [] for text in texts]
    gold._.completions = right
    return gold


def make_examples(nlp) -> list[Example]:
    doc = asked(nlp, *ANSWERS)
    return [Example(doc, answered(doc, *ANSWERS.values()))]


def best(doc: Doc) -> list[str | None]:
    return [x.best.text if x.best else None for x in get_completions(doc)]


def scores_of(doc: Doc) -> list[list[tuple[str, float]]]:
    return [[(x.text, x.score) for x in item.candidates] for item in get_completions(doc)]


def close(one: Doc, other: Doc) -> None:
    pairs = [[dict(x) for x in scores_of(doc)] for doc in (one, other)]
    for a, b in zip(*pairs, strict=True):
        assert a == pytest.approx(b, abs=1e-5)
