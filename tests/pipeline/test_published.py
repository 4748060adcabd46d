"""A published directory to a pipeline and back: every tensor bit for bit, the same logits."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import spacy
import torch
from safetensors.torch import save_file
from spacy.tokens import Doc, Span

from spacy_luke.errors import CheckpointError, ConfigError
from spacy_luke.pipeline.published import export_component, import_checkpoint
from tests.conftest import SENTENCES
from tests.pipeline.published_data import (
    DOC,
    LABELS,
    MASKED,
    NER,
    PAIRS,
    QA,
    TYPES,
    same,
    tensors,
)

transformers = pytest.importorskip("transformers")

COMPONENTS = {
    NER: "luke_ner",
    PAIRS: "luke_relation",
    TYPES: "luke_entity_typing",
    MASKED: "luke",
    QA: "luke_qa",
    "LukeModel": "luke",
}


def through(source: Path, tmp_path: Path, source_names: bool = False) -> Path:
    """Import, save, load, export."""
    import_checkpoint(str(source)).to_disk(tmp_path / "pipeline")
    nlp = spacy.load(tmp_path / "pipeline")
    export_component(nlp, tmp_path / "out", source_names=source_names)
    return tmp_path / "out"


@pytest.mark.parametrize("kind", ["luke", "lite", "mluke", "luke-japanese", "bert-luke"])
@pytest.mark.parametrize("architecture", COMPONENTS)
def test_every_tensor_comes_back(published, tmp_path, architecture, kind):
    source = published(architecture, kind)
    out = through(source, tmp_path)
    same(tensors(source), tensors(out))
    before, after = (json.loads((x / "config.json").read_text()) for x in (source, out))
    assert {k: after.get(k) for k in before} == before
    names = [json.loads((x / "entity_vocab.json").read_text()) for x in (source, out)]
    assert names[0] == names[1]


def rewritten(source: Path, tmp_path: Path, change) -> Path:
    """The directory with its tensors changed, as safetensors."""
    path = tmp_path / "changed"
    shutil.copytree(source, path)
    found = tensors(path)
    save_file(change(found), path / "model.safetensors", {"format": "pt"})
    return path


def test_names_without_prefix_and_copies_of_tables_come_back(published, tmp_path):
    def bare(found):
        result = {name.removeprefix("luke."): x for name, x in found.items()}
        result["entity_predictions.decoder.weight"] = found[
            "luke.entity_embeddings.entity_embeddings.weight"
        ].clone()
        result["lm_head.decoder.weight"] = found["luke.embeddings.word_embeddings.weight"].clone()
        result["embeddings.position_ids"] = torch.arange(130)[None]
        return result

    source = rewritten(published(MASKED), tmp_path, bare)
    same(tensors(source), tensors(through(source, tmp_path, source_names=True)))
    export_component(spacy.load(tmp_path / "pipeline"), tmp_path / "today")
    assert not {x for x in tensors(tmp_path / "today") if x.startswith(("embeddings", "encoder"))}
    model = transformers.LukeForMaskedLM.from_pretrained(tmp_path / "today")
    table = model.luke.entity_embeddings.entity_embeddings.weight
    assert torch.equal(table, tensors(source)["entity_embeddings.entity_embeddings.weight"])


def test_a_decoder_that_is_no_copy_comes_back_too(published, tmp_path):
    def other(found):
        found["entity_predictions.decoder.weight"] = torch.ones(
            found["luke.entity_embeddings.entity_embeddings.weight"].shape
        )
        return found

    source = rewritten(published(MASKED), tmp_path, other)
    same(tensors(source), tensors(through(source, tmp_path)))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_tensors_come_back_in_their_precision(published, tmp_path, dtype):
    source = rewritten(published(NER), tmp_path, lambda x: {k: v.to(dtype) for k, v in x.items()})
    same(tensors(source), tensors(through(source, tmp_path)))


def test_what_float32_cannot_hold_is_told(published, tmp_path, caplog):
    third = torch.tensor(1 / 3, dtype=torch.float64)

    def doubled(found):
        return {name: x.double() * third for name, x in found.items()}

    source = rewritten(published(NER), tmp_path, doubled)
    with caplog.at_level("WARNING", logger="spacy.luke"):
        spacy.util.logger.propagate = True
        import_checkpoint(str(source))
    assert "tensors in float64 are rounded to float32" in caplog.text


def test_projections_that_were_filled_stay_out_until_they_are_trained(published, tmp_path):
    def lacking(found):
        return {name: x for name, x in found.items() if "2" not in name.split(".")[-2]}

    source = rewritten(published(MASKED), tmp_path, lacking)
    assert not any("w2e" in name for name in tensors(source))
    nlp = import_checkpoint(str(source))
    export_component(nlp, tmp_path / "before")
    same(tensors(source), tensors(tmp_path / "before"))
    network = nlp.get_pipe("luke").model.shims[0].module.network
    with torch.no_grad():
        network.layers[1].word_to_entity.weight[0, 0] += 1
    export_component(nlp, tmp_path / "after")
    new = set(tensors(tmp_path / "after")) - set(tensors(source))
    assert len(new) == 12 and all("2" in name.split(".")[-2] for name in new)
    for out, aware in (("before", False), ("after", True)):
        config = json.loads((tmp_path / out / "config.json").read_text())
        assert config["use_entity_aware_attention"] is aware
        _, loading = transformers.LukeForMaskedLM.from_pretrained(
            tmp_path / out, output_loading_info=True
        )
        assert not (loading["missing_keys"] or loading["mismatched_keys"]), loading


def test_without_extra_queries_transformers_gives_the_same_vectors(published, tmp_path):
    """It would draw what a file lacks; the export says that attention is plain instead."""

    def lacking(found):
        return {name: x for name, x in found.items() if "2" not in name.split(".")[-2]}

    source = rewritten(published("LukeModel"), tmp_path, lacking)
    out = through(source, tmp_path)
    nlp = spacy.load(tmp_path / "pipeline")
    doc = nlp.make_doc("Ada Lovelace was born in London.")
    doc.ents = [Span(doc, 0, 2, "PER"), Span(doc, 5, 6, "LOC")]
    ours = nlp.get_pipe("luke")(doc)._.luke.entity_vectors
    tokenizer = transformers.LukeTokenizer.from_pretrained(out)
    spans = [(ent.start_char, ent.end_char) for ent in doc.ents]
    with torch.no_grad():
        inputs = tokenizer(doc.text, entity_spans=spans, return_tensors="pt")
        theirs = transformers.LukeModel.from_pretrained(out)(**inputs)
    assert np.abs(ours - theirs.entity_last_hidden_state[0].numpy()).max() < 1e-5


def test_extra_queries_of_a_plain_model_come_back(published, tmp_path):
    source = tmp_path / "plain"
    shutil.copytree(published("LukeModel"), source)
    config = json.loads((source / "config.json").read_text())
    (source / "config.json").write_text(json.dumps({**config, "use_entity_aware_attention": False}))
    same(tensors(source), tensors(through(source, tmp_path)))


@pytest.mark.parametrize("kind", ["luke", "lite", "mluke", "luke-japanese"])
@pytest.mark.parametrize("architecture", [NER, PAIRS, TYPES])
def test_transformers_gives_the_exported_model_the_logits_of_the_pipeline(
    published, tmp_path, architecture, kind
):
    out = through(published(architecture, kind), tmp_path)
    nlp = spacy.load(tmp_path / "pipeline")
    component = nlp.get_pipe(COMPONENTS[architecture])
    text, spans = DOC[architecture]
    doc = Doc(nlp.vocab, words=text.split(" "))
    doc.ents = [Span(doc, start, end, label="X") for start, end in spans]
    query, scores = component.predict([doc])
    order = [component._classes().index(x) for x in LABELS[architecture]]
    ours = scores.logits[:, order]
    model = getattr(transformers, architecture).from_pretrained(out).eval()
    byte_level = kind in ("luke", "lite")
    reader = transformers.LukeTokenizer if byte_level else transformers.MLukeTokenizer
    tokenizer = reader.from_pretrained(out)
    found = _theirs(architecture, model, tokenizer, doc, query, scores)
    assert ours.shape == found.shape and np.abs(ours - found).max() < 1e-5


def _theirs(architecture, model, tokenizer, doc, query, scores):
    """Their logits on the same pieces; positions and markers are theirs."""
    task = {
        NER: "entity_span_classification",
        PAIRS: "entity_pair_classification",
        TYPES: "entity_classification",
    }[architecture]
    assert tokenizer.task == task
    tokenizer.max_entity_length = {NER: 64, PAIRS: 2, TYPES: 1}[architecture]
    text = doc[:].text
    if architecture == NER:
        table = query.spans.dataXd[scores.rows].tolist()
        spans = [(doc[a].idx, doc[b - 1].idx + len(doc[b - 1])) for a, b in table]
        inputs = tokenizer(text, entity_spans=spans, return_tensors="pt")
        logits = model(**inputs).logits[0]
        return logits[: len(spans)].detach().numpy()
    spans = [(ent.start_char, ent.end_char) for ent in doc.ents]
    if architecture == TYPES:
        inputs = tokenizer(text, entity_spans=spans, return_tensors="pt")
        return model(**inputs).logits.detach().numpy()
    rows = []
    for head, tail in query.pairs.tolist():
        pair = [spans[head], spans[tail]]
        inputs = tokenizer(text, entity_spans=pair, return_tensors="pt")
        rows.append(model(**inputs).logits.detach().numpy())
    return np.concatenate(rows)


# As if they were not installed: their modules cannot be imported, and register nothing.
WITHOUT = """
import importlib.metadata as metadata
import sys

every = [x for found in metadata.distributions() for x in found.entry_points]
some = metadata.EntryPoints(x for x in every if "transformers" not in x.value)
metadata.entry_points = lambda **wanted: some.select(**wanted)

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("transformers", "spacy_transformers"):
            raise ModuleNotFoundError(f"{name} is not installed")

sys.meta_path.insert(0, Blocked())
import spacy
from spacy.tokens import Doc, Span
from typer.testing import CliRunner
from spacy_luke.cli import app

source, pipeline, out = sys.argv[1:]
for command in (["import", source, pipeline, "--lang", "en"], ["export", pipeline, out]):
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, (result.output, result.exception)
nlp = spacy.load(pipeline)
doc = nlp("Ada Lovelace was born in London.")
assert doc.spans["luke_ner"].attrs["scores"] is not None
assert "transformers" not in sys.modules
_, scores = nlp.get_pipe("luke_ner").predict([doc])
print(scores.logits[:, 0].tolist())
"""


def test_import_and_export_need_no_transformers(published, tmp_path):
    source, out = published(NER), tmp_path / "out"
    command = [sys.executable, "-c", WITHOUT, source, tmp_path / "pipeline", out]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    same(tensors(source), tensors(out))
    nlp = spacy.load(tmp_path / "pipeline")
    doc = nlp("Ada Lovelace was born in London.")
    query, scores = nlp.get_pipe("luke_ner").predict([doc])
    there = json.loads(done.stdout.strip().split("\n")[-1])
    assert np.allclose(there, scores.logits[:, 0], atol=1e-5)
    model = transformers.LukeForEntitySpanClassification.from_pretrained(out).eval()
    tokenizer = transformers.LukeTokenizer.from_pretrained(out)
    order = [nlp.get_pipe("luke_ner")._classes().index(x) for x in LABELS[NER]]
    found = _theirs(NER, model, tokenizer, doc, query, scores)
    assert np.abs(scores.logits[:, order] - found).max() < 1e-5


def test_a_tokenizers_settings_come_back(published, tmp_path):
    source = tmp_path / "source"
    shutil.copytree(published(PAIRS), source)
    values = {"task": "entity_pair_classification", "max_mention_length": 17, "x_file": "/tmp/x"}
    (source / "tokenizer_config.json").write_text(json.dumps(values))
    found = json.loads((through(source, tmp_path) / "tokenizer_config.json").read_text())
    assert found["task"] == "entity_pair_classification" and found["max_mention_length"] == 17
    assert "x_file" not in found


def test_nothing_beside_the_directory_is_touched(published, tmp_path):
    (tmp_path / ".out").mkdir()
    (tmp_path / ".out" / "mine").write_text("keep")
    nlp = import_checkpoint(str(published(MASKED)))
    export_component(nlp, tmp_path / "out")
    export_component(nlp, tmp_path / "new" / "parent" / "out")
    assert (tmp_path / ".out" / "mine").read_text() == "keep"
    assert sorted(x.name for x in tmp_path.iterdir()) == [".out", "new", "out"]


def test_masked_heads_are_left_behind_by_a_classifier_trained_from_them(published, tmp_path):
    settings = {"model": {"mode": "full", "label_weight": None}}
    nlp = spacy.blank("en")
    encoder = {
        "@architectures": "spacy-luke.LukeEncoder.v1",
        "name": str(published(MASKED)),
    }
    settings["model"].update({"@architectures": "spacy-luke.SpanScorer.v1", "encoder": encoder})
    nlp.add_pipe("luke_ner", config=settings).add_label("PER")
    nlp.initialize()
    assert export_component(nlp, tmp_path / "out") == NER
    assert not any(
        name.startswith(("lm_head", "entity_pred")) for name in tensors(tmp_path / "out")
    )
    transformers.LukeForEntitySpanClassification.from_pretrained(tmp_path / "out")


@pytest.mark.parametrize(
    "architecture",
    ["LukeForSequenceClassification", "LukeForTokenClassification", "LukeForMultipleChoice"],
)
def test_heads_that_ask_about_no_entities_are_refused(published, architecture):
    with pytest.raises(ConfigError, match=f"{architecture}.*not entities"):
        import_checkpoint(str(published(architecture)))


@pytest.mark.parametrize("mode", ["two-stage", "probe"])
def test_modes_of_our_own_are_not_exported(luke_dir, tmp_path, mode):
    encoder = {"@architectures": "spacy-luke.LukeEncoder.v1", "name": str(luke_dir)}
    model = {"@architectures": "spacy-luke.SpanScorer.v1", "mode": mode, "encoder": encoder}
    model["label_weight"] = None
    nlp = spacy.blank("en")
    nlp.add_pipe("luke_ner", config={"model": model}).add_label("PER")
    nlp.initialize()
    with pytest.raises(ConfigError, match=f"luke_ner has no published form: .* mode {mode}"):
        export_component(nlp, tmp_path / "out", "luke_ner")
    nlp.add_pipe("sentencizer", first=True)
    with pytest.raises(ConfigError) as caught:
        export_component(nlp, tmp_path / "out")
    message = str(caught.value)
    assert "No component has a published form (sentencizer: not a LUKE component" in message
    assert f"luke_ner: no published classifier has mode {mode}" in message
    assert "luke_ner trained in mode full" in message and "--component luke" in message
    assert not (tmp_path / "out").exists()


def test_a_head_that_reads_more_than_published_ones_is_not_exported(luke_dir, tmp_path):
    encoder = {"@architectures": "spacy-luke.LukeEncoder.v1", "name": str(luke_dir)}
    model = {"@architectures": "spacy-luke.SpanScorer.v1", "mode": "full", "encoder": encoder}
    nlp = spacy.blank("en")
    nlp.add_pipe("luke_ner", config={"model": {**model, "label_weight": 3.0}}).add_label("PER")
    nlp.initialize()
    with pytest.raises(ConfigError, match="no published classifier was trained with label_weight"):
        export_component(nlp, tmp_path / "out")


def test_which_component_is_exported_must_be_clear(luke_dir, published, tmp_path):
    nlp = import_checkpoint(str(luke_dir))
    nlp.add_pipe("luke_entity_typing", source=import_checkpoint(str(published(TYPES))))
    with pytest.raises(
        ConfigError, match=r"2 components.*\['luke', 'luke_entity_typing'\].*Name one"
    ):
        export_component(nlp, tmp_path / "out")
    with pytest.raises(ConfigError, match="no component 'ner'"):
        export_component(nlp, tmp_path / "out", "ner")
    assert export_component(nlp, tmp_path / "out", "luke") == "LukeModel"
    with pytest.raises(CheckpointError, match="exists"):
        export_component(nlp, tmp_path / "out", "luke")
    assert export_component(nlp, tmp_path / "types", "luke_entity_typing") == TYPES


def test_a_component_of_spacys_own_is_not_exported(published, tmp_path):
    nlp = import_checkpoint(str(published(NER)), "en")
    with pytest.raises(ConfigError, match="sentencizer is not a LUKE component"):
        export_component(nlp, tmp_path / "out", "sentencizer")


def test_an_imported_pipeline_works_at_once(published):
    nlp = import_checkpoint(str(published(NER)), "en")
    assert nlp.pipe_names == ["sentencizer", "luke_ner"]
    assert set(nlp.get_pipe("luke_ner").labels) == set(LABELS[NER]) - {"NIL"}
    for text in SENTENCES:
        assert nlp(text).spans["luke_ner"].attrs["scores"] is not None
    nlp = import_checkpoint(str(published(MASKED)))
    vectors = nlp("Ada Lovelace met Charles.")._.luke
    assert vectors.token_vectors.shape == (5, 32)
