"""``spacy luke entity-table``: which entities a saved pipeline knows, and what their rows are."""

import json

import numpy as np
import pytest
import spacy
import torch
from spacy.tokens import Doc, DocBin, Span
from typer.testing import CliRunner

from spacy_luke.cli import app
from spacy_luke.layers.encoder import to_checkpoint
from spacy_luke.pipeline import entity_vectors
from spacy_luke.pipeline.entity_store import find_encoder
from spacy_luke.pipeline.masked_entities import mention_features
from spacy_luke.pipeline.published import export_component, import_checkpoint

TABLE, BIAS = "entity_embeddings.entities.weight", "entity_predictions.bias"
SPECIALS = ["[MASK]", "[UNK]", "[PAD]", "[MASK2]"]


def run(*args) -> str:
    result = CliRunner().invoke(app, ["entity-table", *map(str, args)])
    assert result.exit_code == 0, result.output
    return " ".join(result.output.split())


def failed(*args) -> str:
    result = CliRunner().invoke(app, ["entity-table", *map(str, args)])
    assert result.exit_code == 1, result.output
    return " ".join(result.output.split())


def checkpoint(path):
    return to_checkpoint(spacy.load(path).get_pipe("luke").model.shims[0].module)


def rows(found, *names):
    return torch.stack([found.weights[TABLE][found.entities.names[x]] for x in names])


@pytest.fixture(scope="module")
def full(make_checkpoint, tmp_path_factory):
    path = tmp_path_factory.mktemp("pipelines") / "full"
    import_checkpoint(str(make_checkpoint("luke", "LukeForMaskedLM")), "en").to_disk(path)
    return path


def test_pruning_keeps_rows_exactly_and_tells_what_is_missing(full, tmp_path):
    (tmp_path / "names.txt").write_text("Tokyo\nAda_Lovelace\nAtlantis\n\n", "utf8")
    output = run(full, tmp_path / "out", "--keep", tmp_path / "names.txt")
    assert "1 names" in output and "Atlantis" in output and "6 entities (before: 23)" in output
    before, after = checkpoint(full), checkpoint(tmp_path / "out")
    assert list(after.entities.names) == [
        "[PAD]", "[UNK]", "[MASK]", "Tokyo", "Ada Lovelace", "[MASK2]",
    ]  # fmt: skip
    names = list(after.entities.names)
    assert torch.equal(rows(before, *names), rows(after, *names))
    assert after.others[BIAS].tolist() == [
        before.others[BIAS][before.entities.names[x]].item() for x in names
    ]


def test_what_is_kept_may_be_a_vocabulary_that_was_counted(full, tmp_path):
    lines = ["[PAD]\t0", "[UNK]\t0", "[MASK]\t0", "[MASK2]\t0", "Tokyo\t7", "Ada Lovelace\t2"]
    (tmp_path / "entity_vocab.tsv").write_text("\n".join(lines) + "\n", "utf8")
    output = run(full, tmp_path / "out", "--keep", tmp_path / "entity_vocab.tsv")
    assert "6 entities (before: 23)" in output and "not in the vocabulary" not in output


def test_rows_begin_anew_but_for_the_special_ones(full, tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        run(full, tmp_path / name, "--anew", "--seed", seed)
    before, *after = (checkpoint(x) for x in (full, *(tmp_path / x for x in "abc")))
    assert all(torch.equal(rows(before, *SPECIALS), rows(x, *SPECIALS)) for x in after)
    tokyo = [rows(x, "Tokyo") for x in (before, *after)]
    assert torch.equal(tokyo[1], tokyo[2])
    assert not any(torch.equal(tokyo[i], tokyo[j]) for i, j in ((0, 1), (0, 3), (1, 3)))
    index = after[0].entities.names["Tokyo"]
    assert after[0].others[BIAS][index] == 0.0


def test_full_to_lite_and_back_is_the_same_model(full, tmp_path):
    run(full, tmp_path / "lite", "--lite")
    lite = checkpoint(tmp_path / "lite")
    assert list(lite.entities.names) == SPECIALS and len(lite.weights[TABLE]) == 4
    run(tmp_path / "lite", tmp_path / "back", "--from", full)
    before, after = checkpoint(full), checkpoint(tmp_path / "back")
    assert dict(before.entities.names.items()) == dict(after.entities.names.items())
    assert all(torch.equal(before.weights[x], after.weights[x]) for x in before.weights)
    assert all(torch.equal(before.others[x], after.others[x]) for x in before.others)


def test_own_entities_stay_beside_those_of_a_source(full, tmp_path):
    run(full, tmp_path / "lite", "--lite")
    (tmp_path / "own.jsonl").write_text('{"title": "Halden"}', "utf8")
    run(tmp_path / "lite", tmp_path / "own", "--add", tmp_path / "own.jsonl")
    output = run(tmp_path / "own", tmp_path / "out", "--from", full)
    assert "24 entities (before: 5)" in output
    own, source, after = (checkpoint(x) for x in (tmp_path / "own", full, tmp_path / "out"))
    assert torch.equal(rows(own, "Halden", "[MASK]"), rows(after, "Halden", "[MASK]"))
    assert torch.equal(rows(source, "Tokyo", "Japan"), rows(after, "Tokyo", "Japan"))


def test_a_pipeline_is_saved_whole_or_not_at_all(full, tmp_path, monkeypatch):
    def fail(self, path, **kwargs):
        (path / "half").write_text("")
        raise OSError("No space left on device")

    monkeypatch.setattr("spacy.language.Language.to_disk", fail)
    assert "No space left" in failed(full, tmp_path / "out", "--lite")
    assert not list(tmp_path.iterdir())


def test_a_checkpoint_serves_as_source_too(full, tmp_path, make_checkpoint):
    other = make_checkpoint("luke", "LukeForMaskedLM")
    run(full, tmp_path / "lite", "--lite")
    run(tmp_path / "lite", tmp_path / "back", "--from", other)
    assert len(checkpoint(tmp_path / "back").entities) == 23


def test_own_entities_come_from_descriptions_names_and_mentions(full, tmp_path):
    lines = [
        {"title": "Orrin Vale", "description": "The painter Orrin Vale was born in London."},
        {"title": "Marrow", "description": "A river of Japan."},
        {"title": "Halden"},
    ]
    (tmp_path / "own.jsonl").write_text("\n".join(map(json.dumps, lines)), "utf8")
    assert "Added 3" in run(full, tmp_path / "one", "--add", tmp_path / "own.jsonl")
    before, after = checkpoint(full), checkpoint(tmp_path / "one")
    known = list(before.entities.names)
    assert torch.equal(rows(before, *known), rows(after, *known))
    new = rows(after, "Orrin Vale", "Marrow", "Halden")
    titles = [x for x in known if not x.startswith("[")]
    length = rows(before, *titles).norm(dim=1).mean()
    assert torch.allclose(new.norm(dim=1), length.expand(3), atol=1e-4)
    assert torch.linalg.matrix_rank(new) == 3
    level = np.mean([before.others[BIAS][before.entities.names[x]].item() for x in titles])
    assert np.allclose(after.others[BIAS][-3:].numpy(), level, atol=1e-5)

    vocab = spacy.blank("en").vocab
    docs = []
    for words, at, title in [
        (["In", "Orrin", "it", "rains"], 1, "Orrin"),
        (["Visit", "Orrin", "!"], 1, "Orrin"),
        (["Nothing", "here"], 0, ""),
        (["Visit", "Erewhon"], 1, "NIL"),
    ]:
        doc = Doc(vocab, words=words)
        doc.ents = [Span(doc, at, at + 1, "LOC", kb_id=title)]
        docs.append(doc)
    DocBin(docs=docs).to_disk(tmp_path / "own.spacy")
    told = run(full, tmp_path / "two", "--add", tmp_path / "own.spacy")
    assert "Added 1 entities, replaced the rows of 0" in told
    assert list(checkpoint(tmp_path / "two").entities.names)[-1] == "Orrin"


def test_an_added_entity_is_what_its_description_predicts(full, tmp_path):
    """Its row is the head's features at the mention: no other row of that length scores higher."""
    text = "The painter Orrin Vale was born in London."
    (tmp_path / "own.jsonl").write_text(
        json.dumps({"title": "Orrin Vale", "description": text}), "utf8"
    )
    run(full, tmp_path / "out", "--add", tmp_path / "own.jsonl")
    nlp = spacy.load(tmp_path / "out")
    found = checkpoint(tmp_path / "out")
    doc = nlp.make_doc(text)
    doc.ents = [Span(doc, 2, 4, "PER")]
    state = torch.tensor(nlp.get_pipe("luke")(doc)._.luke.entity_vectors)
    features, _ = mention_features(nlp.get_pipe("luke").model, found, doc.ents)
    table = torch.nn.functional.normalize(found.weights[TABLE], dim=1)
    assert (table @ features[0]).argmax() == found.entities.names["Orrin Vale"]
    doc.ents = [Span(doc, 2, 4, "PER", kb_id="Orrin Vale")]
    again = nlp.get_pipe("luke")(doc.copy())._.luke.entity_vectors
    assert np.abs(again - state.numpy()).max() > 1e-3  # it now enters as itself


def test_the_form_of_the_table_is_changed(full, tmp_path):
    run(full, tmp_path / "out", "--form", "half")
    path = tmp_path / "out" / "luke" / "encoder" / "entity_rows.npy"
    assert np.load(path).dtype == np.float16
    config = (tmp_path / "out" / "config.cfg").read_text()
    assert 'entity_table = "half"' in config
    run(tmp_path / "out", tmp_path / "again", "--form", "trained")
    assert not (tmp_path / "again" / "luke" / "encoder" / "entity_rows.npy").exists()


def test_the_form_of_one_component_is_changed(full, bert_dir, tmp_path):
    nlp = spacy.load(full)
    nlp.add_pipe("luke", name="other", source=spacy.load(full))
    nlp.to_disk(tmp_path / "two")
    assert "name one" in failed(tmp_path / "two", tmp_path / "out", "--form", "half")
    run(tmp_path / "two", tmp_path / "out", "--form", "half", "--component", "other")
    rows = "encoder/entity_rows.npy"
    assert (tmp_path / "out" / "other" / rows).exists()
    assert not (tmp_path / "out" / "luke" / rows).exists()


def test_a_disabled_component_is_no_rival(full):
    nlp = spacy.load(full)
    nlp.add_pipe("luke", name="other", source=spacy.load(full))
    for find in (find_encoder, entity_vectors.find_encoder):
        for disabled, other in (("other", "luke"), ("luke", "other")):
            with nlp.select_pipes(disable=disabled):
                assert find(nlp) is nlp.get_pipe(other).model
                assert find(nlp, disabled) is nlp.get_pipe(disabled).model
    with nlp.select_pipes(disable="other"):
        assert export_component(nlp, full.parent / "enabled")


def test_a_disabled_component_is_edited_and_exported_and_stays_in_the_model_card(full, tmp_path):
    spacy.load(full, disable=["luke"]).to_disk(tmp_path / "disabled")
    run(tmp_path / "disabled", tmp_path / "out", "--form", "half")
    meta = spacy.load(tmp_path / "out").meta
    assert meta["disabled"] == ["luke"] and meta["luke"]["luke"]["encoder"]["sha256"]
    assert export_component(spacy.load(tmp_path / "out"), tmp_path / "published", "luke")
    assert (tmp_path / "published" / "entity_vocab.json").exists()


def test_ids_are_looked_up_in_the_components_table(full, tmp_path):
    nlp = spacy.load(full)
    nlp.get_pipe("luke").titles = {"Q1490": "Tokyo"}
    nlp.to_disk(tmp_path / "ids")
    (tmp_path / "names.txt").write_text("\ufeffQ1490 \n", "utf8")
    assert "5 entities" in run(tmp_path / "ids", tmp_path / "k", "--keep", tmp_path / "names.txt")
    doc = Doc(nlp.vocab, words=["In", "Edo"])
    doc.ents = [Span(doc, 1, 2, "LOC", kb_id="Q1490")]
    DocBin(docs=[doc]).to_disk(tmp_path / "own.spacy")
    run(tmp_path / "ids", tmp_path / "a", "--add", tmp_path / "own.spacy")
    before, after = checkpoint(full), checkpoint(tmp_path / "a")
    assert len(before.entities) == len(after.entities)
    assert not torch.equal(rows(before, "Tokyo"), rows(after, "Tokyo"))


def test_a_source_without_biases_is_told(full, tmp_path, make_checkpoint, caplog):
    run(full, tmp_path / "lite", "--lite")
    bare = make_checkpoint("luke")
    run(tmp_path / "lite", tmp_path / "out", "--from", bare)
    assert "has no masked-entity head" in caplog.text


@pytest.mark.parametrize(
    "lines,says",
    [
        ('{"name": "x"}', "line 1: a title is required"),
        ('{"title": 3}', "line 1: a title is required"),
        ('["x"]', "line 1 is a list"),
        ("{", "line 1"),
    ],
)
def test_own_entities_that_cannot_be_read_are_named(full, tmp_path, lines, says):
    (tmp_path / "own.jsonl").write_text(lines, "utf8")
    assert says in failed(full, tmp_path / "out", "--add", tmp_path / "own.jsonl")


def test_without_a_masked_entity_head_nothing_can_be_added(bert_dir, tmp_path):
    import_checkpoint(str(bert_dir), "en").to_disk(tmp_path / "plain")
    (tmp_path / "own.jsonl").write_text('{"title": "Orrin"}', "utf8")
    output = failed(tmp_path / "plain", tmp_path / "out", "--add", tmp_path / "own.jsonl")
    assert "masked-entity head" in output


def test_a_name_is_a_word_of_its_description(full, tmp_path):
    from spacy_luke.cli.entity_table import _first_mention

    nlp = spacy.blank("en")
    for title, text, written in [
        ("Art", "The party was about art.", "art"),
        ("Art", "The party.", "Art"),
        ("İzmir", "A city, İzmir, by the sea.", "İzmir"),
        ("C++", "He writes C++ well.", "C++"),
    ]:
        doc, start, end = _first_mention(title, text, nlp)
        assert doc[start:end].text == written


def test_mistakes_are_named(full, tmp_path):
    (tmp_path / "special.jsonl").write_text('{"title": "[MASK]"}', "utf8")
    wrong = failed(full, tmp_path / "out", "--add", tmp_path / "special.jsonl")
    assert "[MASK] is a special entity" in wrong
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "mine").write_text("keep")
    assert "exists" in failed(full, tmp_path / "there", "--lite")
    assert not (tmp_path / "out").exists()
    assert "exists" in failed(full, full, "--lite")
    (tmp_path / "none.txt").write_text("Atlantis\n", "utf8")
    assert "names no entity" in failed(full, tmp_path / "out", "--keep", tmp_path / "none.txt")
    assert "no such" in failed(full, tmp_path / "out", "--keep", tmp_path / "no").lower()
    assert "no LUKE encoder" in failed(full, tmp_path / "out", "--lite", "--component", "ner")
    bare = spacy.blank("en")
    bare.add_pipe("sentencizer")
    bare.to_disk(tmp_path / "bare")
    assert "(sentencizer) has a LUKE" in failed(tmp_path / "bare", tmp_path / "out", "--lite")
    assert "--form is 'tiny'" in failed(full, tmp_path / "out", "--form", "tiny")
    assert not (tmp_path / "out").exists()


def test_entities_may_be_added_by_csv(full, tmp_path):
    path = tmp_path / "new.csv"
    path.write_text("title,description\nAtlantis,Atlantis is an island\nLemuria,\n", "utf8")
    output = run(full, tmp_path / "out", "--add", path)
    assert "Added 2 entities" in output and "25 entities (before: 23)" in output
    assert {"Atlantis", "Lemuria"} <= checkpoint(tmp_path / "out").entities.names.keys()


def test_scores_of_other_entities_are_removed(full, tmp_path):
    nlp = spacy.load(full)
    nlp.meta["performance"] = {"score": 0.5}
    nlp.to_disk(tmp_path / "scored")
    run(tmp_path / "scored", tmp_path / "out", "--lite")
    assert spacy.load(tmp_path / "out").meta["performance"] == {}
