"""Entity rows of the encoder as a term of luke_linker's scores; attention and inference."""

import pickle

import numpy as np
import pytest
import spacy
import torch

from spacy_luke.errors import ConfigError
from spacy_luke.kb.knowledge_base import MappedKB
from spacy_luke.layers.candidate_scorer import row_logits
from spacy_luke.layers.encoder import to_checkpoint
from spacy_luke.layers.task_layer import encoder_below, encoder_of, head_of
from spacy_luke.pipeline.entity_store import replace_entities
from spacy_luke.pipeline.kb_rows import kb_rows
from spacy_luke.pipeline.masked_entities import mention_features
from spacy_luke.vocab.entity_vocab import EntityVocab
from tests.kb.conftest import build
from tests.pipeline.conftest import LISTENER, fit
from tests.pipeline.linker_data import TEXTS, links, make_docs, make_examples, make_linker

# Of the names, "Tokyo (band)" is not in the encoder's vocabulary.
TABLE, BIAS = "entity_embeddings.entities.weight", "entity_predictions.bias"
FULL = {"attention": "full"}


@pytest.fixture(scope="module")
def masked_dir(make_checkpoint):
    return make_checkpoint("luke", "LukeForMaskedLM")


def linker_of(nlp):
    return nlp.get_pipe("luke_linker")


def logits_of(nlp, texts=TEXTS):
    _, scores = linker_of(nlp).predict(make_docs(nlp, texts))
    return scores.logits


def ids_of(nlp, allowed, texts=(("Tokyo grew", [(0, 1, "")]),)):
    """Logits of the candidates ``allowed``, after that of "NIL", of a text's first mention."""
    (doc,) = make_docs(nlp, texts)
    doc.ents[0]._.allowed_ids = allowed
    query, scores = linker_of(nlp).predict([doc])
    ids = [linker_of(nlp).kb.tables.ids[row] for row in query.rows[0]]
    found = dict(zip(ids, scores.logits[0, 1:].tolist()))
    return np.asarray([scores.logits[0, 0], *(found[x] for x in allowed)])


@pytest.mark.parametrize("kind", ["bert", "luke", "lite"])
def test_nothing_changes_without_a_head_or_titles(make_checkpoint, tmp_path, kind):
    directory = make_checkpoint(kind, "LukeForMaskedLM" if kind == "lite" else None)
    found = []
    for rows in (True, False):
        nlp = make_linker(directory, tmp_path / "kb", model={"rows": rows})
        fit(nlp, make_examples(nlp), 2)
        head = head_of(linker_of(nlp).model)
        found.append((logits_of(nlp), head.state_dict(), head.config))
    (one, state, config), (other, other_state, other_config) = found
    assert np.array_equal(one, other) and config == other_config
    assert state.keys() == other_state.keys()
    assert all(torch.equal(state[name], other_state[name]) for name in state)


def test_the_term_is_the_heads_logit_relative_to_candidates_with_rows(masked_dir, tmp_path):
    allowed = ["kyoto", "city", "band", "ada"]
    found = {}
    for rows in (True, False):
        nlp = make_linker(masked_dir, tmp_path / "kb", model={"rows": rows, **FULL})
        found[rows] = ids_of(nlp, allowed)
    pipe = linker_of(nlp)
    checkpoint = to_checkpoint(encoder_of(pipe.model))
    (doc,) = make_docs(nlp, [("Tokyo grew", [(0, 1, "")])])
    features, _ = mention_features(encoder_below(pipe.model), checkpoint, list(doc.ents))
    rows = [checkpoint.entities.names[x] for x in ("Kyoto", "Tokyo", "Ada Lovelace")]
    expected = (
        checkpoint.weights[TABLE][rows] @ features[0] + checkpoint.others[BIAS][rows]
    ).numpy()
    term = (found[True] - found[False]).tolist()
    nil, kyoto, city, band, ada = term
    middle = (expected.mean() + expected.max()) / 2
    assert [kyoto, city, ada] == pytest.approx((expected - middle).tolist(), abs=1e-4)
    assert band == pytest.approx(0.0, abs=1e-6)  # it has no row
    assert nil == 0.0


def test_a_single_candidate_with_a_row_gains_nothing(masked_dir, tmp_path):
    """Its logit says nothing: there is no other one to compare it with."""
    found = [
        logits_of(make_linker(masked_dir, tmp_path / "kb", model={"rows": rows}), TEXTS[1:2])
        for rows in (True, False)
    ]
    assert np.isfinite(found).all() and found[0] == pytest.approx(found[1], abs=1e-6)


def test_names_find_rows_by_id_then_name_in_the_language(tmp_path):
    vocab = EntityVocab(
        {"[MASK]": 0, "en:Tokyo": 1, "ja:東京": 1, "de:Köln": 2, "en:Q5": 3, "Plain": 4}
    )
    records = [
        {"id": "Q1", "name": "Tokyo"},
        {"id": "東京", "name": "Plain"},  # the id first
        {"id": "Q5", "name": "Tokyo"},
        {"id": "2", "name": "Köln"},
        {"id": "3", "name": "de:Köln"},
        {"id": "4", "name": "[MASK]"},
        {"id": "5", "name": "Plain"},
        {"id": "6", "name": "Unheard Of"},
    ]
    build(tmp_path / "kb", records)
    kb = MappedKB.open(tmp_path / "kb", spacy.blank("xx").vocab)
    expected = {
        "en": [1, 4, 3, -1, 2, -1, 4, -1],
        "ja": [-1, 1, -1, -1, 2, -1, 4, -1],
        "de": [-1, 4, -1, 2, 2, -1, 4, -1],
        None: [-1, 4, -1, -1, 2, -1, 4, -1],
    }
    for language, rows in expected.items():
        assert kb_rows(kb, vocab, range(len(kb)), language).tolist() == rows, language
    assert kb_rows(kb, vocab, [], "en").shape == (0,)


def test_training_moves_the_transform_and_the_table(masked_dir, tmp_path):
    """The encoder changes so fast that older vectors of entities would not fit it any more."""
    nlp = make_linker(
        masked_dir, tmp_path / "kb", model={"learn_rate_factor": 3.0}, max_vector_age=1
    )
    pipe = linker_of(nlp)
    transform = row_logits(head_of(pipe.model)).transform
    table = encoder_of(pipe.model).network.entity_embeddings.entities.weight
    before = {name: x.clone() for name, x in transform.state_dict().items()}
    first = table.detach().clone()
    texts = [("Kyoto disagreed", [(0, 1, "kyoto")]), ("She sang in Kyoto", [(3, 4, "city")])]
    fit(nlp, make_examples(nlp, texts), 120, rate=1e-3)
    assert all(not torch.equal(x, before[name]) for name, x in transform.state_dict().items())
    changed = (table.detach() != first).any(1).nonzero().flatten().tolist()
    names = encoder_of(pipe.model).entities.names
    assert {names["Tokyo"], names["Kyoto"], names["[MASK]"]} == set(changed)
    assert [links(doc) for doc in nlp.pipe(make_docs(nlp, texts))] == [["kyoto"], ["city"]]


@pytest.mark.parametrize("form", ["stored", "half"])
def test_stored_rows_are_used_and_stay(masked_dir, tmp_path, form):
    encoder = {"@architectures": "spacy-luke.LukeEncoder.v1", "name": str(masked_dir)}
    nlp = make_linker({**encoder, "entity_table": form}, tmp_path / "kb")
    trained = make_linker(masked_dir, tmp_path / "kb2")
    assert logits_of(nlp) == pytest.approx(logits_of(trained), abs=2e-2 if form == "half" else 1e-5)
    fit(nlp, make_examples(nlp), 2)
    table = encoder_of(linker_of(nlp).model).network.entity_embeddings.table
    assert isinstance(table, np.ndarray)


def test_the_head_alone_learns_beside_a_frozen_encoder(masked_dir, tmp_path):
    nlp = make_linker({**LISTENER, "name": str(masked_dir)}, tmp_path / "kb")
    pipe = linker_of(nlp)
    transform = row_logits(head_of(pipe.model)).transform
    before, table = (
        transform.dense.weight.clone(),
        encoder_of(pipe.model).network.state_dict()[TABLE],
    )
    first = table.clone()
    with nlp.select_pipes(disable=["luke"]):
        fit(nlp, make_examples(nlp, [("Kyoto grew", [(0, 1, "kyoto")])]), 3)
    assert not torch.equal(transform.dense.weight, before) and torch.equal(table, first)


def test_saved_pipelines_have_the_same_answers(masked_dir, tmp_path):
    nlp = make_linker(masked_dir, tmp_path / "kb", model={**FULL, "inference": "global"})
    fit(nlp, make_examples(nlp), 5)
    expected = logits_of(nlp)
    nlp.to_disk(tmp_path / "saved")
    empty = spacy.util.load_model_from_config(nlp.config.copy(), vocab=True)
    for other in (
        spacy.load(tmp_path / "saved"),
        empty.from_bytes(nlp.to_bytes()),
        pickle.loads(pickle.dumps(nlp)),
    ):
        assert np.array_equal(logits_of(other), expected)


def test_rows_follow_an_edited_vocabulary(masked_dir, tmp_path):
    nlp = make_linker(masked_dir, tmp_path / "kb")
    before = ids_of(nlp, ["kyoto", "city", "ada"])
    node, names = (
        encoder_below(linker_of(nlp).model),
        ["[MASK]", "Kyoto", "[UNK]", "Tokyo", "[PAD]"],
    )
    kept = EntityVocab({x: i for i, x in enumerate([*names, "Ada Lovelace"])})
    replace_entities(node, kept)
    assert ids_of(nlp, ["kyoto", "city", "ada"]) == pytest.approx(before, abs=1e-5)
    replace_entities(node, EntityVocab({x: i for i, x in enumerate(names)}))
    without = ids_of(nlp, ["kyoto", "city", "ada"])
    assert without[[1, 2]] != pytest.approx(before[[1, 2]], abs=1e-3)


# Attention and inference

TWO = ("Tokyo met Kyoto", [(0, 1, ""), (2, 3, "")])
ONE = ("Tokyo met Kyoto", [(0, 1, "")])


@pytest.mark.parametrize("attention,same", [("probe", True), ("full", False)])
def test_mentions_see_each_other_in_full_attention_alone(masked_dir, tmp_path, attention, same):
    nlp = make_linker(masked_dir, tmp_path / "kb", model={"attention": attention})
    fit(nlp, make_examples(nlp), 3)  # so that [MASK] counts beyond its row
    both, alone = logits_of(nlp, [TWO])[0], logits_of(nlp, [ONE])[0]
    assert np.allclose(both[:3], alone[:3], atol=1e-5) == same


def test_global_inference_shows_resolved_entities(masked_dir, tmp_path):
    found = {}
    for inference in ("local", "global"):
        nlp = make_linker(masked_dir, tmp_path / "kb", model={**FULL, "inference": inference})
        linker_of(nlp).nil_bias = 1000.0
        docs = make_docs(nlp, [("Kyoto met Tokyo and Kyoto", [(0, 1, ""), (2, 3, ""), (4, 5, "")])])
        for ent in docs[0].ents:
            ent._.allowed_ids = ["city", "kyoto", "ada"]
        _, scores = linker_of(nlp).predict(docs)
        found[inference] = scores.logits
    changed = np.abs(found["local"] - found["global"]).max(1) > 1e-4
    assert changed.sum() == 2  # all but the first that is resolved
    linker_of(nlp).threshold = 1.0  # what is "NIL" by it is not shown
    _, scores = linker_of(nlp).predict(docs)
    assert np.allclose(scores.logits, found["local"], atol=1e-5)


def test_global_inference_does_not_depend_on_the_batch(masked_dir, tmp_path):
    nlp = make_linker(masked_dir, tmp_path / "kb", model={**FULL, "inference": "global"})
    linker_of(nlp).nil_bias = 1000.0
    together = list(nlp.pipe(make_docs(nlp, TEXTS * 2)))
    for text, doc in zip(TEXTS * 2, together):
        (alone,) = nlp.pipe(make_docs(nlp, [text]))
        for one, other in zip(alone.ents, doc.ents):
            assert one.kb_id_ == other.kb_id_
            assert dict(one._.candidates) == pytest.approx(dict(other._.candidates), abs=1e-5)


def test_settings_that_cannot_work_are_refused(bert_dir, masked_dir, tmp_path):
    with pytest.raises(ConfigError, match="inference is 'global'.*set attention to 'full'"):
        make_linker(masked_dir, tmp_path / "kb", model={"inference": "global"})
    with pytest.raises(ConfigError, match="rows is 'only'.*no masked-entity head"):
        make_linker(bert_dir, tmp_path / "kb", model={"rows": "only"})
    with pytest.raises(ValueError, match="rows"):
        make_linker(masked_dir, tmp_path / "kb", model={"rows": "some"})
    with pytest.raises(ConfigError, match="max_rounds"):
        make_linker(masked_dir, tmp_path / "kb", model={"max_rounds": 0})
