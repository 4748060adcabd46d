"""The encoder inside a Thinc node: reading it, preparing it, saving it.

Task layers reach through the node to the network (see ``session.py``), because they ask about
entities.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from thinc.api import Model
from torch import nn

from ..checkpoint.hub import resolve
from ..checkpoint.read import Checkpoint, load_into, read_checkpoint
from ..errors import CheckpointError, ConfigError
from ..inputs.alignment import TokenisationRule
from ..model.config import LukeConfig
from ..model.encoder import LukeModel, init_weights
from ..vocab.entities import EntityVocab
from ..vocab.pieces import PieceTokenizer
from .blob import from_blob, to_blob
from .forking import make_forks_safe
from .shim import Format, LearnRates, LukeShim
from .word_passes import WordPasses

make_forks_safe()

Pooling = Literal["mean", "first"]
ENCODER = "luke-encoder"
MAX_WINDOW = 510

FRESH = ("network.word_embeddings.shapes.", "network.entity_embeddings.labels.")


class Encoder(nn.Module):
    """A network with its vocabularies: what travels in a pipeline."""

    def __init__(self, network: LukeModel, pieces: PieceTokenizer, entities: EntityVocab):
        super().__init__()
        self.network = network
        self.pieces = pieces
        self.entities = entities
        self.passes = WordPasses()

    def train(self, mode: bool = True) -> "Encoder":
        """Training changes the weights behind the word passes."""
        if mode:
            self.passes.clear()
        return super().train(mode)

    @property
    def hidden_size(self) -> int:
        return self.network.config.hidden_size


@dataclass
class EncoderSettings:
    """The settings of ``spacy-luke.LukeEncoder.v1``; see there."""

    name: str
    tokenization: TokenisationRule = "tokens"
    window: int | None = None
    overlap: int = 128
    entity_aware: bool | None = None
    word_shapes: bool = False
    entity_labels: list[str] = field(default_factory=list)
    freeze_word_embeddings: bool = False
    mixed_precision: bool = False
    gradient_checkpointing: bool = False
    attention_dropout: float = 0.0
    pooling: Pooling = "mean"
    rates: LearnRates = field(default_factory=LearnRates)

    def __post_init__(self) -> None:
        if self.tokenization not in ("tokens", "mentions"):
            raise ConfigError(
                f"LukeEncoder.tokenization is {self.tokenization!r}; use 'tokens' or 'mentions'."
            )
        if self.pooling not in ("mean", "first"):
            raise ConfigError(f"LukeEncoder.pooling is {self.pooling!r}; use 'mean' or 'first'.")
        if self.window is not None and not 0 <= self.overlap < self.window:
            raise ConfigError(
                f"LukeEncoder.overlap ({self.overlap}) must be at least 0 and less than window "
                f"({self.window})."
            )

    def window_of(self, network: LukeModel) -> tuple[int, int]:
        """Window and overlap in pieces, without the two special pieces."""
        most = network.config.max_pieces - 2
        window = min(MAX_WINDOW, most) if self.window is None else self.window
        if window > most:
            raise ConfigError(
                f"LukeEncoder.window is {window} pieces; the network holds at most {most}."
            )
        return window, min(self.overlap, window // 4 if self.window is None else window - 1)


def build_encoder(settings: EncoderSettings, forward: Callable) -> Model:
    """A ``luke-encoder`` node without weights; ``forward`` is what it does as a layer."""
    return Model(
        ENCODER,
        forward,
        init=_initialize,
        dims={"nO": None},
        attrs={"settings": settings, "dropout_rate": 0.1, "replace_listener": _replacement},
        shims=[LukeShim(None, Format(_save, _load))],
    )


def shim_of(node: Model) -> LukeShim:
    shim = node.shims[0]
    assert isinstance(shim, LukeShim)
    return shim


def module_of(node: Model) -> Encoder:
    """The encoder inside a ``luke-encoder`` node, made ready for its settings.

    Raises ConfigError where it has no weights yet.
    """
    module = shim_of(node).module
    if module is None:
        settings = node.attrs["settings"]
        raise ConfigError(
            f"The encoder {settings.name!r} has no weights yet: call nlp.initialize(), which "
            "reads them, or load a saved pipeline."
        )
    assert isinstance(module, Encoder)
    if not shim_of(node).prepared:
        _prepare(node, module)
    return module


@dataclass
class PublishedHead:
    """The classifier of the checkpoint an encoder was just read from.

    weights: ``classifier.weight`` and ``classifier.bias``, where there are any. raw_config: the
    checkpoint's ``config.json``. It serves initialisation and does not travel any further.
    """

    weights: dict[str, torch.Tensor] = field(default_factory=dict)
    raw_config: dict[str, Any] = field(default_factory=dict)

    def __deepcopy__(self, memo: Any) -> "PublishedHead":
        return PublishedHead()


def published_head(node: Model) -> PublishedHead:
    """The classifier that came with an encoder's checkpoint; empty where none did."""
    head = node.attrs.get("head")
    return head if isinstance(head, PublishedHead) else PublishedHead()


def from_checkpoint(checkpoint: Checkpoint, settings: EncoderSettings) -> Encoder:
    """A checkpoint to an encoder with what the settings add to it."""
    values = checkpoint.config.to_dict()
    values.update(word_shapes=settings.word_shapes, entity_labels=settings.entity_labels)
    network = LukeModel(LukeConfig.from_dict(values))
    init_weights(network, checkpoint.config.initializer_range)
    load_into(network, checkpoint)
    return Encoder(network, checkpoint.pieces, checkpoint.entities)


def _initialize(model: Model, X: Any = None, Y: Any = None) -> None:
    settings: EncoderSettings = model.attrs["settings"]
    shim = shim_of(model)
    checkpoint = read_checkpoint(resolve(settings.name), settings.entity_aware)
    module = from_checkpoint(checkpoint, settings)
    shim.set(module)
    classifier = {k: v for k, v in checkpoint.heads.items() if k.startswith("classifier.")}
    model.attrs["head"] = PublishedHead(classifier, checkpoint.raw_config)
    _prepare(model, module)


def _prepare(model: Model, module: Encoder) -> None:
    """Apply the settings to a module that was just read or loaded."""
    settings: EncoderSettings = model.attrs["settings"]
    network = module.network
    settings.window_of(network)  # raises where the window does not fit
    network.gradient_checkpointing = settings.gradient_checkpointing
    network.attention_dropout = settings.attention_dropout
    words = network.word_embeddings.words.weight
    words.requires_grad_(not settings.freeze_word_embeddings)
    rates = shim_of(model).rates = settings.rates
    rates.n_layers = network.config.num_hidden_layers
    model.set_dim("nO", network.config.hidden_size, force=True)
    shim_of(model).prepared = True


def _replacement(copied: Model, listener: Model, component: Any) -> Model:
    """What ``nlp.replace_listeners`` puts in a listener's place: the encoder's copy."""
    if hasattr(listener, "upstream_name"):
        raise ConfigError(
            "A spacy-transformers TransformerListener cannot be replaced by a LUKE encoder of its "
            "own; use spacy-luke.LukeListener.v1 as tok2vec, which can."
        )
    return copied


def _save(module: Encoder) -> bytes:
    files = {"pieces": module.pieces.to_dict(), "entities": module.entities.to_dict()}
    config = module.network.config.to_dict()
    return to_blob("encoder", config, module.network.state_dict(), files)


def _load(data: bytes) -> Encoder:
    config, tensors, files = from_blob("encoder", data)
    network = LukeModel(LukeConfig.from_dict(config))
    try:
        network.load_state_dict(tensors)
    except RuntimeError as err:
        raise CheckpointError(f"The saved encoder does not fit its configuration: {err}") from err
    missing = {"pieces", "entities"} - set(files)
    if missing:
        raise CheckpointError(f"The saved encoder lacks its vocabularies: {sorted(missing)}.")
    return Encoder(
        network,
        PieceTokenizer.from_dict(files["pieces"]),
        EntityVocab.from_dict(files["entities"]),
    )
