"""Directories as the official repository wrote them."""

import json

import pytest
import torch
from safetensors.torch import load_file
from tokenizers import ByteLevelBPETokenizer

from spacy_luke.checkpoint.names import by_short_name
from spacy_luke.checkpoint.read import read_checkpoint
from spacy_luke.errors import CheckpointError
from spacy_luke.pipeline.published import export_component, import_checkpoint

transformers = pytest.importorskip("transformers")

HEADS = {
    "classifier": ("LukeForEntitySpanClassification", 3, 2, 0),
    "pair": ("LukeForEntityPairClassification", 2, 3, 2),
    "typing": ("LukeForEntityClassification", 1, 2, 1),
    "scorer": ("LukeForEntitySpanQA", 2, 2, 3),
    "qa_outputs": ("LukeForQuestionAnswering", 1, 23, 0),
}


@pytest.fixture
def legacy(copy_of, luke_dir):
    """Turns a checkpoint into what the repository wrote: old names, one pickle, metadata.json."""

    def make(tensors=None, labels=(), keep_tokenizer=True, vocabulary=True, **model_config):
        path = copy_of(luke_dir)
        config = json.loads((path / "config.json").read_text())
        for key in ("architectures", "model_type", "vocab_size", "entity_vocab_size"):
            config.pop(key, None)
        config |= {"bert_model_name": "roberta-base", "pad_token_id": 0, **model_config}
        if labels:
            config["id2label"] = dict(enumerate(labels))
        metadata = {"model_config": config, "max_seq_length": 512, "max_mention_length": 30}
        (path / "metadata.json").write_text(json.dumps(metadata))
        found = by_short_name(load_file(path / "model.safetensors"))
        torch.save(tensors(found) if tensors else found, path / "pytorch_model.bin")
        names = json.loads((path / "entity_vocab.json").read_text("utf8"))
        gone = ["config.json", "model.safetensors", "entity_vocab.json", "added_tokens.json"]
        for name in gone if keep_tokenizer else [*gone, "vocab.json", "merges.txt"]:
            (path / name).unlink()
        if vocabulary:
            lines = [f"{name}\t{i + 1}" for i, name in enumerate(names)]
            (path / "entity_vocab.tsv").write_text("\n".join(lines) + "\n", "utf8")
        return path

    return make


def without_queries(found):
    return {k: v for k, v in found.items() if not any(x in k for x in ("w2e", "e2w", "e2e"))}


def test_a_pretrained_directory_is_read(legacy, luke_dir):
    """Positions start at 2 although the file says that the padding id is 0."""
    checkpoint = read_checkpoint(legacy(without_queries))
    modern = read_checkpoint(luke_dir)
    assert checkpoint.is_luke and checkpoint.config.position_offset == 2
    assert dict(checkpoint.entities.names.items()) == modern.entities.names
    for name, tensor in modern.weights.items():
        if "queries" not in name and "word_to_entity" not in name:
            assert torch.equal(checkpoint.weights[name], tensor)
    assert checkpoint.source.architecture == "LukeModel"
    assert len(checkpoint.source.filled) == 12


@pytest.mark.parametrize(
    "name,kind",
    [
        ("bert-base-uncased", "bert"),
        ("google-bert/bert-base-uncased", "bert"),
        ("cl-tohoku/bert-base-japanese", "bert"),
        ("FacebookAI/roberta-base", "roberta"),
        ("xlm-roberta-base", "roberta"),
        ("studio-ousia/luke-base", "roberta"),
    ],
)
def test_what_it_began_as_is_told_by_the_official_rule(legacy, name, kind):
    checkpoint = read_checkpoint(legacy(without_queries, bert_model_name=name))
    assert checkpoint.config.kind == kind
    assert checkpoint.config.position_offset == (0 if kind == "bert" else 2)


def test_heads_of_a_bert_are_read_under_its_names(legacy, make_checkpoint, tmp_path):
    """Pretraining from a BERT left the masked-word head under its names, with the head of next
    sentences beside it, and no width where entities are as wide as words."""
    source = make_checkpoint("luke", "LukeForMaskedLM", entity_emb_size=32)
    masked = by_short_name(load_file(source / "model.safetensors"))
    bert = {
        "lm_head.dense.": "cls.predictions.transform.dense.",
        "lm_head.layer_norm.": "cls.predictions.transform.LayerNorm.",
        "lm_head.": "cls.predictions.",
    }

    def change(_):
        found = {}
        for name, tensor in masked.items():
            theirs = next((x for x in bert if name.startswith(x)), "")
            found[bert.get(theirs, "") + name.removeprefix(theirs)] = tensor
        return {**found, "cls.seq_relationship.weight": torch.ones(2, 32)}

    names = {"bert_model_name": "bert-base-uncased", "entity_emb_size": None}
    nlp = import_checkpoint(str(legacy(change, **names)), "en")
    assert export_component(nlp, tmp_path / "out", source_names=True) == "LukeForMaskedLM"
    before, after = change(None), load_file(tmp_path / "out" / "model.safetensors")
    assert before.keys() == without_prefix(after)
    for name, tensor in after.items():
        assert torch.equal(tensor, before[name.removeprefix("luke.")])
    assert export_component(nlp, tmp_path / "now") == "LukeForMaskedLM"
    assert "lm_head.dense.weight" in load_file(tmp_path / "now" / "model.safetensors")


def without_prefix(found):
    return {name.removeprefix("luke.") for name in found}


def test_tensors_that_are_wrapped_are_read(legacy):
    path = legacy(lambda found: {"module": found, "global_step": 3})
    assert read_checkpoint(path).weights


def test_a_vocabulary_of_json_lines_is_read(legacy):
    path = legacy()
    titles = (path / "entity_vocab.tsv").read_text("utf8").split("\n")[:-1]
    (path / "entity_vocab.tsv").unlink()
    lines = [
        json.dumps({"id": i, "entities": [[line.split("\t")[0], "en"]], "count": 1})
        for i, line in enumerate(titles)
    ]
    (path / "entity_vocab.jsonl").write_text("\n".join(lines), "utf8")
    assert read_checkpoint(path).entities.find("Tokyo", "en") == 3


def fine_tuned(name, n_words):
    """Gives the tensors a head, a cut entity table, and a word table with markers."""
    _, width, rows, markers = HEADS[name]
    n_classes = {"scorer": 1, "qa_outputs": 2}.get(name, 4)
    module = "classifier" if name == "pair" else name

    def change(found):
        found[f"{module}.weight"] = torch.randn(n_classes, 32 * width)
        if name != "pair":
            found[f"{module}.bias"] = torch.randn(n_classes)
        table = "entity_embeddings.entity_embeddings.weight"
        found[table] = found[table][:rows].clone()
        found["embeddings.word_embeddings.weight"] = torch.randn(n_words + markers, 32)
        return found

    return change


@pytest.fixture
def n_words(luke_dir):
    return len(json.loads((luke_dir / "vocab.json").read_text("utf8")))


@pytest.mark.parametrize("name", HEADS)
def test_fine_tuned_files_are_read_and_come_back(legacy, n_words, tmp_path, name):
    architecture, _, rows, markers = HEADS[name]
    labels = (
        ()
        if name in ("scorer", "qa_outputs")
        else ["no_relation" if name == "pair" else "NIL", "A", "B", "C"]
    )
    path = legacy(fine_tuned(name, n_words), labels, vocabulary=rows > 3)
    checkpoint = read_checkpoint(path)
    assert checkpoint.source.architecture == architecture
    assert len(checkpoint.entities) == rows
    if markers:
        assert checkpoint.pieces.id_of("<ent>") == n_words + (2 if markers == 3 else 0)
    nlp = import_checkpoint(str(path))
    assert nlp("Ada Lovelace was born in London.").text
    assert export_component(nlp, tmp_path / "out", source_names=True) == architecture
    before = torch.load(path / "pytorch_model.bin", weights_only=True)
    after = load_file(tmp_path / "out" / "model.safetensors")
    assert sorted(before) == sorted(after)
    assert all(torch.equal(before[x], after[x]) for x in before)
    export_component(nlp, tmp_path / "today")
    if architecture != "LukeForEntitySpanQA":
        _, loading = getattr(transformers, architecture).from_pretrained(
            tmp_path / "today", output_loading_info=True
        )
        assert not (loading["missing_keys"] or loading["mismatched_keys"]), loading
    tokenizer = transformers.LukeTokenizer.from_pretrained(tmp_path / "today")
    assert tokenizer.entity_mask_token_id == checkpoint.entities.mask_id


CLOZE_TEXT = "Ada met Bob in Rome. @highlight Bob left, Ada stayed."
CLOZE_ENTITIES = [(0, 3), (8, 11), (15, 19), (32, 35), (42, 45)]
CLOZE_QUERIES = [
    "In winter @placeholder's house was empty.",
    "@placeholder left.",
    "It is @placeholder",
]


def published_cloze_scores(folder, n_words, query, head):
    """The published formula, on the published sequence: markers around the gap and each mention,
    which are parts of the entity; the score of [gap; mention] is linear."""
    bpe = ByteLevelBPETokenizer(str(folder / "vocab.json"), str(folder / "merges.txt"))
    highlight, gap, marker = range(n_words, n_words + 3)
    special = {x: bpe.token_to_id(x) for x in ("<s>", "</s>")}

    def encode(text):
        """A space before a cut belongs to the piece after it."""
        parts = text.removesuffix(" ").split(" @highlight")
        ids = [bpe.encode(part).ids for part in parts]
        return ids[0] + [x for part in ids[1:] for x in (highlight, *part)]

    before, after = query.split("@placeholder")
    first = encode(before)
    ids = [special["<s>"], *first]
    places = [(len(ids), len(ids) + 3)]
    ids += [marker, gap, marker, *encode(after), special["</s>"], special["</s>"]]
    at = 0
    for start, end in CLOZE_ENTITIES:
        ids += encode(CLOZE_TEXT[at:start])
        space = " " if CLOZE_TEXT[start - 1 : start] == " " else ""
        mention = [marker, *encode(space + CLOZE_TEXT[start:end]), marker]
        places.append((len(ids), len(ids) + len(mention)))
        ids += mention
        at = end
    ids += [*encode(CLOZE_TEXT[at:]), special["</s>"]]
    positions = torch.full((1, len(places), 30), -1)
    for row, (start, end) in enumerate(places):
        positions[0, row, : end - start] = torch.arange(start, end)
    network = transformers.LukeModel.from_pretrained(folder).eval()
    with torch.no_grad():
        states = network(
            input_ids=torch.tensor([ids]),
            entity_ids=torch.ones(1, len(places), dtype=torch.long),  # [MASK] of a cut table
            entity_position_ids=positions,
            entity_attention_mask=torch.ones(1, len(places), dtype=torch.long),
        ).entity_last_hidden_state[0]
        both = torch.cat([states[:1].expand(len(places) - 1, -1), states[1:]], 1)
        return both @ head["scorer.weight"][0] + head["scorer.bias"]


def test_cloze_scores_are_those_of_the_published_formula(legacy, n_words, tmp_path):
    path = legacy(fine_tuned("scorer", n_words), vocabulary=False)
    nlp = import_checkpoint(str(path), "en")
    assert nlp.pipe_names == ["luke_cloze"]
    export_component(nlp, tmp_path / "out")  # for transformers
    head = torch.load(path / "pytorch_model.bin", weights_only=True)
    doc = nlp.make_doc(CLOZE_TEXT)
    doc.ents = [doc.char_span(start, end, label="X") for start, end in CLOZE_ENTITIES]
    doc._.queries = CLOZE_QUERIES
    _, values = nlp.get_pipe("luke_cloze").predict([doc])
    ours = torch.as_tensor(values.logits[:, 0]).reshape(len(CLOZE_QUERIES), -1)
    for query, scores in zip(CLOZE_QUERIES, ours):
        theirs = published_cloze_scores(tmp_path / "out", n_words, query, head)
        torch.testing.assert_close(scores, theirs, atol=1e-5, rtol=0)


def test_the_file_of_a_cut_vocabulary_is_believed(legacy, n_words):
    path = legacy(fine_tuned("pair", n_words), ["no_relation", "A", "B", "C"], vocabulary=False)
    (path / "entity_vocab.tsv").write_text("[MASK]\t1\n[UNK]\t1\n[PAD]\t1\n", "utf8")
    assert read_checkpoint(path).entities.names == {"[MASK]": 0, "[UNK]": 1, "[PAD]": 2}


def test_a_classifier_without_label_names_is_named(legacy, n_words):
    path = legacy(fine_tuned("classifier", n_words), vocabulary=False)
    with pytest.raises(CheckpointError, match="id2label"):
        import_checkpoint(str(path))


def test_a_directory_without_a_tokenizer_says_whose_is_missing(legacy, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(CheckpointError, match=r"tokenizer files of 'roberta-base'"):
        read_checkpoint(legacy(keep_tokenizer=False))


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{}", '{"model_config": 3}']
    + [f'{{"model_config": {{"hidden_size": {x}}}}}' for x in ('"x"', "0", "null", "true")],
)
def test_metadata_that_is_none_is_named(legacy, content):
    path = legacy()
    (path / "metadata.json").write_text(content)
    with pytest.raises(CheckpointError, match=r"metadata\.json"):
        read_checkpoint(path)
