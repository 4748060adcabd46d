"""The configuration of a LUKE network, with the names of published configs."""

from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

from ..errors import ConfigError

EncoderKind = Literal["roberta", "bert"]

_COUNTS = (
    "vocab_size",
    "entity_vocab_size",
    "hidden_size",
    "entity_emb_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "max_position_embeddings",
    "type_vocab_size",
    "pad_token_id",
)
_MOST = 2**31 - 1  # the product of two such numbers fits into 64 bits
_RATES = {"layer_norm_eps": 1.0, "hidden_dropout_prob": 1.0, "initializer_range": 10.0}


@dataclass
class LukeConfig:
    """Sizes and switches of a network. Raises ConfigError for an invalid value.

    Field names are those of published ``config.json`` files. Defaults are the *values* of these
    files, which differ from the defaults of ``transformers.LukeConfig``. Published files do not
    have ``kind``, ``word_shapes``, ``entity_labels`` and ``mask_row``. ``extra`` contains the keys
    of a file that the network does not use, so that an exported file is complete.
    """

    vocab_size: int
    entity_vocab_size: int
    hidden_size: int = 768
    entity_emb_size: int = 256
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    max_position_embeddings: int = 514
    type_vocab_size: int = 1
    layer_norm_eps: float = 1e-5
    pad_token_id: int = 1
    hidden_dropout_prob: float = 0.1
    use_entity_aware_attention: bool = True
    initializer_range: float = 0.02
    kind: EncoderKind = "roberta"
    """``roberta``: positions start after the padding id; ``bert``: they start at 0."""
    word_shapes: bool = False
    """Add an embedding of the word's shape (lower, Title, UPPER, ...), for uncased encoders."""
    entity_labels: list[str] = field(default_factory=list)
    """Coarse labels that have an embedding, which is added to the entity's; none by default."""
    mask_row: int | None = None
    """The id of the entity [MASK], if its input is a vector of its own (``mask_embedding``) in
    place of that row of the table; None if it is the row."""
    extra: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.kind not in ("roberta", "bert"):
            raise ConfigError(f"LukeConfig.kind is {self.kind!r}; use 'roberta' or 'bert'.")
        if not isinstance(self.use_entity_aware_attention, bool):
            raise ConfigError(
                f"use_entity_aware_attention is {self.use_entity_aware_attention!r}; use true or "
                "false."
            )
        if not isinstance(self.extra, dict):
            raise ConfigError(f"extra is {self.extra!r}; expected an object.")
        for name in _COUNTS:
            value = getattr(self, name)
            least = 0 if name == "pad_token_id" else 1
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise ConfigError(f"{name} is {value!r}; use a whole number from {least}.")
            if value > _MOST:
                raise ConfigError(f"{name} is too large; use a whole number up to {_MOST:,}.")
        for name, most in _RATES.items():
            value = getattr(self, name)
            if not isinstance(value, (int, float)) or not 0 <= value <= most:
                raise ConfigError(f"{name} is {value!r}; use a number from 0 to {most}.")
        if self.pad_token_id >= self.vocab_size:
            raise ConfigError(
                f"pad_token_id is {self.pad_token_id}; it must be below vocab_size, which is "
                f"{self.vocab_size}."
            )
        if self.max_pieces < 3:  # [CLS], one piece, [SEP]
            raise ConfigError(
                f"max_position_embeddings ({self.max_position_embeddings}) and pad_token_id "
                f"({self.pad_token_id}) leave {self.max_pieces} positions for pieces; 3 are needed."
            )
        row = self.mask_row
        if row is not None and (not isinstance(row, int) or not 0 <= row < self.entity_vocab_size):
            raise ConfigError(
                f"mask_row is {row!r}; use null, or a whole number below entity_vocab_size, which "
                f"is {self.entity_vocab_size}."
            )
        if self.hidden_size % self.num_attention_heads:
            raise ConfigError(
                f"hidden_size ({self.hidden_size}) must be a multiple of "
                f"num_attention_heads ({self.num_attention_heads})."
            )

    @property
    def position_offset(self) -> int:
        """The row of the position table for the first piece of a sequence."""
        return self.pad_token_id + 1 if self.kind == "roberta" else 0

    @property
    def max_pieces(self) -> int:
        """The length of the longest sequence that has positions, special pieces included."""
        return self.max_position_embeddings - self.position_offset

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "LukeConfig":
        """Build from :meth:`to_dict`. Raises ConfigError on an unknown or missing key."""
        known = {f.name for f in fields(cls)}
        unknown = sorted(set(values) - known)
        if unknown:
            raise ConfigError(f"Unknown keys in a LUKE network configuration: {unknown}.")
        try:
            return cls(**values)
        except TypeError as err:
            raise ConfigError(f"Incomplete LUKE network configuration: {err}.") from err
