"""The registered encoder layers: an encoder of one's own, and a listener to another's.

Called by itself either is a ``tok2vec`` layer, ``Model[List[Doc], List[Floats2d]]``, for any spaCy
component.
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
) -> Model:
    """An encoder of words and entities with weights of its own.

    name: a directory or a hub name: a published LUKE, or a plain BERT, RoBERTa or XLM-R
        encoder, which is warm-started into LUKE. Read when the pipeline is *initialised*; a
        saved pipeline holds the weights and never reads it again.
    tokenization: ``tokens`` cuts the text at every spaCy token, ``mentions`` only around the
        spans of the query, as published models were trained.
    spaces: what has a space before it, where word pieces differ by that (byte-level BPE; otherwise
        it changes nothing). ``text``: what has one in the text. ``words``: every token, the first
        included, or under ``mentions`` every part between the cuts. ``conll``: every token but
        those that begin with ``'`` or are one punctuation character, as LUKE read CoNLL-2003; not
        under ``mentions``, where punctuation has no part of its own. By default ``words`` where the
        checkpoint says ``add_prefix_space``, else ``text``.
    window, overlap: pieces of a sequence (by default what the network holds, at most 510)
        and pieces that neighbouring windows of a long text share.
    entity_aware: entity-aware attention; by default as the checkpoint has it.
    word_shapes: add a word-shape embedding (for uncased encoders).
    entity_labels: coarse labels that get an embedding beside the entity's.
    freeze_word_embeddings: do not train the word table (most of a small encoder).
    mixed_precision: bf16 autocast. gradient_checkpointing: trade time for memory.
    attention_dropout: dropout of attention weights; other dropout is ``[training] dropout``.
    pooling: pieces to tokens where this is used as a ``tok2vec`` layer.
    entity_table: what becomes of the entity embeddings, most of a model with many entities: they
        are ``trained``; or not, and ``stored`` so that a loaded pipeline reads the rows it needs
        from its files; or stored in ``half`` precision. It may be changed when a pipeline is
        loaded.
    max_learn_rate: the highest rate at which this encoder, and the layers on it, are trained; a
        higher one of the config's optimizer counts as this, which is logged. ``auto`` goes by the
        size of the network (:meth:`spacy_luke.layers.encoder.EncoderSettings.highest_rate`);
        null: no limit.
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
    )
    return build_encoder(settings, forward)


@registry.architectures("spacy-luke.LukeListener.v1")
def LukeListener_v1(upstream: str = "*", pooling: Literal["mean", "first"] = "mean") -> Model:
    """Share the encoder of the ``luke`` component called ``upstream`` (``*``: any).

    pooling: pieces to tokens where this is used as a ``tok2vec`` layer.
    """
    return build_listener(upstream, pooling, forward)
