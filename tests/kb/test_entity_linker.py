"""Inside spaCy's own ``entity_linker``: trained, saved, moved, loaded."""

import shutil

import numpy as np
import pytest
import spacy
from spacy.kb import InMemoryLookupKB
from spacy.training import Example

from spacy_luke.errors import ConfigError, InputError
from spacy_luke.kb.entity import Entity
from spacy_luke.kb.knowledge_base import MappedKB
from tests.kb.conftest import build, found

TOK2VEC = {
    "@architectures": "spacy.HashEmbedCNN.v2",
    "pretrained_vectors": None,
    "width": 8,
    "depth": 1,
    "embed_size": 50,
    "window_size": 1,
    "maxout_pieces": 2,
    "subword_features": True,
}
CONFIG = {
    "model": {"@architectures": "spacy.EntityLinker.v2", "tok2vec": TOK2VEC},
    "generate_empty_kb": {"@misc": "spacy-luke.EmptyKB.v1"},
    "get_candidates": {
        "@misc": "spacy-luke.alias_candidates.v1",
        "fuzzy": "always",
        "min_likeness": 0.5,
    },
    "get_candidates_batch": {"@misc": "spacy-luke.alias_candidates_batch.v1"},
    "candidates_batch_size": 2,
}
TEXTS = [("Paris is a large city.", "Q1"), ("Paris sang a song.", "Q2"), ("Paris left.", "NIL")]


def pipeline(kb_dir, tmp_path, **config):
    """A pipeline trained for a few steps, and its examples."""
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    linker = nlp.add_pipe("entity_linker", config={**CONFIG, **config})
    examples = []
    for text, entity in TEXTS:
        doc = nlp.make_doc(text)
        links = {(0, 5): {entity: 1.0}}
        examples.append(
            Example.from_dict(
                doc,
                {
                    "entities": [(0, 5, "X")],
                    "links": links,
                    "sent_starts": [1] + [-1] * (len(doc) - 1),
                },
            )
        )
    kb = MappedKB.open(kb_dir, nlp.vocab)
    kb.set_vectors(np.random.default_rng(0).normal(size=(6, 12)).astype(np.float32), "w")
    kb.to_disk(tmp_path / "kb")
    loader = {"@misc": "spacy-luke.KBFromFile.v1", "kb_path": str(tmp_path / "kb")}
    nlp.config["initialize"]["components"]["entity_linker"] = {"kb_loader": loader}
    optimizer = nlp.initialize(lambda: examples)
    assert linker.kb.entity_vector_length == 12
    for _ in range(3):
        losses = nlp.update(examples, sgd=optimizer, annotates=["sentencizer"])
    assert losses["entity_linker"] > 0
    return nlp, examples


def links(nlp):
    docs = []
    for text in ("Paris is a large city.", "He saw Munick twice.", "See zzzz here."):
        doc = nlp.make_doc(text)
        span = next(
            doc[i : i + 1] for i in range(len(doc)) if doc[i].text in ("Paris", "Munick", "zzzz")
        )
        span.label_ = "X"
        doc.ents = [span]
        docs.append(doc)
    return [doc.ents[0].kb_id_ for doc in nlp.pipe(docs)]


def test_it_trains_predicts_and_moves(kb_dir, tmp_path):
    nlp, examples = pipeline(kb_dir, tmp_path)
    expected = links(nlp)
    assert expected[0] in ("Q1", "Q2", "Q3") and expected[1:] == ["7", "NIL"]
    (tmp_path / "a").mkdir()
    nlp.to_disk(tmp_path / "a" / "pipeline")
    shutil.rmtree(tmp_path / "kb")
    shutil.move(tmp_path / "a", tmp_path / "b")
    loaded = spacy.load(tmp_path / "b" / "pipeline")
    assert isinstance(loaded.get_pipe("entity_linker").kb, MappedKB)
    assert links(loaded) == expected
    assert nlp.evaluate(examples)["nel_micro_f"] is not None


def test_bytes_of_a_pipeline_have_the_knowledge_base(kb_dir, tmp_path):
    nlp, _ = pipeline(kb_dir, tmp_path)
    again = spacy.blank("en")
    again.add_pipe("sentencizer")
    again.add_pipe("entity_linker", config=CONFIG)
    again.from_bytes(nlp.to_bytes())
    assert links(again) == links(nlp)
    assert again.get_pipe("entity_linker").kb.vectors_hash == "w"


def test_a_pipeline_saved_with_one_and_loaded_with_another(kb_dir, tmp_path):
    """The knowledge base of the folder counts, whatever the component had."""
    nlp, _ = pipeline(kb_dir, tmp_path)
    nlp.to_disk(tmp_path / "pipeline")
    linker = nlp.get_pipe("entity_linker")
    linker.set_kb(lambda vocab: linker.kb.edited(remove=["7"]))
    assert links(nlp)[1] == "NIL"
    linker.kb.to_disk(tmp_path / "pipeline" / "entity_linker" / "kb")
    assert links(spacy.load(tmp_path / "pipeline"))[1] == "NIL"


def test_an_entity_without_a_vector_is_an_error_not_the_answer(kb_dir, tmp_path):
    """Of a zero vector spaCy's similarity is NaN, which it takes for the best."""
    nlp, _ = pipeline(kb_dir, tmp_path)
    linker = nlp.get_pipe("entity_linker")
    edited = linker.kb.edited(add=[Entity("new", "Paris (film)", {"Paris": 1.0})])
    linker.set_kb(lambda vocab: edited)
    with pytest.raises(InputError, match="'new' of the knowledge base has no vector"):
        links(nlp)
    with pytest.raises(InputError, match="kb-edit"):
        linker.kb.get_vector("new")
    vectors = np.array(edited.tables.vectors)
    vectors[edited.tables.ids.find("new")] = 1.0
    edited.set_vectors(vectors, "w")
    assert links(nlp)[1:] == ["7", "NIL"]


def test_every_save_of_a_training_links_the_files(kb_dir, tmp_path):
    nlp, _ = pipeline(kb_dir, tmp_path)
    for name in ("model-best", "model-last", "model-last"):
        nlp.to_disk(tmp_path / name)
    files = [
        tmp_path / x / "entity_linker" / "kb" / "forms.text.npy"
        for x in ("model-best", "model-last")
    ]
    assert len({path.stat().st_ino for path in files}) == 1


def test_the_priors_alone_need_no_vectors(kb_dir):
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    linker = nlp.add_pipe("entity_linker", config={**CONFIG, "incl_context": False})
    linker.set_kb(lambda vocab: MappedKB.open(kb_dir, vocab))
    assert links(nlp) == ["Q1", "7", "NIL"]


def test_stock_candidates_use_the_defaults(kb_dir):
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    config = {x: CONFIG[x] for x in ("model", "generate_empty_kb")}
    linker = nlp.add_pipe("entity_linker", config={**config, "incl_context": False})
    linker.set_kb(lambda vocab: MappedKB.open(kb_dir, vocab))
    assert links(nlp) == ["Q1", "7", "NIL"]


def test_another_kind_of_knowledge_base_is_an_error():
    nlp = spacy.blank("en")
    linker = nlp.add_pipe(
        "entity_linker", config={k: v for k, v in CONFIG.items() if k != "generate_empty_kb"}
    )
    doc = nlp.make_doc("Paris")
    with pytest.raises(ConfigError, match="not InMemoryLookupKB"):
        linker.get_candidates(InMemoryLookupKB(nlp.vocab, 1), doc[:1])


def test_an_empty_knowledge_base_is_refused_by_the_component(tmp_path):
    nlp = spacy.blank("en")
    linker = nlp.add_pipe("entity_linker", config=CONFIG)
    assert isinstance(linker.kb, MappedKB) and linker.kb.entity_vector_length == 64
    with pytest.raises(ValueError, match="E139"):
        linker.validate_kb()


def test_ids_that_look_alike_are_told_apart(tmp_path):

    build(
        tmp_path / "kb",
        [{"id": 1, "name": "one"}, {"id": "01", "name": "uno"}, {"id": " 1", "name": "un"}],
    )
    kb = MappedKB.open(tmp_path / "kb", spacy.blank("en").vocab)
    ids = [found(kb, x)[0][0] for x in ("one", "uno", "un")]
    assert ids == ["1", "01", " 1"]
