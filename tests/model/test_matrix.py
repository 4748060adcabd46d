"""Every head of every kind of published file gives the logits and gradients of ``transformers``,
or of the written formula where that has no such head."""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import save_file

from spacy_luke.checkpoint.names import ENTITY_HEAD, WORD_HEAD, to_published
from spacy_luke.checkpoint.read import Checkpoint, load_into, read_checkpoint
from spacy_luke.model.heads import LinearHead, MaskedHead
from spacy_luke.model.network import LukeModel
from tests.conftest import (
    ENTITY_SPECIALS,
    SIZES,
    write_bpe,
    write_json,
    write_unigram,
    write_wordpiece,
)

transformers = pytest.importorskip("transformers")

# head -> the reference's class; None: the formula is written below.
HEADS = {
    "encoder": "LukeModel",
    "masked": "LukeForMaskedLM",
    "span": "LukeForEntitySpanClassification",
    "pair": "LukeForEntityPairClassification",
    "typing": "LukeForEntityClassification",
    "question": "LukeForQuestionAnswering",
    "cloze": None,
    "phrase": None,
}
BASES = {
    "roberta": (write_bpe, {"bert_model_name": "roberta-base"}),
    "bert": (write_wordpiece, {"bert_model_name": "bert-base-cased", "layer_norm_eps": 1e-12}),
    "xlm-roberta": (write_unigram, {"bert_model_name": "xlm-roberta-base"}),
}
FORMS = ["safetensors", "bin", "sharded", "sharded bin", "without prefix", "bin without prefix"]
LENGTHS = [(20, 2), (9, 2), (33, 2)]


@cache
def reference(folder: Path, base: str, vocab: str, aware: bool, head: str):
    """A reference with random weights, its tensors as a file holds them, and the other files."""
    name = "-".join(map(str, (base, vocab, aware, head)))
    path = folder / name
    path.mkdir()
    write_tokenizer, values = BASES[base]
    n_pieces = write_tokenizer(path)
    entities = ENTITY_SPECIALS[vocab]
    write_json(path / "entity_vocab.json", {x: i for i, x in enumerate(entities)})
    write_json(path / "added_tokens.json", {"<ent>": n_pieces, "<ent2>": n_pieces + 1})
    settings = {
        **SIZES,
        "type_vocab_size": 1,
        "layer_norm_eps": 1e-5,
        **values,
        "vocab_size": n_pieces + 2,
        "entity_vocab_size": len(entities),
        "entity_emb_size": 16,
        "use_entity_aware_attention": aware,
        "pad_token_id": 0 if base == "bert" else 1,
        "num_labels": 2 if head == "question" else 5,
    }
    torch.manual_seed(0)
    config = transformers.LukeConfig(**settings)
    model = getattr(transformers, HEADS[head] or "LukeModel")(config)
    extra = {
        "cloze": {"scorer": torch.nn.Linear(64, 1)},
        "phrase": {"mlp.dense": torch.nn.Linear(32, 32)},
    }.get(head, {})
    if head == "masked":  # transformers 5 does not tie it
        model.lm_head.decoder.weight = model.luke.embeddings.word_embeddings.weight
    for parameter in [*model.parameters(), *(p for x in extra.values() for p in x.parameters())]:
        parameter.data.add_(torch.randn_like(parameter) * 0.15)
    prefix = "luke." if isinstance(model, transformers.LukeModel) else ""
    tensors = {prefix + k: v for k, v in model.state_dict().items()}
    for name, layer in extra.items():
        tensors |= {f"{name}.{k}": v for k, v in layer.state_dict().items()}
    config.architectures = [HEADS[head] or head]
    (path / "config.json").write_text(config.to_json_string(use_diff=False))
    return model.eval(), extra, tensors, path


def written(source: Path, tensors: dict, form: str, path: Path) -> Path:
    """A directory with the tensors in one of the forms in which they are published."""
    path.mkdir()
    for file in source.iterdir():
        (path / file.name).write_bytes(file.read_bytes())
    found = {k: v.detach().clone().contiguous() for k, v in tensors.items()}
    if "without prefix" in form:
        found = {k.removeprefix("luke."): v for k, v in found.items()}
    if "bin" in form:
        name, save = "pytorch_model.bin", torch.save
    else:
        name, save = "model.safetensors", save_file
    if "sharded" not in form:
        save(found, path / name)
        return path
    parts = {f"part-{i}-{name}": list(found)[i::2] for i in range(2)}
    for part, names in parts.items():
        save({x: found[x] for x in names}, path / part)
    index = {x: part for part, names in parts.items() for x in names}
    (path / f"{name}.index.json").write_text(json.dumps({"metadata": {}, "weight_map": index}))
    return path


def ours(checkpoint: Checkpoint, head: str, inputs):
    """The network, the tensors of the head as a dictionary of parameters, and the logits."""
    config = checkpoint.config
    network = LukeModel(config)
    load_into(network, checkpoint)
    states = network.eval()(inputs)
    others = {k: v.clone().requires_grad_() for k, v in checkpoint.others.items()}
    if head == "encoder":
        return network, others, (states.words, states.entities)
    heads, tails = states.entities[0::2], states.entities[1::2]
    classifier = {k: v for k, v in others.items() if k.startswith("classifier.")}
    if head == "masked":
        hidden, eps = config.hidden_size, config.layer_norm_eps
        words = MaskedHead(hidden, hidden, config.vocab_size, eps)
        of_entities = MaskedHead(hidden, config.entity_emb_size, config.entity_vocab_size, eps)
        table = network.entity_embeddings.table
        word_weights = {k: others[v] for k, v in WORD_HEAD.items()}
        entity_weights = {k: others[v] for k, v in ENTITY_HEAD.items()}
        word_table = network.word_embeddings.words.weight
        return network, others, (
            run(words, word_weights, states.words, word_table),
            run(of_entities, entity_weights, states.entities, table),
        )  # fmt: skip
    if head == "span":
        base = torch.as_tensor(inputs.words.offsets[:-1]).repeat_interleave(2)
        first = base + torch.as_tensor(inputs.entities.starts)
        last = base + torch.as_tensor(inputs.entities.ends - 1)
        ends = torch.stack([states.words[first], states.words[last], states.entities], 1)
        module = LinearHead(config.hidden_size, 3, 5).eval()
        return network, others, (run(module, classifier, ends),)
    if head == "pair":
        module = LinearHead(config.hidden_size, 2, 5, bias=False).eval()
        return network, others, (run(module, classifier, torch.stack([heads, tails], 1)),)
    if head == "typing":
        module = LinearHead(config.hidden_size, 1, 5).eval()
        return network, others, (run(module, classifier, states.entities[:, None]),)
    if head == "question":
        return (
            network,
            others,
            (F.linear(states.words, others["qa_outputs.weight"], others["qa_outputs.bias"]),),
        )
    if head == "cloze":
        both = torch.cat([heads, tails], -1)
        return network, others, (F.linear(both, others["scorer.weight"], others["scorer.bias"]),)
    phrase = F.linear(states.entities, others["mlp.dense.weight"], others["mlp.dense.bias"])
    return network, others, (torch.tanh(phrase),)


def run(module, tensors, *args):
    return torch.func.functional_call(module, tensors, args)


def theirs(model, extra, head: str, inputs, padded, base: str):
    arguments = padded(inputs, base == "bert")
    words = arguments["attention_mask"].bool()
    mask = arguments["entity_attention_mask"].bool()
    if head == "span":
        for name, values in (
            ("start", inputs.entities.starts),
            ("end", inputs.entities.ends - 1),
        ):
            places = torch.zeros(mask.shape, dtype=torch.long)
            places[mask] = torch.as_tensor(values)
            arguments[f"entity_{name}_positions"] = places
    found = model(**arguments)
    if head == "masked":
        return found.logits[words], found.entity_logits[mask]
    if head == "question":
        return (torch.stack([found.start_logits[words], found.end_logits[words]], -1),)
    if head == "span":
        return (found.logits[mask],)
    if head in ("pair", "typing"):
        return (found.logits,)
    entities = found.entity_last_hidden_state
    if head == "encoder":
        return found.last_hidden_state[words], entities[mask]
    if head == "cloze":
        return (extra["scorer"](torch.cat([entities[:, 0], entities[:, 1]], -1)),)
    return (torch.tanh(extra["mlp.dense"](entities[mask])),)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("references")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("vocab", ENTITY_SPECIALS)
@pytest.mark.parametrize("aware", [True, False], ids=["entity-aware", "plain"])
@pytest.mark.parametrize("head", HEADS)
def test_logits_and_gradients(
    folder, tmp_path, random_inputs, padded, head, aware, vocab, base, form
):
    model, extra, tensors, source = reference(folder, base, vocab, aware, head)
    checkpoint = read_checkpoint(written(source, tensors, form, tmp_path / "file"))
    lengths = [(n, 1) for n, _ in LENGTHS] if head == "typing" else LENGTHS
    inputs = random_inputs(lengths, checkpoint.config)
    inputs.entities.ids[::2] = checkpoint.entities.mask_id  # 0 in a lite vocabulary
    network, others, logits = ours(checkpoint, head, inputs)
    expected = theirs(model, extra, head, inputs, padded, base)
    for one, other in zip(logits, expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=0)

    if form == FORMS[0]:  # the weights that are read are the same in all forms
        compare_gradients(model, extra, network, others, logits, expected, base, aware)


def compare_gradients(model, extra, network, others, logits, expected, base, aware):
    """Within 1e-4 of the norm of each tensor's gradient."""
    generator = torch.Generator().manual_seed(1)
    weights = [torch.randn(x.shape, generator=generator) for x in logits]
    model.zero_grad()
    for layer in extra.values():
        layer.zero_grad()
    sum((x * w).sum() for x, w in zip(logits, weights)).backward()
    sum((x * w).sum() for x, w in zip(expected, weights)).backward()
    found = to_published(
        {
            k: torch.zeros_like(p) if p.grad is None else p.grad
            for k, p in network.named_parameters()
        }
    )
    found |= {k: v.grad for k, v in others.items() if v.grad is not None}
    wanted = {k.removeprefix("luke."): p.grad for k, p in model.named_parameters()}
    for name, layer in extra.items():
        wanted |= {f"{name}.{k}": p.grad for k, p in layer.named_parameters()}
    compared = 0
    for name, gradient in wanted.items():
        if gradient is None or (name.endswith("self.key.bias") and not aware):
            continue  # adding a constant to all keys changes no softmax: it is rounding
        mine = found[name].clone()
        if base == "bert" and name == "embeddings.position_embeddings.weight":
            mine[network.config.pad_token_id] = 0  # the reference never trains that row
        if name == "entity_embeddings.entity_embeddings.weight":
            mine[0], gradient[0] = 0, 0  # nor that one as an input
        assert (mine - gradient).norm() <= 1e-4 * gradient.norm() + 1e-9, name
        compared += 1
    assert compared > 30


def test_the_mask_of_a_lite_vocabulary_learns(folder, tmp_path, random_inputs):
    """Its id is 0, which the reference takes for padding and never trains."""
    model, _, tensors, source = reference(folder, "roberta", "lite", True, "encoder")
    checkpoint = read_checkpoint(written(source, tensors, "safetensors", tmp_path / "file"))
    inputs = random_inputs(LENGTHS, checkpoint.config)
    inputs.entities.ids[:] = checkpoint.entities.mask_id
    assert checkpoint.entities.mask_id == 0
    network, _, (_, entities) = ours(checkpoint, "encoder", inputs)
    (entities * torch.randn(entities.shape)).sum().backward()
    gradient = network.entity_embeddings.table.grad
    assert gradient[0].norm() > 0 and not np.any(gradient[1:].numpy())
