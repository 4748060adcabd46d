"""Phrase vectors: each entity alone, through the head, as UCTopic computes them."""

import json
import shutil

import numpy as np
import pytest
import spacy
import torch
from safetensors.torch import load_file, save_file
from spacy.tokens import Span

from spacy_luke.errors import ConfigError
from spacy_luke.layers import encoder_run, phrases
from spacy_luke.pipeline.published import export_component, import_checkpoint

transformers = pytest.importorskip("transformers")
TEXT = "Ada Lovelace, born in London, worked with Charles Babbage."
SPANS = [(0, 12), (22, 28), (42, 57)]


@pytest.fixture(scope="module")
def uctopic(make_checkpoint, tmp_path_factory):
    """A LUKE with the head, as UCTopic publishes it."""
    path = tmp_path_factory.mktemp("uctopic") / "uctopic"
    shutil.copytree(make_checkpoint("luke"), path)
    found = load_file(path / "model.safetensors")
    found = {f"luke.{name.removeprefix('luke.')}": x for name, x in found.items()}
    torch.manual_seed(1)
    found |= {"mlp.dense.weight": torch.randn(32, 32) * 0.3, "mlp.dense.bias": torch.randn(32)}
    save_file(found, path / "model.safetensors", {"format": "pt"})
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps({**config, "architectures": ["UCTopicModel"]}))
    return path


def annotated(nlp):
    doc = nlp.make_doc(TEXT)
    doc.ents = [doc.char_span(a, b, "X", kb_id="Tokyo") for a, b in SPANS]
    return doc


def test_vectors_are_those_of_the_reference(uctopic):
    nlp = import_checkpoint(str(uctopic), "en")
    found = nlp.get_pipe("luke")(annotated(nlp))._.luke.entity_vectors
    tokenizer = transformers.LukeTokenizer.from_pretrained(uctopic)
    model = transformers.LukeModel.from_pretrained(uctopic).eval()
    tensors = load_file(uctopic / "model.safetensors")
    for i, span in enumerate(SPANS):  # one span a text: more would see each other
        inputs = tokenizer(TEXT, entity_spans=[span], add_prefix_space=True, return_tensors="pt")
        with torch.no_grad():
            state = model(**inputs).entity_last_hidden_state[0, 0]
            expected = torch.tanh(tensors["mlp.dense.weight"] @ state + tensors["mlp.dense.bias"])
        assert np.abs(found[i] - expected.numpy()).max() < 1e-5


def test_an_imported_pipeline_compares_phrases(uctopic, tmp_path):
    import_checkpoint(str(uctopic), "en").to_disk(tmp_path)
    nlp = spacy.load(tmp_path)
    doc = nlp.get_pipe("luke")(annotated(nlp))
    one, other = (ent._.luke_vector for ent in doc.ents[:2])
    cosine = one @ other / np.linalg.norm(one) / np.linalg.norm(other)
    assert abs(doc.ents[0].similarity(doc.ents[1]) - cosine) < 1e-5 and abs(cosine) > 1e-3


def test_a_vector_does_not_depend_on_other_entities_or_on_links(uctopic):
    nlp = import_checkpoint(str(uctopic), "en")
    doc = annotated(nlp)
    every = nlp.get_pipe("luke")(doc)._.luke.entity_vectors.copy()
    doc.ents = [Span(doc, doc.ents[1].start, doc.ents[1].end, "Y")]
    alone = nlp.get_pipe("luke")(doc)._.luke
    assert np.abs(alone.entity_vectors[0] - every[1]).max() < 5e-6
    assert alone.token_vectors.shape == (len(doc), 32)


def test_many_entities_take_the_memory_of_a_few(uctopic, monkeypatch):
    """A document is encoded once per entity, but few of these are in memory at a time."""
    nlp = import_checkpoint(str(uctopic), "en")
    doc = nlp.make_doc("Tokyo is in Japan . " * 10)
    doc.ents = [Span(doc, i, i + 1, "X") for i in range(40)]
    expected = nlp.get_pipe("luke")(doc)._.luke.entity_vectors.copy()
    n_words, encode = [], phrases.encode_docs

    def watched(encoder, docs, *args):
        n_words.append(sum(map(len, docs)))
        return encode(encoder, docs, *args)

    monkeypatch.setattr(phrases, "encode_docs", watched)
    monkeypatch.setattr(encoder_run, "MAX_ROWS", 3 * len(doc))
    bounded = nlp.get_pipe("luke")(doc)._.luke.entity_vectors
    assert max(n_words) <= 3 * len(doc) and sum(n_words) == 41 * len(doc)
    assert np.abs(bounded - expected).max() < 1e-5


def test_similarity_and_documents_without_entities(uctopic):
    nlp = import_checkpoint(str(uctopic), "en", {"vector_hooks": True})
    doc = nlp.get_pipe("luke")(annotated(nlp))
    one, other, _ = doc.ents
    assert one.similarity(one) == pytest.approx(1.0, abs=1e-5)
    norms = float(np.linalg.norm(one.vector) * np.linalg.norm(other.vector))
    cosine = float((one.vector * other.vector).sum()) / norms
    assert one.similarity(other) == pytest.approx(cosine, abs=1e-5)
    for text in ("", "No entity here."):
        assert nlp(text)._.luke.entity_vectors.shape == (0, 32)


def test_the_head_comes_back(uctopic, tmp_path):
    nlp = import_checkpoint(str(uctopic))
    assert export_component(nlp, tmp_path / "out") == "UCTopicModel"
    before, after = (load_file(x / "model.safetensors") for x in (uctopic, tmp_path / "out"))
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_a_checkpoint_without_the_head_is_named(luke_dir):
    nlp = import_checkpoint(str(luke_dir), "en", {"phrases": True})
    with pytest.raises(ConfigError, match=r"mlp\.dense\.weight"):
        _ = nlp.get_pipe("luke")(annotated(nlp))._.luke.entity_vectors
