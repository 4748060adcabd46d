import pickle

import numpy as np
import pytest
from spacy.util import registry
from thinc.api import Model, set_dropout_rate

from spacy_luke.errors import CheckpointError, ConfigError
from spacy_luke.layers.architectures import LukeEncoder_v1
from spacy_luke.layers.encoder import module_of
from tests.conftest import blank

TEXTS = ["Ada Lovelace was born in London.", "", "   ", "Tokyo"]
ARCHITECTURES = [
    "spacy-luke.LukeEncoder.v1",
    "spacy-luke.LukeListener.v1",
    "spacy-luke.SpanScorer.v1",
]


def encoder(directory, **settings) -> Model:
    model = LukeEncoder_v1(str(directory), **settings)
    model.initialize()
    return model


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_every_registered_architecture_can_be_found(name):
    assert callable(registry.architectures.get(name))


@pytest.mark.parametrize("kind", ["luke_dir", "lite_dir", "bert_dir", "roberta_dir", "xlmr_dir"])
def test_it_is_a_tok2vec_layer_with_a_row_a_token(kind, request):
    model = encoder(request.getfixturevalue(kind))
    docs = [blank("en")(text) for text in TEXTS]
    vectors = model.predict(docs)
    assert [v.shape for v in vectors] == [(len(doc), 32) for doc in docs]
    assert all(np.isfinite(v).all() and v.dtype == np.float32 for v in vectors)


@pytest.mark.parametrize("way", ["bytes", "disk", "copy", "pickle"])
def test_copies_give_the_same_vectors_without_the_checkpoint(luke_dir, tmp_path, way):
    model = encoder(luke_dir, word_shapes=True)
    docs = [blank("en")(text) for text in TEXTS]
    if way == "copy":
        other = model.copy()
    elif way == "pickle":
        other = pickle.loads(pickle.dumps(model))
    else:
        other = LukeEncoder_v1("a directory that is not there", word_shapes=True)
        if way == "bytes":
            other.from_bytes(model.to_bytes())
        else:
            model.to_disk(tmp_path / "model")
            other.from_disk(tmp_path / "model")
    for one, two in zip(model.predict(docs), other.predict(docs)):
        assert np.array_equal(one, two)


def test_a_damaged_file_is_one_clear_error(luke_dir):
    model = encoder(luke_dir)
    shim = model.shims[0]
    data = shim.to_bytes()
    for broken in (data[: len(data) // 2], b"nothing of the kind", data[:8] + b"x" + data[9:]):
        with pytest.raises(CheckpointError):
            shim.from_bytes(broken)


def test_gradients_flow_and_dropout_is_passed_on(bert_dir):
    model = encoder(bert_dir)
    docs = [blank("en")(text) for text in TEXTS]
    set_dropout_rate(model, 0.5)
    one, backprop = model.begin_update(docs)
    two, _ = model.begin_update(docs)
    assert not np.allclose(one[0], two[0])
    backprop([np.ones_like(v) for v in one])
    gradient = module_of(model).network.layers[0].qkv.weight.grad
    assert gradient is not None and gradient.abs().sum() > 0
    set_dropout_rate(model, 0.0)
    three, _ = model.begin_update(docs)
    assert np.allclose(three[0], model.predict(docs)[0], atol=1e-5)


def test_pooling_takes_the_mean_or_the_first_piece(bert_dir):
    doc = blank("en")("Lovelace Babbage")
    mean, first = (encoder(bert_dir, pooling=p).predict([doc])[0] for p in ("mean", "first"))
    assert not np.allclose(mean, first)


def test_word_shapes_tell_cases_apart_for_an_uncased_encoder(bert_dir):
    docs = [blank("en")(text) for text in ("apple", "Apple", "APPLE")]
    plain = encoder(bert_dir).predict(docs)
    shaped = encoder(bert_dir, word_shapes=True).predict(docs)
    assert np.allclose(plain[0], plain[1], atol=1e-6)
    assert not np.allclose(shaped[0], shaped[1], atol=1e-3)
    assert not np.allclose(shaped[1], shaped[2], atol=1e-3)


def test_word_shapes_are_dropped_in_training_alone(bert_dir):
    model = encoder(bert_dir, word_shapes=True)
    set_dropout_rate(model, 0.0)
    docs = [blank("en")("Apple " * 20)]
    texts = [model.begin_update(docs)[0][0] for _ in range(2)]
    assert not np.allclose(texts[0], texts[1], atol=1e-4)
    assert np.array_equal(model.predict(docs)[0], model.predict(docs)[0])
    model = encoder(bert_dir, word_shapes=True, word_shape_dropout=0.0)
    set_dropout_rate(model, 0.0)
    assert np.array_equal(*(model.begin_update(docs)[0][0] for _ in range(2)))


def test_frozen_words_do_not_train(bert_dir):
    model = encoder(bert_dir, freeze_word_embeddings=True)
    vectors, backprop = model.begin_update([blank("en")("Tokyo")])
    backprop([np.ones_like(v) for v in vectors])
    network = module_of(model).network
    assert network.word_embeddings.words.weight.grad is None
    assert network.word_embeddings.positions.weight.grad is not None


def test_an_encoder_whose_rates_are_0_has_no_backward_pass(bert_dir):
    """Whatever is new in it."""
    settings = {"word_shapes": True, "new_learn_rate_factor": 5.0}
    model = encoder(bert_dir, learn_rate_factor=0.0, **settings)
    vectors, backprop = model.begin_update([blank("en")("Tokyo")])
    backprop([np.ones_like(v) for v in vectors])
    parameters = list(module_of(model).parameters())
    assert parameters and not any(x.requires_grad or x.grad is not None for x in parameters)
    only_new = encoder(bert_dir, new_learn_rate_factor=0.0, word_shapes=True)
    trained = {x: p.requires_grad for x, p in module_of(only_new).named_parameters()}
    assert not trained["network.word_embeddings.shapes.weight"] and sum(trained.values()) > 10


def test_entity_awareness_is_the_checkpoints_unless_set(make_checkpoint):
    plain = make_checkpoint("luke", use_entity_aware_attention=False)
    assert module_of(encoder(plain)).network.layers[0].entity_queries is None
    aware = module_of(encoder(plain, entity_aware=True)).network
    query = aware.layers[0].qkv.weight[: aware.config.hidden_size]
    assert (aware.layers[0].word_to_entity.weight == query).all()


def test_an_encoder_without_weights_says_what_to_do():
    with pytest.raises(ConfigError, match=r"nlp\.initialize"):
        LukeEncoder_v1().predict([blank("en")("Tokyo")])


def test_a_missing_directory_is_named(tmp_path):
    with pytest.raises(CheckpointError, match="nowhere"):
        LukeEncoder_v1(str(tmp_path / "nowhere")).initialize()


@pytest.mark.parametrize(
    "settings,name",
    [
        ({"tokenization": "words"}, "tokenization"),
        ({"spaces": "all"}, "spaces"),
        ({"spaces": "conll", "tokenization": "mentions"}, "cuts text only around mentions"),
        ({"pooling": "max"}, "pooling"),
        ({"window": 10, "overlap": 10}, "overlap"),
    ],
)
def test_a_setting_that_cannot_work_is_named(settings, name):
    with pytest.raises(ConfigError, match=name):
        LukeEncoder_v1("x", **settings)


def test_spaces_that_change_nothing_for_the_tokenizer_are_warned_of(bert_dir, luke_dir, caplog):
    encoder(luke_dir, spaces="words")  # byte-level BPE
    encoder(bert_dir)
    assert "spaces" not in caplog.text
    encoder(bert_dir, spaces="words")
    assert "LukeEncoder.spaces is 'words', which changes nothing" in caplog.text
