"""Relation and typing logits equal those of ``transformers``: markers, positions and heads."""

import numpy as np
import pytest
import torch
from spacy.tokens import Doc, Span

from spacy_luke.errors import CheckpointError
from tests.pipeline.relation_data import SENTENCES, annotate, make_pipeline

transformers = pytest.importorskip("transformers")

SETTINGS = [
    {},
    {"use_entity_aware_attention": False},
]


def reference_of(directory, model: str, task: str):
    tokenizer = transformers.LukeTokenizer(
        str(directory / "vocab.json"),
        str(directory / "merges.txt"),
        str(directory / "entity_vocab.json"),
        task=task,
        max_mention_length=60,
    )
    return tokenizer, getattr(transformers, model).from_pretrained(directory).eval()


def documents(nlp) -> list[Doc]:
    docs = []
    for text, ents, _ in SENTENCES:
        if ents:
            docs.append(annotate(Doc(nlp.vocab, words=text.split(" ")), ents, types=False))
    doc = Doc(nlp.vocab, words=["London", ",", "Tokyo"], spaces=[False, True, False])
    doc.ents = [Span(doc, 0, 1, "LOC"), Span(doc, 2, 3, "LOC")]  # at both ends of the text
    return [*docs, doc]


def place(span: Span) -> tuple[int, int]:
    return span.start_char, span.end_char


def logits(reference, text: str, spans: list[tuple[int, int]]) -> np.ndarray:
    tokenizer, network = reference
    given = spans if tokenizer.task == "entity_pair_classification" else spans[:1]
    inputs = tokenizer(text, entity_spans=given, return_tensors="pt", add_prefix_space=False)
    with torch.no_grad():
        return network(**inputs).logits[0].numpy()


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("kind", ["luke", "lite"])
def test_pair_logits(make_checkpoint, kind, bias, settings):
    model = "LukeForEntityPairClassification"
    names = {0: "no_relation", 1: "born_in", 2: "located_in"}
    directory = make_checkpoint(kind, model, id2label=names, num_labels=3, **settings)
    reference = reference_of(directory, model, "entity_pair_classification")
    if bias:
        add_bias(directory, reference[1])
    nlp = make_pipeline("luke_relation", directory, "markers", encoder={"tokenization": "mentions"})
    nlp.initialize()
    pipe = nlp.get_pipe("luke_relation")
    assert pipe.labels == ("born_in", "located_in")
    docs = documents(nlp)
    for doc in docs:
        # One pair at a time: the text is cut at the spans that are asked about.
        for head in doc.ents:
            for tail in doc.ents:
                if head != tail:
                    one = doc.copy()
                    one.ents = [Span(one, x.start, x.end, "X") for x in (head, tail)]
                    query, scores = pipe.predict([one])
                    row = 0 if head.start < tail.start else 1
                    expected = logits(reference, doc[:].text, [place(head), place(tail)])
                    found = scores.logits[row][[2, 0, 1]]
                    assert query.pairs[row].tolist() == [row, 1 - row]
                    assert np.abs(found - expected).max() < 1e-5


@pytest.mark.parametrize("settings", SETTINGS)
def test_typing_logits(make_checkpoint, settings):
    model = "LukeForEntityClassification"
    names = {0: "person", 1: "place", 2: "event"}
    directory = make_checkpoint("luke", model, id2label=names, num_labels=3, **settings)
    reference = reference_of(directory, model, "entity_classification")
    nlp = make_pipeline(
        "luke_entity_typing", directory, "markers", encoder={"tokenization": "mentions"}
    )
    nlp.initialize()
    pipe = nlp.get_pipe("luke_entity_typing")
    assert pipe.labels == ("event", "person", "place")
    for doc in documents(nlp):
        for ent in doc.ents:
            one = doc.copy()
            one.ents = [Span(one, ent.start, ent.end, "X")]
            _, scores = pipe.predict([one])
            expected = logits(reference, doc[:].text, [place(ent)])
            assert np.abs(scores.logits[0] - expected[[2, 0, 1]]).max() < 1e-5


def test_a_classifier_of_another_task_is_left_alone_and_one_that_does_not_fit_is_named(
    make_checkpoint,
):
    names = {0: "NIL", 1: "LOC"}
    ner = make_checkpoint("luke", "LukeForEntitySpanClassification", id2label=names, num_labels=2)
    nlp = make_pipeline("luke_entity_typing", ner, "probe")
    with pytest.raises(ValueError, match="no labels"):
        nlp.initialize()
    model = "LukeForEntityPairClassification"
    pair = make_checkpoint("luke", model, id2label=names, num_labels=2)
    config = pair / "config.json"
    config.write_text(config.read_text().replace('"1": "LOC"', '"1": "LOC", "2": "PER"'))
    nlp = make_pipeline("luke_relation", pair, "markers")
    with pytest.raises(CheckpointError, match="2 rows, and id2label of config.json .* names 3"):
        nlp.initialize()


def add_bias(directory, network) -> None:
    """As in the few published files that have one."""
    from safetensors.torch import load_file, save_file

    path = directory / "model.safetensors"
    tensors = load_file(path)
    bias = torch.randn(3)
    save_file({**tensors, "classifier.bias": bias}, path, metadata={"format": "pt"})
    network.classifier.bias = torch.nn.Parameter(bias)
