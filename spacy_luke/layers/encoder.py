"""The encoder in a Thinc node: its settings, and how it is initialised and read.

Task layers use the network inside the node (see ``encoder_run.py``), because the node itself
computes only word vectors, and they need entity states.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import numpy as np
import torch
from pydantic import Field
from thinc.api import Model

from ..checkpoint.hub import resolve
from ..checkpoint.names import ENTITY_TABLE
from ..checkpoint.read import Checkpoint, load_into, read_checkpoint
from ..errors import ConfigError
from ..inputs.alignment import Spaces, TokenisationRule
from ..model.config import LukeConfig
from ..model.network import LukeModel, init_weights
from ..report import LOGGER
from ..validation import Count, Positive, check_settings
from .encoder_check import check_encoder
from .encoder_files import load_encoder, save_encoder
from .encoder_module import Encoder
from .shim import Format, LearnRates, LukeShim

Pooling = Literal["mean", "first"]
EntityTable = Literal["trained", "stored", "half"]
ENCODER = "luke-encoder"
MAX_WINDOW, OVERLAP = 510, 128

FRESH = ("network.word_embeddings.shapes.", "network.entity_embeddings.labels.")


@dataclass
class EncoderSettings:
    """The settings of ``spacy-luke.LukeEncoder.v1``; see there."""

    name: str
    tokenization: TokenisationRule = "tokens"
    spaces: Spaces | None = None
    window: Count | None = None
    overlap: Annotated[int, Field(ge=0)] | None = None
    entity_aware: bool | None = None
    word_shapes: bool = False
    entity_labels: list[str] = field(default_factory=list)
    freeze_word_embeddings: bool = False
    mixed_precision: bool = False
    gradient_checkpointing: bool = False
    attention_dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
    pooling: Pooling = "mean"
    entity_table: EntityTable = "trained"
    max_learn_rate: Positive | Literal["auto"] | None = "auto"
    rates: LearnRates = field(default_factory=LearnRates)
    word_shape_dropout: Annotated[float, Field(ge=0, lt=1)] = 0.2

    def __post_init__(self) -> None:
        values = {name: x for name, x in vars(self).items() if name != "rates"}
        check_settings("LukeEncoder", EncoderSettings, values)
        if self.spaces == "conll" and self.tokenization == "mentions":
            raise ConfigError(
                "LukeEncoder.spaces is 'conll', a rule for words, and tokenization is 'mentions', "
                "which cuts text only around mentions; use tokenization 'tokens'."
            )
        if self.overlap is not None and self.overlap >= (self.window or MAX_WINDOW):
            raise ConfigError(
                f"LukeEncoder.overlap ({self.overlap}) must be less than window "
                f"({self.window or MAX_WINDOW})."
            )

    def highest_rate(self, config: LukeConfig) -> float | None:
        """The highest learning rate for an encoder of this size, or None for no limit.

        ``auto`` is 2e-4 for 6 layers of 384, for which it was measured (5e-4 costs a point of F1,
        and with 1e-3 nothing is learned). It decreases with width and depth: 5e-5 for a base,
        1.9e-5 for a large network. Published LUKE models were fine-tuned with 1e-5 to 5e-5.
        """
        if self.max_learn_rate != "auto":
            return self.max_learn_rate
        return 2e-4 * (384 / config.hidden_size) * (6 / config.num_hidden_layers)

    def window_of(self, network: LukeModel) -> tuple[int, int]:
        """Window and overlap in pieces, without the two special pieces."""
        most = network.config.max_pieces - 2
        window = min(MAX_WINDOW, most) if self.window is None else self.window
        if window > most:
            raise ConfigError(
                f"LukeEncoder.window is {window} pieces; the network has positions for {most}."
            )
        if self.overlap is None:
            return window, min(OVERLAP, window // 4)
        if self.overlap < window:
            return window, self.overlap
        # Without a window of its own, the setting may be of a config for longer networks.
        LOGGER.warning(
            "LukeEncoder.overlap is %d pieces, and the network has positions for %d: %d are used.",
            self.overlap,
            window,
            window // 4,
        )
        return window, window // 4


def build_encoder(settings: EncoderSettings, forward: Callable) -> Model:
    """A ``luke-encoder`` node without weights. forward: its function as a ``tok2vec`` layer."""
    return Model(
        ENCODER,
        forward,
        init=_initialize,
        dims={"nO": None},
        attrs={"settings": settings, "dropout_rate": 0.1, "replace_listener": _replace_listener},
        shims=[LukeShim(None, Format(save_encoder, load_encoder))],
    )


def shim_of(node: Model) -> LukeShim:
    shim = node.shims[0]
    assert isinstance(shim, LukeShim)
    return shim


def module_of(node: Model) -> Encoder:
    """The encoder inside a ``luke-encoder`` node, with the node's settings applied.

    Raises ConfigError if it has no weights yet.
    """
    module = shim_of(node).module
    if module is None:
        settings = node.attrs["settings"]
        raise ConfigError(
            f"The encoder {settings.name!r} has no weights yet: call nlp.initialize() to read "
            f"them, "
            "or load a saved pipeline."
        )
    assert isinstance(module, Encoder)
    if not shim_of(node).prepared:
        _apply_settings(node, module)
    return module


def from_checkpoint(checkpoint: Checkpoint, settings: EncoderSettings) -> Encoder:
    """An encoder from a checkpoint, with the embeddings that the settings add to it."""
    values = checkpoint.config.to_dict()
    values.update(word_shapes=settings.word_shapes, entity_labels=settings.entity_labels)
    with torch.device("meta"):
        network = LukeModel(LukeConfig.from_dict(values))
    load_into(network, checkpoint, take=True)
    for module in (network.word_embeddings.shapes, network.entity_embeddings.labels):
        if module is not None and module.weight.is_meta:  # published files do not have them
            init_weights(module.to_empty(device="cpu"), checkpoint.config.initializer_range)
    return Encoder(
        network, checkpoint.pieces, checkpoint.entities, checkpoint.others, checkpoint.source
    )


def to_checkpoint(encoder: Encoder) -> Checkpoint:
    """The checkpoint that an encoder can be written as."""
    table = encoder.network.entity_embeddings.table
    if isinstance(table, np.ndarray):
        table = torch.from_numpy(np.array(table, dtype=np.float32))
    return Checkpoint(
        encoder.network.config,
        {**encoder.network.state_dict(), ENTITY_TABLE: table.detach()},
        encoder.others,
        encoder.pieces,
        encoder.entities,
        encoder.source,
    )


@torch.inference_mode(False)
def set_encoder(node: Model, checkpoint: Checkpoint) -> None:
    """Replace the encoder in a node by a checkpoint."""
    settings: EncoderSettings = node.attrs["settings"]
    module = from_checkpoint(checkpoint, settings)
    check_encoder(module, checkpoint.source.name or settings.name)
    if settings.spaces is not None and not module.pieces.spaces_matter:
        LOGGER.warning(
            "LukeEncoder.spaces is %r, which changes nothing: the tokenizer of %s makes the same "
            "pieces of a word with a space before it and without.",
            settings.spaces,
            settings.name,
        )
    shim_of(node).set(module)
    _apply_settings(node, module)


@torch.inference_mode(False)  # its tensors could not be trained later
def _initialize(model: Model, X: Any = None, Y: Any = None) -> None:
    settings: EncoderSettings = model.attrs["settings"]
    directory = resolve(settings.name)
    set_encoder(model, read_checkpoint(directory, settings.entity_aware, settings.name))


def check_embeddings(node: Model) -> None:
    """Raise ConfigError if an encoder has other embeddings than the node's settings name, because
    these were overridden at loading: it would be used without what it has learned."""
    settings, module = node.attrs["settings"], shim_of(node).module
    if module is None:
        return
    assert isinstance(module, Encoder)
    config = module.network.config
    learned_settings = {
        "word_shapes": config.word_shapes,
        "entity_labels": config.entity_labels,
        "entity_aware": config.use_entity_aware_attention,
    }
    for name, learned in learned_settings.items():
        now = getattr(settings, name)
        if now is not None and now != learned:  # entity_aware None: as the checkpoint
            raise ConfigError(
                f"LukeEncoder.{name} is {now!r}, and the encoder was initialised with {learned!r}: "
                "this setting cannot be changed after nlp.initialize()."
            )


def _apply_settings(model: Model, module: Encoder) -> None:
    """Apply the settings to a module that was just read or loaded."""
    settings: EncoderSettings = model.attrs["settings"]
    network = module.network
    check_embeddings(model)
    module.window = settings.window_of(network)
    network.gradient_checkpointing = settings.gradient_checkpointing
    network.attention_dropout = settings.attention_dropout
    network.word_embeddings.shape_dropout = settings.word_shape_dropout
    _convert_table(network, settings.entity_table)
    for name, parameter in module.named_parameters():
        parameter.requires_grad_(settings.rates.scale(name) > 0)  # else a backward pass in vain
    if settings.freeze_word_embeddings:
        network.word_embeddings.words.weight.requires_grad_(False)
    rates = shim_of(model).rates = settings.rates
    rates.n_layers = network.config.num_hidden_layers
    highest = settings.highest_rate(network.config)
    # The optimizer's rate is compared with the limit before it is multiplied by this factor. A
    # frozen encoder (factor 0) limits nothing.
    factor = rates.learn_rate_factor
    rates.max_rate = None if highest is None or not factor else highest / factor
    rates.owner = settings.name
    model.set_dim("nO", network.config.hidden_size, force=True)
    shim_of(model).prepared = True


def _convert_table(network: LukeModel, form: EntityTable) -> None:
    """Convert the entity table between trained and stored rows. A table in half precision stays in
    half precision if the form is ``stored``."""
    table = network.entity_embeddings.table
    if form == "trained":
        if isinstance(table, np.ndarray):
            rows = torch.from_numpy(np.array(table, dtype=np.float32)).to(network.device)
            network.entity_embeddings.set_table(rows)
        return
    stored = table if isinstance(table, np.ndarray) else table.detach().cpu().numpy()
    if form == "half" and stored.dtype != np.float16:
        stored = stored.astype(np.float16)
    if stored is not table:
        network.entity_embeddings.set_table(stored)


def _replace_listener(copied: Model, listener: Model, component: Any) -> Model:
    """The model with which ``nlp.replace_listeners`` replaces a listener: the encoder's copy."""
    if hasattr(listener, "upstream_name"):
        raise ConfigError(
            "A spacy-transformers TransformerListener cannot be replaced by a LUKE encoder; use "
            "spacy-luke.LukeListener.v1 as tok2vec instead."
        )
    link = listener.attrs["link"]
    pooling = copied.attrs["settings"].pooling
    if link.pools and link.pooling != pooling:
        # The config of the copy, which spaCy has written, has the encoder's.
        raise ConfigError(
            f"The listener's pooling is {link.pooling!r}, and the encoder's {pooling!r}: the "
            "component would get other vectors than those that it has learned. Load the pipeline "
            f"with pooling = {link.pooling!r} in the encoder's block, and replace its listeners "
            "then."
        )
    return copied
