"""A configuration says what is wrong with it."""

import pytest

from spacy_luke.errors import ConfigError
from spacy_luke.model.config import LukeConfig

SIZES = {"vocab_size": 60, "entity_vocab_size": 20}


def test_it_goes_through_a_dict():
    config = LukeConfig(**SIZES, kind="bert", extra={"a": [1]}, entity_labels=["PER"])
    assert LukeConfig.from_dict(config.to_dict()) == config


@pytest.mark.parametrize(("kind", "offset", "longest"), [("roberta", 2, 512), ("bert", 0, 514)])
def test_positions_start_after_the_padding_id_or_at_zero(kind, offset, longest):
    config = LukeConfig(**SIZES, kind=kind)
    assert (config.position_offset, config.max_pieces) == (offset, longest)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"kind": "gpt"}, "kind"),
        ({"hidden_size": 30, "num_attention_heads": 4}, "num_attention_heads"),
        ({"num_attention_heads": 0}, "num_attention_heads"),
        ({"vocab_size": "many"}, "vocab_size"),
        ({"intermediate_size": -1}, "intermediate_size"),
        ({"num_hidden_layers": 2.5}, "num_hidden_layers"),
        ({"layer_norm_eps": "small"}, "layer_norm_eps"),
        ({"hidden_dropout_prob": 2}, "hidden_dropout_prob"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_bad_value_is_named(change, named):
    with pytest.raises(ConfigError, match=named):
        LukeConfig.from_dict({**SIZES, **change})


def test_a_missing_size_is_named():
    with pytest.raises(ConfigError, match="entity_vocab_size"):
        LukeConfig.from_dict({"vocab_size": 60})
