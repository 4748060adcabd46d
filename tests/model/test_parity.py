"""The network and its heads equal the port in ``transformers`` at random weights (fp32).

BERT-kind networks pass explicit position ids to the reference, which only knows RoBERTa's.
"""

import pytest

from spacy_luke.checkpoint.names import to_published
from spacy_luke.checkpoint.read import load_into, read_checkpoint
from spacy_luke.model import packing
from spacy_luke.model.heads import LinearHead, MaskedHead
from spacy_luke.model.network import LukeModel

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

RAGGED = [(40, 6), (7, 0), (128, 30), (41, 1), (3, 2), (40, 5), (90, 0)]
WITHOUT = [(12, 0), (33, 0), (128, 0)]
ATOL = 1e-5

NETWORKS = {
    "entity-aware": ("luke", {}),
    "plain": ("luke", {"use_entity_aware_attention": False}),
    "lite": ("lite", {}),
    "lite plain": ("lite", {"use_entity_aware_attention": False}),
    "two types": ("luke", {"type_vocab_size": 2}),
    "same widths": ("luke", {"entity_emb_size": 32}),
    "bert": ("luke", {"bert_model_name": "bert-base-cased", "layer_norm_eps": 1e-12}),
}


@pytest.fixture(scope="module", params=NETWORKS)
def network(request, make_checkpoint):
    """Our network, the reference, and whether positions count from 0 as in BERT."""
    kind, settings = NETWORKS[request.param]
    path = make_checkpoint(kind, **settings)
    return (*load_both(path, transformers.LukeModel), request.param == "bert")


def load_both(path, reference_class):
    """Our network, evaluated like the reference beside it."""
    checkpoint = read_checkpoint(path)
    model = LukeModel(checkpoint.config)
    load_into(model, checkpoint)
    return model.eval(), reference_class.from_pretrained(path).eval()


@pytest.fixture(params=["little padding", "much padding"])
def padding(request, monkeypatch):
    if request.param == "much padding":
        monkeypatch.setitem(packing._LIMITS, "cpu", packing.Limits(100.0, 4_000_000))


def real_rows(padded_states, mask):
    """(n_sequences, width, hidden) -> the rows of real pieces or entities, end to end."""
    return padded_states[mask.bool()]


@pytest.mark.parametrize("lengths", [RAGGED, WITHOUT, [(9, 3)]], ids=["ragged", "words", "one"])
def test_states_equal(network, padding, random_inputs, padded, lengths):
    model, reference, is_bert = network
    inputs = random_inputs(lengths, model.config)
    arguments = padded(inputs, is_bert)
    with torch.no_grad():
        ours, theirs = model(inputs), reference(**arguments)
    words = real_rows(theirs.last_hidden_state, arguments["attention_mask"])
    torch.testing.assert_close(ours.words, words, atol=ATOL, rtol=0)
    if len(inputs.entities.ids):
        entities = real_rows(theirs.entity_last_hidden_state, arguments["entity_attention_mask"])
        torch.testing.assert_close(ours.entities, entities, atol=ATOL, rtol=0)
    else:
        assert ours.entities.shape == (0, model.config.hidden_size)


def test_gradients_equal(network, padding, random_inputs, padded):
    """Within 1e-4 of the norm of each tensor's gradient."""
    model, reference, is_bert = network
    inputs = random_inputs(RAGGED, model.config)
    arguments = padded(inputs, is_bert)
    model.zero_grad()
    reference.zero_grad()
    ours, theirs = model(inputs), reference(**arguments)
    words = real_rows(theirs.last_hidden_state, arguments["attention_mask"])
    entities = real_rows(theirs.entity_last_hidden_state, arguments["entity_attention_mask"])
    generator = torch.Generator().manual_seed(1)
    on_words = torch.randn(words.shape, generator=generator)
    on_entities = torch.randn(entities.shape, generator=generator)
    ((ours.words * on_words).sum() + (ours.entities * on_entities).sum()).backward()
    ((words * on_words).sum() + (entities * on_entities).sum()).backward()
    gradients = to_published({name: p.grad for name, p in model.named_parameters()})
    expected = {name: p.grad for name, p in reference.named_parameters() if "pooler" not in name}
    assert set(gradients) == set(expected)
    if is_bert:  # the reference never trains its row of the padding id, a real position here
        gradients["embeddings.position_embeddings.weight"][model.config.pad_token_id] = 0
    for name in expected:
        if name.endswith("self.key.bias") and not model.config.use_entity_aware_attention:
            continue  # adding a constant to all keys changes no softmax: it is rounding
        difference = (gradients[name] - expected[name]).norm()
        assert difference <= 1e-4 * expected[name].norm(), name


def classifier(path):
    """The head's tensors, without the pooler that comes with every published file."""
    heads = read_checkpoint(path).others
    return {name: tensor for name, tensor in heads.items() if name.startswith("classifier.")}


@pytest.mark.parametrize("kind", ["luke", "lite"])
def test_span_logits_equal(kind, make_checkpoint, random_inputs, padded):
    path = make_checkpoint(kind, "LukeForEntitySpanClassification", num_labels=5)
    model, reference = load_both(path, transformers.LukeForEntitySpanClassification)
    head = LinearHead(model.config.hidden_size, 3, 5).eval()
    head.load_state_dict(classifier(path))
    lengths = [(n, m) for n, m in RAGGED if m]
    inputs = random_inputs(lengths, model.config)
    arguments = padded(inputs)
    mask = arguments["entity_attention_mask"].bool()
    starts, ends = (torch.zeros(mask.shape, dtype=torch.long) for _ in range(2))
    starts[mask] = torch.as_tensor(inputs.entities.starts)
    ends[mask] = torch.as_tensor(inputs.entities.ends - 1)
    base = torch.as_tensor(inputs.words.offsets[:-1]).repeat_interleave(mask.sum(1))
    with torch.no_grad():
        states = model(inputs)
        first, last = base + starts[mask], base + ends[mask]
        logits = head.on_pieces(states.words, first, last, states.entities)
        theirs = reference(**arguments, entity_start_positions=starts, entity_end_positions=ends)
    torch.testing.assert_close(logits, theirs.logits[mask], atol=ATOL, rtol=0)


def test_typing_logits_equal(make_checkpoint, random_inputs, padded):
    path = make_checkpoint("luke", "LukeForEntityClassification", num_labels=7)
    model, reference = load_both(path, transformers.LukeForEntityClassification)
    head = LinearHead(model.config.hidden_size, 1, 7).eval()
    head.load_state_dict(classifier(path))
    inputs = random_inputs([(20, 1), (9, 1), (33, 1)], model.config)
    with torch.no_grad():
        logits = head(model(inputs).entities[:, None])
        theirs = reference(**padded(inputs)).logits
    torch.testing.assert_close(logits, theirs, atol=ATOL, rtol=0)


@pytest.mark.parametrize("bias", [False, True], ids=["without bias", "with bias"])
def test_relation_logits_equal(bias, make_checkpoint, random_inputs, padded):
    path = make_checkpoint("luke", "LukeForEntityPairClassification", num_labels=6)
    model, reference = load_both(path, transformers.LukeForEntityPairClassification)
    hidden = model.config.hidden_size
    head = LinearHead(hidden, 2, 6, bias=bias).eval()
    if bias:
        reference.classifier = torch.nn.Linear(2 * hidden, 6)
        head.classifier.load_state_dict(reference.classifier.state_dict())
    else:
        head.load_state_dict(classifier(path))
    inputs = random_inputs([(20, 2), (9, 2), (33, 2)], model.config)
    with torch.no_grad():
        states = model(inputs).entities
        logits = head(states.unflatten(0, (-1, 2)))
        theirs = reference(**padded(inputs)).logits
    torch.testing.assert_close(logits, theirs, atol=ATOL, rtol=0)


@pytest.mark.parametrize("kind", ["luke", "lite"])
def test_masked_word_and_entity_logits_equal(kind, make_checkpoint, random_inputs, padded):
    path = make_checkpoint(kind, "LukeForMaskedLM")
    model, reference = load_both(path, transformers.LukeForMaskedLM)
    config, heads = model.config, read_checkpoint(path).others
    eps = config.layer_norm_eps
    of_words = MaskedHead(config.hidden_size, config.hidden_size, config.vocab_size, eps)
    of_entities = MaskedHead(
        config.hidden_size, config.entity_emb_size, config.entity_vocab_size, eps
    )
    of_words.load_state_dict(
        {
            "dense.weight": heads["lm_head.dense.weight"],
            "dense.bias": heads["lm_head.dense.bias"],
            "norm.weight": heads["lm_head.layer_norm.weight"],
            "norm.bias": heads["lm_head.layer_norm.bias"],
            "bias": heads["lm_head.bias"],
        }
    )
    transform = "entity_predictions.transform"
    of_entities.load_state_dict(
        {
            "dense.weight": heads[f"{transform}.dense.weight"],
            "dense.bias": heads[f"{transform}.dense.bias"],
            "norm.weight": heads[f"{transform}.LayerNorm.weight"],
            "norm.bias": heads[f"{transform}.LayerNorm.bias"],
            "bias": heads["entity_predictions.bias"],
        }
    )
    inputs = random_inputs(RAGGED, config)
    arguments = padded(inputs)
    with torch.no_grad():
        states = model(inputs)
        word_logits = of_words(states.words, model.word_embeddings.words.weight)
        entity_logits = of_entities(states.entities, model.entity_embeddings.entities.weight)
        theirs = reference(**arguments)
    words = real_rows(theirs.logits, arguments["attention_mask"])
    entities = real_rows(theirs.entity_logits, arguments["entity_attention_mask"])
    torch.testing.assert_close(word_logits, words, atol=ATOL, rtol=0)
    torch.testing.assert_close(entity_logits, entities, atol=ATOL, rtol=0)


PLAIN = {
    "bert_dir": "BertModel",
    "roberta_dir": "RobertaModel",
    "xlmr_dir": "XLMRobertaModel",
}


@pytest.mark.parametrize("fixture", PLAIN)
def test_a_warm_started_encoder_keeps_its_word_states(fixture, request, random_inputs, padded):
    path = request.getfixturevalue(fixture)
    model, reference = load_both(path, getattr(transformers, PLAIN[fixture]))
    inputs = random_inputs([(n, 0) for n, _ in RAGGED], model.config)
    arguments = padded(inputs)
    with torch.no_grad():
        theirs = reference(**arguments).last_hidden_state
        for pattern in ("full", "probe"):
            ours = model(inputs, pattern).words
            expected = real_rows(theirs, arguments["attention_mask"])
            torch.testing.assert_close(ours, expected, atol=ATOL, rtol=0)
