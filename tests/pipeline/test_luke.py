import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example
from thinc.api import SGD, Adam, fix_random_seed

from spacy_luke.errors import ConfigError, InputError
from tests.pipeline.conftest import ANNOTATED, fit, make_examples

LISTENER = {"@architectures": "spacy-luke.LukeListener.v1"}
WORDS = ["Ada", "Lovelace", "was", "born", "in", "London", "."]


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
    luke.cfg["titles"] = {"Q84": "London"}
    assert luke.entity_id(doc.ents[1]) == names["London"]


def test_what_an_unknown_entity_enters_as_is_a_setting(luke_dir):
    nlp = make_luke(luke_dir, unknown_entity="[UNK]")
    luke = nlp.get_pipe("luke")
    doc = with_entities(nlp, (5, 6, "LOC", ""))
    assert luke.entity_id(doc.ents[0]) == luke.model.shims[0].module.entities.names["[UNK]"]
    luke.cfg["link_by_text"] = True
    assert luke.entity_id(doc.ents[0]) == luke.model.shims[0].module.entities.names["London"]
    another = with_entities(nlp, (5, 6, "LOC", "Q92561"))  # London, Ontario
    assert luke.entity_id(another.ents[0]) == luke.model.shims[0].module.entities.names["[UNK]"]


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
        other = spacy.blank("en").from_config(nlp.config).from_bytes(nlp.to_bytes())
    else:
        other = pickle.loads(pickle.dumps(nlp))
    one, two = (n(with_entities(n, (0, 2, "PER", "")))._.luke for n in (nlp, other))
    assert np.array_equal(one.token_vectors, two.token_vectors)
    assert np.array_equal(one.entity_vectors, two.entity_vectors)


# Sharing


def shared(directory: Path, n_ner: int = 1, tagger: bool = False) -> tuple[Language, list[Example]]:
    fix_random_seed(0)
    nlp = spacy.blank("en")
    nlp.add_pipe("luke", config={"model": {"name": str(directory)}})
    if tagger:
        stock = {
            "@architectures": "spacy-transformers.TransformerListener.v1",
            "grad_factor": 1.0,
            "pooling": {"@layers": "reduce_mean.v1"},
        }
        nlp.add_pipe(
            "tagger", config={"model": {"@architectures": "spacy.Tagger.v2", "tok2vec": stock}}
        )
    for i in range(n_ner):
        nlp.add_pipe("luke_ner", name=f"ner{i}", config={"model": {"encoder": LISTENER}})
    examples = make_examples(nlp)
    for eg in examples:
        for token in eg.reference:
            token.tag_ = "NNP" if token.is_title else "X"
    nlp.initialize(lambda: examples)
    return nlp, examples


def parameters(nlp: Language) -> np.ndarray:
    module = nlp.get_pipe("luke").model.shims[0].module
    return np.concatenate([p.detach().cpu().numpy().ravel() for p in module.parameters()])


def gradients(nlp: Language) -> np.ndarray:
    module = nlp.get_pipe("luke").model.shims[0].module
    return np.concatenate(
        [
            (np.zeros(p.shape) if p.grad is None else p.grad.cpu().numpy()).ravel()
            for p in module.parameters()
        ]
    )


def test_a_listener_learns_through_the_shared_encoder_and_is_saved_without_it(bert_dir, tmp_path):
    nlp, examples = shared(bert_dir)
    before = parameters(nlp)
    fit(nlp, examples, 60)
    assert np.abs(parameters(nlp) - before).max() > 0
    assert nlp.evaluate(examples)["ents_f"] == 1.0
    nlp.to_disk(tmp_path)
    assert (tmp_path / "ner0" / "model").stat().st_size < 100_000
    loaded = spacy.load(tmp_path)
    for text, spans in ANNOTATED:
        doc = loaded(Doc(loaded.vocab, words=text.split(" ")))
        assert [(e.start, e.end, e.label_) for e in doc.ents] == spans


def test_gradients_of_all_listeners_add_up(bert_dir):
    nlp, examples = shared(bert_dir, n_ner=2)

    def run(*exclude: str) -> np.ndarray:
        for p in nlp.get_pipe("luke").model.shims[0].module.parameters():
            p.grad = None
        nlp.update(examples, sgd=False, exclude=exclude)
        for name in ("ner0", "ner1"):
            for p in nlp.get_pipe(name).network.shims[0].module.parameters():
                p.grad = None
        return gradients(nlp)

    both, first, second = run(), run("ner1"), run("ner0")
    assert np.abs(first).max() > 0 and not np.allclose(first, second)
    assert np.allclose(both, first + second, atol=1e-5)


def test_a_frozen_upstream_collects_no_gradients_while_its_listener_learns(bert_dir):
    nlp, examples = shared(bert_dir)
    before = parameters(nlp)
    head = nlp.get_pipe("ner0").network.shims[0].module.head.classifier.weight
    start = head.detach().clone()
    for _ in range(3):
        nlp.update(examples, sgd=Adam(1e-2), exclude=["luke"])
    assert not gradients(nlp).any()
    assert np.array_equal(parameters(nlp), before)
    assert not np.array_equal(
        nlp.get_pipe("ner0").network.shims[0].module.head.classifier.weight.detach(), start
    )


def test_nlp_update_with_an_optimizer_steps_like_the_training_loop(bert_dir):
    results = []
    for direct in (True, False):
        nlp, examples = shared(bert_dir, n_ner=2)
        sgd = SGD(0.05, use_averages=False)
        for pipe in ("ner0", "ner1"):  # equal heads in both runs
            for p in nlp.get_pipe(pipe).network.shims[0].module.parameters():
                p.data.fill_(0.05)
        for _ in range(3):
            nlp.update(examples, sgd=sgd if direct else False)
            if not direct:
                for _, component in nlp.pipeline:
                    component.finish_update(sgd)
        assert not gradients(nlp).any()
        results.append(parameters(nlp))
    assert np.allclose(results[0], results[1], atol=1e-6)


def test_a_stock_tagger_trains_on_lukes_word_states(bert_dir, tmp_path):
    pytest.importorskip("spacy_transformers", reason="stock listeners need spacy-transformers")
    nlp, examples = shared(bert_dir, n_ner=1, tagger=True)
    before = parameters(nlp)
    fit(nlp, examples, 100)
    assert np.abs(parameters(nlp) - before).max() > 0
    scores = nlp.evaluate(examples)
    assert scores["tag_acc"] > 0.95 and scores["ents_f"] > 0.95
    nlp.to_disk(tmp_path)
    doc = spacy.load(tmp_path)(" ".join(WORDS))
    assert doc[0].tag_ == "NNP" and doc[2].tag_ == "X"
    assert doc._.trf_data.model_output.last_hidden_state.shape[-1] == 32
    for text in ("", "  ", "Tokyo"):
        assert nlp(text).text == text
    odd = [Example(nlp.make_doc(t), nlp.make_doc(t)) for t in ("", "  ")]
    nlp.update([*odd, *examples], sgd=False)


def test_replaced_listeners_own_an_equal_encoder(bert_dir, tmp_path):
    nlp, examples = shared(bert_dir)
    fit(nlp, examples, 40)
    doc = nlp(Doc(nlp.vocab, words=WORDS))
    nlp.replace_listeners("luke", "ner0", ["model.encoder"])
    assert not nlp.get_pipe("luke").listeners
    shims = [nlp.get_pipe("luke").model.shims[0], nlp.get_pipe("ner0").network.layers[0].shims[0]]
    assert shims[0].id != shims[1].id
    after = nlp(Doc(nlp.vocab, words=WORDS))
    assert np.allclose(
        doc.spans["luke_ner"].attrs["scores"], after.spans["luke_ner"].attrs["scores"], atol=1e-6
    )
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path, exclude=["luke"])
    assert [e.text for e in loaded(Doc(loaded.vocab, words=WORDS)).ents] == [
        e.text for e in doc.ents
    ]


def test_a_sourced_component_brings_its_upstream(bert_dir):
    nlp, examples = shared(bert_dir)
    fit(nlp, examples, 40)
    other = spacy.blank("en")
    other.add_pipe("luke", source=nlp)
    other.add_pipe("ner0", source=nlp)
    doc, expected = (n(Doc(n.vocab, words=WORDS)) for n in (other, nlp))
    assert [e.text for e in doc.ents] == [e.text for e in expected.ents]


def test_a_listener_without_upstream_says_what_is_missing():
    nlp = spacy.blank("en")
    nlp.add_pipe("luke_ner", config={"model": {"encoder": {**LISTENER, "upstream": "nowhere"}}})
    with pytest.raises(ConfigError, match="nowhere"):
        nlp.initialize(lambda: make_examples(nlp))


def test_an_empty_batch_leaves_nothing_owed(bert_dir):
    nlp, examples = shared(bert_dir)
    empty = [Example(nlp.make_doc(""), nlp.make_doc(""))]
    sgd = SGD(0.05, use_averages=False)
    nlp.update(empty, sgd=sgd)
    nlp.update(examples, sgd=sgd)
    assert not gradients(nlp).any()


def test_a_stock_component_may_listen_through_a_luke_listener_and_steps_in_time(bert_dir):
    nlp = spacy.blank("en")
    nlp.add_pipe("luke", config={"model": {"name": str(bert_dir)}})
    model = {"@architectures": "spacy.Tagger.v2", "tok2vec": LISTENER}
    nlp.add_pipe("tagger", config={"model": model})
    examples = make_examples(nlp)
    for eg in examples:
        for token in eg.reference:
            token.tag_ = "NNP" if token.is_title else "X"
    nlp.initialize(lambda: examples)
    sgd = SGD(0.05, use_averages=False)
    nlp.update(examples, sgd=sgd)  # the tagger's own output layer starts with zeros
    before = parameters(nlp)
    nlp.update(examples, sgd=sgd)
    assert np.abs(parameters(nlp) - before).max() > 0
    assert not gradients(nlp).any()


def test_an_excluded_listener_opens_no_door_to_a_frozen_encoder(bert_dir):
    nlp, examples = shared(bert_dir, n_ner=2)
    nlp.update(examples, sgd=False, exclude=["ner1"])
    for p in nlp.get_pipe("luke").model.shims[0].module.parameters():
        p.grad = None
    nlp.update(examples, sgd=False, exclude=["luke"])
    assert not gradients(nlp).any()


def test_an_excluded_listener_is_waited_for_once_only(bert_dir):
    nlp, examples = shared(bert_dir, n_ner=2)
    sgd = SGD(0.05, use_averages=False)
    for _ in range(2):
        before = parameters(nlp)
        nlp.update(examples, sgd=sgd, exclude=["ner1"])
    assert np.abs(parameters(nlp) - before).max() > 0
    assert not gradients(nlp).any()


def test_an_empty_last_micro_batch_does_not_hold_the_step_back(bert_dir):
    nlp, examples = shared(bert_dir)
    sgd = SGD(0.05, use_averages=False)
    before = parameters(nlp)
    nlp.update(examples, sgd=False)
    nlp.update([Example(nlp.make_doc(""), nlp.make_doc(""))], sgd=False)
    for _, component in nlp.pipeline:
        component.finish_update(sgd)
    assert np.abs(parameters(nlp) - before).max() > 0


def test_a_listener_belongs_to_the_last_upstream_before_it(bert_dir):
    nlp = spacy.blank("en")
    for name in ("first", "second"):
        nlp.add_pipe("luke", name=name, config={"model": {"name": str(bert_dir)}})
    nlp.add_pipe("luke_ner", config={"model": {"encoder": LISTENER}})
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    nlp.update(examples, sgd=False, exclude=["second"])
    for name in ("first", "second"):
        module = nlp.get_pipe(name).model.shims[0].module
        assert all(p.grad is None for p in module.parameters())
    nlp.update(examples, sgd=False)
    module = nlp.get_pipe("second").model.shims[0].module
    assert any(p.grad is not None for p in module.parameters())


def test_checkpointing_bears_a_prediction_between_forward_and_backward(bert_dir):
    pytest.importorskip("spacy_transformers", reason="stock listeners need spacy-transformers")
    nlp, examples = shared(bert_dir, n_ner=0, tagger=True)
    nlp.get_pipe("luke").model.shims[0].module.network.gradient_checkpointing = True
    nlp.get_pipe("luke").cfg["eager"] = True
    for _ in range(2):
        nlp.update(examples, sgd=Adam(1e-3), drop=0.5, annotates=["luke"])


def test_a_stock_listener_cannot_be_replaced_and_says_what_can(bert_dir):
    pytest.importorskip("spacy_transformers", reason="stock listeners need spacy-transformers")
    nlp, _ = shared(bert_dir, tagger=True)
    with pytest.raises(ConfigError, match="LukeListener"):
        nlp.replace_listeners("luke", "tagger", ["model.tok2vec"])


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
