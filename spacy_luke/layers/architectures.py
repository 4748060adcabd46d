"""The registered encoder layers: an encoder with its own weights, and a listener to a shared one.

Both are also ``tok2vec`` layers, ``Model[List[Doc], List[Floats2d]]``, for any spaCy component.
"""

from typing import Literal

from spacy.util import registry
from thinc.api import Model

from .encoder import FRESH, EncoderSettings, build_encoder
from .listener import build_listener
from .shim import LearnRates
from .token_vectors import forward


@registry.architectures("spacy-luke.LukeEncoder.v1")
def LukeEncoder_v1(
    name: str = "studio-ousia/luke-base",
    *,
    tokenization: Literal["tokens", "mentions"] = "tokens",
    spaces: Literal["text", "words", "conll"] | None = None,
    window: int | None = None,
    overlap: int | None = None,
    entity_aware: bool | None = None,
    word_shapes: bool = False,
    entity_labels: list[str] | None = None,
    freeze_word_embeddings: bool = False,
    mixed_precision: bool = False,
    gradient_checkpointing: bool = False,
    attention_dropout: float = 0.0,
    pooling: Literal["mean", "first"] = "mean",
    entity_table: Literal["trained", "stored", "half"] = "trained",
    max_learn_rate: float | Literal["auto"] | None = "auto",
    learn_rate_factor: float = 1.0,
    new_learn_rate_factor: float = 1.0,
    layer_decay: float = 1.0,
    decay_everything: bool = False,
    word_shape_dropout: float = 0.2,
) -> Model:
    """An encoder of words and entities with its own weights.

    name: a directory or a hub name of a published LUKE, or of a plain BERT, RoBERTa or XLM-R
        encoder, which is warm-started into LUKE. It is read when the pipeline is *initialised*. A
        saved pipeline contains the weights and does not read it again.
    tokenization: ``tokens`` cuts the text at every spaCy token, ``mentions`` only around the
        spans of the query, as published models were trained.
    spaces: which tokens have a space before them, if that changes their word pieces (only with
        byte-level BPE). ``text``: those that have one in the text. ``words``: every token, the
        first included, or with ``mentions`` every part between the cuts. ``conll``: every token
        except those that begin with ``'`` or are one punctuation character, as LUKE read
        CoNLL-2003; invalid with ``mentions``, in which punctuation is not a separate part. Defaults
        to ``words`` if the checkpoint sets ``add_prefix_space``, else to ``text``.
    window: pieces per sequence; defaults to the network's maximum, at most 510.
    overlap: pieces that consecutive windows of a long text share; defaults to 128, at most a
        quarter of the window.
    entity_aware: entity-aware attention; defaults to the checkpoint's.
    word_shapes: add a word-shape embedding (for uncased encoders). word_shape_dropout: the share of
        pieces whose shape is not shown in training, so that text in another case is read as well.
    entity_labels: coarse labels; each gets an embedding, which is added to the entity's.
    freeze_word_embeddings: do not train the word table (most parameters of a small encoder).
    mixed_precision: bf16 autocast of the encoder, not of heads; float32 on a device that only
        emulates bf16.
    gradient_checkpointing: less memory for more time.
    attention_dropout: dropout of attention weights; other dropout is ``[training] dropout``.
    pooling: how pieces become tokens if this is used as a ``tok2vec`` layer.
    entity_table: the entity embeddings (most of a model with many entities) are ``trained``; or not
        trained but ``stored``, so that a loaded pipeline reads from its files only the rows it
        needs; or stored in ``half`` precision. May be changed when a pipeline is loaded.
    max_learn_rate: limit of the learning rate of this encoder, which is the optimizer's times
        ``learn_rate_factor``. A higher rate of the optimizer is reduced, also for the heads of
        luke_* components on the encoder (not for the layers of spaCy's own), and logged. An encoder
        that is not trained (0) limits nothing. ``auto``: see
        :meth:`spacy_luke.layers.encoder.EncoderSettings.highest_rate`; null: no limit.
    learn_rate_factor, new_learn_rate_factor, layer_decay, decay_everything: see
        :class:`spacy_luke.layers.shim.LearnRates`; "new" are word shapes and entity labels.
    """
    settings = EncoderSettings(
        name,
        tokenization,
        spaces,
        window,
        overlap,
        entity_aware,
        word_shapes,
        list(entity_labels or []),
        freeze_word_embeddings,
        mixed_precision,
        gradient_checkpointing,
        attention_dropout,
        pooling,
        entity_table,
        max_learn_rate,
        LearnRates(
            learn_rate_factor,
            new_learn_rate_factor,
            FRESH,
            layer_decay,
            decay_everything=decay_everything,
        ),
        word_shape_dropout,
    )
    return build_encoder(settings, forward)


@registry.architectures("spacy-luke.LukeListener.v1")
def LukeListener_v1(upstream: str = "*", pooling: Literal["mean", "first"] = "mean") -> Model:
    """Share the encoder of the ``luke`` component named ``upstream`` (``*``: any).

    pooling: how pieces become tokens if this is used as a ``tok2vec`` layer.
    """
    return build_listener(upstream, pooling, forward)
