"""What pretraining starts from, and what it leaves."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
import spacy
import torch
from spacy.tokens import Span

from spacy_luke.checkpoint.names import is_extra_query, plain_query, to_published
from spacy_luke.checkpoint.read import read_checkpoint
from spacy_luke.errors import StageError
from spacy_luke.model.packing import Entities, LukeInputs, Words
from spacy_luke.pretraining.manifest import read_manifest
from spacy_luke.pretraining.objective import PretrainingModel
from spacy_luke.pretraining.pretrain import LOG, fresh_heads, read_log
from spacy_luke.vocab.entity_vocab import SPECIALS, EntityVocab
from tests.pretraining.run_training import run
from tests.pretraining.world import make_world


def test_a_luke_goes_on_with_its_heads_and_with_the_entities_it_knows(
    make_checkpoint, tmp_path, caplog
):
    spacy.util.logger.propagate = True
    encoder = make_checkpoint("luke", "LukeForMaskedLM")
    make_world(tmp_path, encoder)
    after = read_checkpoint(run(tmp_path, encoder, tmp_path / "out", {"phases": [(1, 0.0, False)]}))
    before = read_checkpoint(encoder)
    tables = [x.weights["entity_embeddings.entities.weight"] for x in (before, after)]
    known = [x for x in after.entities.names if x in before.entities.names]
    assert {"Paris", "[MASK]"} < set(known) and tables[1].shape == (10, 16)
    (told,) = (x for x in read_log(tmp_path / "out" / LOG) if x["kind"] == "start")
    kept = len(set(known) - set(SPECIALS))
    assert (told["entities"], told["entities_kept"]) == (6, kept) and kept
    assert "keeps its row" not in caplog.text
    names = {x if x in SPECIALS else f"de:{x}": i for x, i in before.entities.names.items()}
    german = replace(before, entities=EntityVocab(names))
    values = {"phases": [(1, 0.0, False)]}
    run(tmp_path, encoder, tmp_path / "other", values, checkpoint=german)
    assert "No entity of the vocabulary keeps its row" in caplog.text
    for name in set(known) - {"[PAD]"}:
        rows = [t[x.entities.names[name]] for t, x in zip(tables, (before, after))]
        assert torch.equal(*rows)
    assert after.others.keys() == before.others.keys()
    assert torch.equal(after.others["lm_head.bias"], before.others["lm_head.bias"])


def test_plain_attention_is_trained_and_what_follows_is_entity_aware(
    world, make_checkpoint, tmp_path, caplog
):
    """As published: the extra queries start as copies of ``query`` when fine-tuning begins."""
    spacy.util.logger.propagate = True
    encoder = make_checkpoint("luke", "LukeForMaskedLM")
    make_world(tmp_path, encoder)
    start = read_checkpoint(encoder, entity_aware=False)
    values = {"phases": [(2, 1e-2, False)]}
    after = read_checkpoint(run(tmp_path, encoder, tmp_path / "out", values, checkpoint=start))
    assert "are copies of the plain queries" in caplog.text
    assert after.config.use_entity_aware_attention and not after.source.filled
    published = to_published(after.weights)
    for name in filter(is_extra_query, published):
        assert torch.equal(published[name], published[plain_query(name)])
    query = "encoder.layer.0.attention.self.query.weight"
    assert not torch.equal(published[query], to_published(start.weights)[query])


@pytest.mark.parametrize("kind", ["bert", "roberta", "xlm-roberta"])
def test_the_masked_word_head_of_a_plain_encoder_goes_on(make_checkpoint, kind):
    name = {"bert": "Bert", "roberta": "Roberta", "xlm-roberta": "XLMRoberta"}[kind]
    transformers = pytest.importorskip("transformers")
    directory = make_checkpoint(kind, f"{name}ForMaskedLM")
    theirs = getattr(transformers, f"{name}ForMaskedLM").from_pretrained(directory).eval()
    start = read_checkpoint(directory)
    assert not any(x.startswith("word_head") for x in fresh_heads(start))
    model = PretrainingModel.start(start, "full", 0).eval()
    ids = np.array([start.pieces.cls_id, 7, 9, 11, start.pieces.sep_id])
    nothing = np.zeros(0, dtype=np.int64)
    inputs = LukeInputs(
        Words(ids, np.array([0, 5])),
        Entities(nothing, nothing, nothing, np.zeros(2, dtype=np.int64)),
    )
    with torch.no_grad():
        words = model.luke(inputs).words
        ours = model.word_head(words, model.luke.word_embeddings.words.weight)
        expected = theirs(torch.from_numpy(ids)[None]).logits[0]
    assert (ours - expected).abs().max() < 1e-5


def test_the_manifest_says_what_a_model_was_made_from(world, bert_dir, tmp_path):
    model = run(world, bert_dir, tmp_path, {"seed": 3, "phases": [(4, 1e-3, False)]})
    manifest = read_manifest(tmp_path, "pretrain")
    assert manifest.settings["seed"] == 3 and manifest.settings["attention"] == "full"
    assert manifest.settings["phases"] == [{"steps": 4, "rate": 1e-3, "entities_only": False}]
    assert manifest.inputs["shards"] == read_manifest(world / "shards", "shards").fingerprint
    assert manifest.counts == {"steps": 4, "sequences": 32}
    assert manifest.paths("model.safetensors") == [model / "model.safetensors"]
    manifest.verify()


def test_a_world_too_small_to_hold_anything_out_is_told(bert_dir, tmp_path, caplog):
    for name, share in (("one", 1e-6), ("none", 0.0)):
        make_world(tmp_path / name, bert_dir, n=12, held_out=share)
        run(tmp_path / name, bert_dir, tmp_path / name / "run", {})
        assert ("Nothing is evaluated" in caplog.text) is (share > 0)
        caplog.clear()


def test_what_is_finished_is_not_done_again(world, bert_dir, tmp_path):
    """Not even where its checkpoints have been removed to make room."""
    model = run(world, bert_dir, tmp_path, {})
    log, data = (tmp_path / LOG).read_bytes(), (model / "model.safetensors").read_bytes()
    shutil.rmtree(tmp_path / "checkpoints")
    assert run(world, bert_dir, tmp_path, {}) == model
    assert not (tmp_path / "checkpoints").exists() and (tmp_path / LOG).read_bytes() == log
    (model / "model.safetensors").unlink()
    with pytest.raises(StageError, match="model.safetensors is missing.*run 'pretrain'"):
        run(world, bert_dir, tmp_path, {})
    assert (tmp_path / LOG).read_bytes() == log
    (tmp_path / "manifest.json").unlink()
    run(world, bert_dir, tmp_path, {})
    assert (model / "model.safetensors").read_bytes() == data


def test_what_killed_runs_leave_beside_the_model_goes(world, bert_dir, tmp_path):
    run(world, bert_dir, tmp_path, {})
    before = {x.name for x in tmp_path.iterdir()}
    (tmp_path / ".model.0a1b2c3d" / "model").mkdir(parents=True)
    (tmp_path / ".manifest.json.0a1b2c3d").touch()
    (tmp_path / "model").rename(tmp_path / ".model.89abcdef")
    (tmp_path / "manifest.json").unlink()
    run(world, bert_dir, tmp_path, {})
    assert {x.name for x in tmp_path.iterdir()} == before
    read_manifest(tmp_path, "pretrain").verify()


@pytest.mark.plots
def test_the_finished_model_starts_any_component(world, bert_dir, tmp_path):
    model = run(world, bert_dir, tmp_path / "out", {"phases": [(2, 1e-3, False)]})
    nlp = spacy.blank("en")
    nlp.add_pipe("luke", config={"model": {"name": str(model)}})
    nlp.initialize()
    doc = nlp("Paris is the capital of France.")
    doc.ents = [Span(doc, 0, 1, "LOC", kb_id="Paris")]
    assert np.isfinite(doc.ents[0]._.luke_vector).all()
    assert (tmp_path / "out" / "log.svg").read_text().startswith("<?xml")
