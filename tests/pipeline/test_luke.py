import gc
import json
import pickle
import shutil
from pathlib import Path
from typing import Any
from weakref import ref

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span
from spacy.vocab import Vocab

from spacy_luke.annotations.vectors import vectors_of
from spacy_luke.errors import InputError
from spacy_luke.layers.encoder import module_of
from tests.pipeline.conftest import ANNOTATED, WORDS


def make_luke(directory: Path, model: dict[str, Any] | None = None, **config: Any) -> Language:
    nlp = spacy.blank("en")
    nlp.add_pipe("luke", config={"model": {"name": str(directory), **(model or {})}, **config})
    nlp.initialize()
    return nlp


def with_entities(nlp: Language, *spans: tuple[int, int, str, str]) -> Doc:
    doc = Doc(nlp.vocab, words=WORDS)
    doc.ents = [Span(doc, a, b, label=label, kb_id=kb_id) for a, b, label, kb_id in spans]
    return doc


# Vectors


@pytest.mark.parametrize("kind", ["luke_dir", "lite_dir", "bert_dir", "xlmr_dir"])
def test_words_and_entities_have_vectors_from_one_pass(kind, request):
    nlp = make_luke(request.getfixturevalue(kind))
    doc = nlp(with_entities(nlp, (0, 2, "PER", ""), (5, 6, "LOC", "London")))
    assert doc._.luke.token_vectors.shape == (7, 32)
    assert doc._.luke.entity_vectors.shape == (2, 32)
    assert np.array_equal(doc.ents[1]._.luke_vector, doc._.luke.entity_vectors[1])


def test_vectors_are_of_the_entities_present_at_first_access_and_follow_changes(luke_dir):
    nlp = make_luke(luke_dir)
    doc = nlp(Doc(nlp.vocab, words=WORDS))
    doc.ents = [Span(doc, 0, 2, label="PER")]
    first = doc._.luke
    assert first.entity_vectors.shape == (1, 32)
    assert doc._.luke is first
    doc.ents = [*doc.ents, Span(doc, 5, 6, label="LOC")]
    assert doc._.luke.entity_vectors.shape == (2, 32)


def test_eager_and_lazy_vectors_agree(luke_dir):
    lazy, eager = make_luke(luke_dir), make_luke(luke_dir, eager=True)
    texts = [text for text, _ in ANNOTATED]
    for one, other in zip(lazy.pipe(texts), eager.pipe(texts, batch_size=3)):
        assert np.allclose(one._.luke.token_vectors, other._.luke.token_vectors, atol=1e-5)


def test_an_entity_in_the_vocabulary_enters_as_itself(luke_dir):
    nlp = make_luke(luke_dir)
    luke = nlp.get_pipe("luke")
    names = luke.model.shims[0].module.entities.names
    doc = with_entities(nlp, (0, 2, "PER", "Ada_Lovelace"), (5, 6, "LOC", "Q84"))
    assert luke.entity_id(doc.ents[0]) == names["Ada Lovelace"]
    assert luke.entity_id(doc.ents[1]) == names["[MASK]"]
    luke.titles = {"Q84": "London"}
    assert luke.entity_id(doc.ents[1]) == names["London"]


def test_titles_are_looked_up_in_the_language_of_the_document(luke_dir, tmp_path):
    """Also by a component that was sourced from a pipeline of another language."""
    shutil.copytree(luke_dir, tmp_path / "luke")
    path = tmp_path / "luke" / "entity_vocab.json"
    names = json.loads(path.read_text("utf8"))
    names |= {"en:Halden": names.pop("London"), "de:Halden": names.pop("Tokyo")}
    path.write_text(json.dumps(names), "utf8")
    other = spacy.blank("de")
    luke = other.add_pipe("luke", source=make_luke(tmp_path / "luke"))
    other.to_disk(tmp_path / "saved")
    for nlp in (other, spacy.load(tmp_path / "saved")):
        doc = with_entities(nlp, (5, 6, "LOC", "Halden"))
        assert nlp.get_pipe("luke").entity_id(doc.ents[0]) == names["de:Halden"]
    doc = with_entities(spacy.blank("en"), (5, 6, "LOC", "Halden"))
    assert luke.entity_id(doc.ents[0]) == names["en:Halden"]
    doc = Doc(Vocab(), words=["Halden"])  # of no language: that of the component's own pipeline
    doc.ents = [Span(doc, 0, 1, "LOC", kb_id="Halden")]
    own = make_luke(tmp_path / "luke").get_pipe("luke")
    assert own.entity_id(doc.ents[0]) == names["en:Halden"]


def test_what_an_unknown_entity_enters_as_is_a_setting(luke_dir):
    nlp = make_luke(luke_dir, unknown_entity="[UNK]")
    luke = nlp.get_pipe("luke")
    doc = with_entities(nlp, (5, 6, "LOC", ""))
    assert luke.entity_id(doc.ents[0]) == luke.model.shims[0].module.entities.names["[UNK]"]
    luke.link_by_text = True
    assert luke.entity_id(doc.ents[0]) == luke.model.shims[0].module.entities.names["London"]
    another = with_entities(nlp, (5, 6, "LOC", "Q92561"))  # London, Ontario
    assert luke.entity_id(another.ents[0]) == luke.model.shims[0].module.entities.names["[UNK]"]


@pytest.mark.parametrize("unknown", ["[MASK]", "[UNK]"])
def test_an_entity_linked_to_nil_is_unknown_and_its_text_is_not_looked_up(luke_dir, unknown):
    nlp = make_luke(luke_dir, unknown_entity=unknown, link_by_text=True)
    luke = nlp.get_pipe("luke")
    names = luke.model.shims[0].module.entities.names
    luke.titles = {"NIL": "Tokyo"}
    doc = with_entities(nlp, (0, 2, "PER", "London"), (5, 6, "LOC", "NIL"))
    assert [luke.entity_id(ent) for ent in doc.ents] == [names["London"], names[unknown]]
    doc = with_entities(nlp, (5, 6, "LOC", ""))
    assert luke.entity_id(doc.ents[0]) == names["London"]


def test_links_that_are_not_in_the_vocabulary_are_counted_once(luke_dir, caplog):
    nlp = make_luke(luke_dir, eager=True)
    nlp.get_pipe("luke").titles = {"Q84": "London"}
    spacy.util.logger.propagate = True
    linked = [(0, 2, "PER", "Ada_Lovelace"), (5, 6, "LOC", "Q84")]
    not_linked = [(0, 2, "PER", "NIL"), (5, 6, "LOC", "")]
    list(nlp.pipe([with_entities(nlp, *linked), with_entities(nlp, *not_linked)]))
    assert not caplog.records
    unknown = [(0, 2, "PER", "Q7259"), (3, 4, "PER", "Q46633"), (5, 6, "LOC", "Q84")]
    list(nlp.pipe([with_entities(nlp, *unknown), with_entities(nlp, *linked[:1])]))
    assert "luke: 2 of the 4 kb_id_ of this batch" in caplog.text and "'Q7259'" in caplog.text
    assert len(caplog.records) == 1
    nlp(with_entities(nlp, *unknown))
    assert len(caplog.records) == 1


def test_the_title_table_is_given_at_initialisation_and_saved(luke_dir, tmp_path):
    nlp = make_luke(luke_dir)
    nlp.config["initialize"]["components"]["luke"] = {"titles": {"Q84": "London"}}
    nlp.initialize()
    nlp.to_disk(tmp_path)
    luke = spacy.load(tmp_path).get_pipe("luke")
    doc = with_entities(nlp, (5, 6, "LOC", "Q84"))
    assert luke.entity_id(doc.ents[0]) == luke.model.shims[0].module.entities.names["London"]


def test_entity_identity_changes_vectors_in_full_attention_and_not_words_in_probe(luke_dir):
    for attention, words_change in (("full", True), ("probe", False)):
        nlp = make_luke(luke_dir, attention=attention)
        masked = nlp(with_entities(nlp, (5, 6, "LOC", "")))._.luke
        named = nlp(with_entities(nlp, (5, 6, "LOC", "London")))._.luke
        assert not np.allclose(masked.entity_vectors, named.entity_vectors, atol=1e-4)
        same = np.allclose(masked.token_vectors, named.token_vectors, atol=1e-6)
        assert same != words_change


def test_entity_labels_may_have_embeddings(luke_dir):
    nlp = make_luke(luke_dir, model={"entity_labels": ["PER", "LOC"]})
    vectors = [
        nlp(with_entities(nlp, (0, 2, label, "")))._.luke.entity_vectors
        for label in ("PER", "LOC", "ORG")
    ]
    assert not np.allclose(vectors[0], vectors[1], atol=1e-4)
    plain = make_luke(luke_dir)
    expected = plain(with_entities(plain, (0, 2, "ORG", "")))._.luke.entity_vectors
    assert np.allclose(vectors[2], expected, atol=1e-5)


def test_any_span_has_a_vector(luke_dir):
    nlp = make_luke(luke_dir)
    doc = nlp(with_entities(nlp, (0, 2, "PER", "")))
    vector = doc[4:6]._.luke_vector
    doc.ents = [*doc.ents, Span(doc, 4, 6, label="X")]
    assert np.allclose(vector, doc.ents[1]._.luke_vector, atol=1e-5)


def test_a_document_no_component_has_seen_has_no_vectors(luke_dir):
    nlp = make_luke(luke_dir)
    doc = Doc(nlp.vocab, words=WORDS)
    assert doc._.luke is None
    with pytest.raises(InputError, match="No luke component"):
        _ = doc[0:1]._.luke_vector
    assert nlp(doc)[0:2].as_doc()._.luke is None


def test_vector_hooks_serve_spacys_own_vectors_and_similarity(luke_dir):
    nlp = make_luke(luke_dir, vector_hooks=True)
    doc = nlp(with_entities(nlp, (0, 2, "PER", "")))
    assert np.array_equal(doc[0:2].vector, doc.ents[0]._.luke_vector)
    assert np.array_equal(doc[3].vector, doc._.luke.token_vectors[3])
    assert doc[0:2].similarity(doc[0:2]) == pytest.approx(1.0, abs=1e-5)
    assert -1.0 <= doc[0:2].similarity(doc[5:6]) < 1.0
    assert doc.similarity(doc) == pytest.approx(1.0, abs=1e-5)
    for part in (doc, doc[0:2], doc[3]):
        assert part.vector_norm == pytest.approx(np.linalg.norm(part.vector))


@pytest.mark.parametrize("text", ["", "   ", "x" * 5000, "👩‍👩‍👧‍👦 é́́", "ولدت آدا"])
def test_hostile_text_has_finite_vectors(luke_dir, text):
    nlp = make_luke(luke_dir)
    data = nlp(text)._.luke
    assert data.token_vectors.shape == (len(nlp.make_doc(text)), 32)
    assert np.isfinite(data.token_vectors).all()


def test_an_entity_longer_than_a_window_gets_zeros_and_a_warning(luke_dir, caplog):
    nlp = make_luke(luke_dir, model={"window": 20, "overlap": 5})
    spacy.util.logger.propagate = True
    doc = Doc(nlp.vocab, words=["London"] * 60)
    doc.ents = [Span(doc, 0, 50, label="X"), Span(doc, 52, 54, label="Y")]
    vectors = nlp(doc)._.luke.entity_vectors
    assert not vectors[0].any() and vectors[1].any()
    assert "longer than a window" in caplog.text


def test_a_window_and_its_overlap_are_those_that_were_given(luke_dir, caplog):
    def used(**model):
        return module_of(make_luke(luke_dir, model=model).get_pipe("luke").model).window

    most, default = used()
    assert default == most // 4
    assert used(overlap=most - 1) == (most, most - 1) and used(overlap=0) == (most, 0)
    assert used(window=20, overlap=15) == (20, 15)
    spacy.util.logger.propagate = True
    assert used(overlap=most) == (most, default)
    assert f"LukeEncoder.overlap is {most} pieces, and the network has positions for" in caplog.text


def test_a_kept_document_does_not_keep_the_vectors_of_its_batch(luke_dir):
    nlp = make_luke(luke_dir, eager=True)
    docs = list(nlp.pipe(Doc(nlp.vocab, words=WORDS) for _ in range(9)))
    vectors = docs[4]._.luke
    for array in (vectors.token_vectors, vectors.entity_vectors):
        assert array.base is None or array.base.size <= 2 * vectors.token_vectors.size


def test_long_documents_are_stitched_without_gaps(luke_dir):
    nlp = make_luke(luke_dir, model={"window": 40, "overlap": 12})
    doc = nlp(Doc(nlp.vocab, words=WORDS * 200))
    vectors = doc._.luke.token_vectors
    assert vectors.shape == (1400, 32)
    assert np.abs(vectors).sum(-1).min() > 0


# Serialisation


def test_vectors_are_transient_unless_kept(luke_dir):
    nlp = make_luke(luke_dir)
    doc = nlp(with_entities(nlp, (0, 2, "PER", "")))
    back = Doc(nlp.vocab).from_bytes(doc.to_bytes())
    assert back._.luke is None
    unpickled = pickle.loads(pickle.dumps(doc))
    assert unpickled._.luke is None
    with pytest.raises(InputError, match="keep_vectors"):
        _ = unpickled[0:2]._.luke_vector


def test_kept_vectors_of_other_entities_are_not_given(luke_dir):
    """A component behind luke has set the entities; what was stored is of none."""
    nlp = make_luke(luke_dir, keep_vectors=True)
    doc = nlp(with_entities(nlp))
    doc.ents = [Span(doc, 0, 2, "PER")]
    data = DocBin(docs=[doc], store_user_data=True).to_bytes()
    (back,) = DocBin().from_bytes(data).get_docs(nlp.vocab)
    assert back._.luke is None
    with pytest.raises(InputError, match="those of other entities"):
        _ = back.ents[0]._.luke_vector


@pytest.mark.parametrize("way", ["bytes", "docbin", "pickle", "processes"])
def test_kept_vectors_survive(luke_dir, way):
    nlp = make_luke(luke_dir, keep_vectors=True)
    doc = nlp(with_entities(nlp, (0, 2, "PER", "")))
    if way == "bytes":
        back = Doc(nlp.vocab).from_bytes(doc.to_bytes())
    elif way == "docbin":
        data = DocBin(docs=[doc], store_user_data=True).to_bytes()
        back = next(DocBin().from_bytes(data).get_docs(nlp.vocab))
    elif way == "pickle":
        back = pickle.loads(pickle.dumps(doc))
    else:
        docs = [with_entities(nlp, (0, 2, "PER", "")) for _ in range(4)]
        back = list(nlp.pipe(docs, n_process=2, batch_size=2))[-1]
    assert np.allclose(back._.luke.token_vectors, doc._.luke.token_vectors, atol=1e-5)
    assert np.allclose(back.ents[0]._.luke_vector, doc.ents[0]._.luke_vector, atol=1e-5)


@pytest.mark.parametrize("way", ["disk", "bytes", "pickle"])
def test_a_saved_component_gives_the_same_vectors(luke_dir, tmp_path, way):
    nlp = make_luke(luke_dir, model={"word_shapes": True})
    if way == "disk":
        nlp.to_disk(tmp_path)
        other = spacy.load(tmp_path)
    elif way == "bytes":
        other = nlp.from_config(nlp.config).from_bytes(nlp.to_bytes())
    else:
        other = pickle.loads(pickle.dumps(nlp))
    one, two = (n(with_entities(n, (0, 2, "PER", "")))._.luke for n in (nlp, other))
    assert np.array_equal(one.token_vectors, two.token_vectors)
    assert np.array_equal(one.entity_vectors, two.entity_vectors)


# What vectors depend on


@pytest.mark.parametrize("eager", [False, True])
def test_vectors_follow_retokenisation(luke_dir, eager):
    nlp = make_luke(luke_dir, eager=eager)
    doc = nlp(Doc(nlp.vocab, words=WORDS))
    assert doc._.luke.token_vectors.shape == (7, 32)
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[0:2])
    assert doc._.luke.token_vectors.shape == (6, 32)


def test_kept_vectors_are_not_those_of_a_part_of_the_document(luke_dir):
    nlp = make_luke(luke_dir, keep_vectors=True)
    doc = nlp(Doc(nlp.vocab, words=WORDS))
    assert doc[0:2].as_doc(copy_user_data=True)._.luke is None


def test_a_spans_vector_depends_on_what_the_span_means(luke_dir):
    nlp = make_luke(luke_dir)
    doc = nlp(Doc(nlp.vocab, words=WORDS))
    plain = Span(doc, 5, 6)._.luke_vector
    london = Span(doc, 5, 6, kb_id="London")._.luke_vector
    assert not np.allclose(plain, london, atol=1e-4)


def test_hooks_of_an_empty_document_give_zeros_and_of_a_copy_a_clear_error(luke_dir):
    nlp = make_luke(luke_dir, vector_hooks=True)
    assert not np.asarray(nlp("").vector).any()
    with pytest.raises(InputError, match="keep_vectors"):
        _ = nlp("Ada").copy().vector


def test_a_document_does_not_keep_its_pipeline(luke_dir):
    nlp = make_luke(luke_dir, vector_hooks=True)
    network = ref(nlp.get_pipe("luke").model.shims[0].module.network)
    seen, unseen = nlp("Ada Lovelace"), nlp("in London")
    before = seen._.luke.token_vectors
    del nlp
    gc.collect()
    assert network() is None
    assert seen._.luke.token_vectors is before
    with pytest.raises(InputError, match="The pipeline of this document's vectors is gone"):
        vectors_of(unseen)


def test_it_may_be_the_first_component():
    nlp = spacy.blank("en")
    nlp.add_pipe("luke")
    assert nlp.analyze_pipes()["problems"] == {"luke": []}
