"""What cannot be predicted is counted over the documents that training will ask about."""

import pytest
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example

from tests.pipeline.relation_data import annotate, make_pipeline

WORDS = ["Tokyo", "is", "old", ".", "Japan", "is", "new", "."]
ONE_SENTENCE = {"@misc": "spacy-luke.relation_candidates.v1", "same_sentence": True}


@Language.component("only_tokyo", assigns=["doc.ents"])
def only_tokyo(doc: Doc) -> Doc:
    doc.ents = [Span(doc, token.i, token.i + 1, "LOC") for token in doc if token.text == "Tokyo"]
    return doc


@pytest.mark.parametrize("task, n_gold", [("luke_relation", 2), ("luke_entity_typing", 4)])
def test_entities_that_another_component_learns_are_taken_as_gold(bert_dir, task, n_gold):
    found = limits(bert_dir, task, ["only_tokyo", "luke_ner"])
    assert found == {"gold": n_gold}


def limits(bert_dir, task: str, annotating: list[str], variable: str = "") -> dict[str, int]:
    config = {"candidates": ONE_SENTENCE} if task == "luke_relation" else {}
    nlp = make_pipeline(task, bert_dir, "probe", **config)
    for name in reversed(annotating):
        encoder = {"name": str(bert_dir)}
        settings = {"model": {"encoder": encoder}} if name == "luke_ner" else {}
        nlp.add_pipe(name, first=True, config=settings)
    nlp.config["vars"] = {"annotating": annotating}
    nlp.config["training"]["annotating_components"] = variable or annotating
    # Sentences of the annotation alone are not seen in training.
    reference = Doc(nlp.vocab, words=WORDS, sent_starts=[True, *[False] * 6, True])
    annotate(
        reference, [(0, 1, "LOC", ["/place"]), (4, 5, "LOC", ["/place"])], [(0, 1, "located_in")]
    )
    # Something can always be predicted, or there would be nothing to learn.
    other = Doc(nlp.vocab, words=["Tokyo", "is", "in", "Tokyo"])
    annotate(other, [(i, i + 1, "LOC", ["/place"]) for i in (0, 3)], [(0, 1, "located_in")])
    docs = reference, other
    nlp.initialize(
        lambda: [Example(Doc(nlp.vocab, words=[t.text for t in doc]), doc) for doc in docs]
    )
    return {reason: n for reason, n in nlp.get_pipe(task).limits.items() if n}


@pytest.mark.parametrize(
    "task, annotating, expected",
    [
        ("luke_relation", [], {"gold": 2}),
        ("luke_relation", ["sentencizer"], {"gold": 2, "no candidate": 1}),
        ("luke_relation", ["sentencizer", "only_tokyo"], {"gold": 2, "no entity": 1}),
        ("luke_entity_typing", [], {"gold": 4}),
        ("luke_entity_typing", ["only_tokyo"], {"gold": 4, "no entity": 1}),
    ],
)
def test_limits_are_those_of_annotating_components(bert_dir, task, annotating, expected):
    assert limits(bert_dir, task, annotating) == expected


def test_annotating_components_may_be_a_variable(bert_dir):
    found = limits(bert_dir, "luke_relation", ["sentencizer"], "${vars.annotating}")
    assert found == {"gold": 2, "no candidate": 1}
