"""A two-stage ``luke_ner`` pipeline, and its network alone on inputs prepared beforehand."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import spacy
import torch
from spacy.language import Language
from spacy.tokens import Doc
from thinc.api import fix_random_seed

from spacy_luke.inputs.alignment import align
from spacy_luke.inputs.placed_spans import place_spans
from spacy_luke.layers.span_network import best_per_sequence
from spacy_luke.layers.task_layer import encoder_of, head_of
from spacy_luke.model.heads import LinearHead, SpanFilter

from .peer_data import MAX_WINDOW, all_spans

ENTITY_RATE = 0.05  # entities among the spans asked about: about one in twenty words


def build_pipeline(checkpoint: Path, max_words: int) -> Language:
    """Two stages at k = words, with the labels and the head of the checkpoint."""
    fix_random_seed(0)
    nlp = spacy.blank("en")
    model = {
        "@architectures": "spacy-luke.SpanScorer.v1",
        "mode": "two-stage",
        "label_weight": None,
        "encoder": {"@architectures": "spacy-luke.LukeEncoder.v1", "name": str(checkpoint)},
    }
    suggester = {"@misc": "spacy-luke.sentence_spans_suggester.v1", "max_words": max_words}
    nlp.add_pipe("luke_ner", config={"model": model, "suggester": suggester})
    nlp.initialize()
    return nlp


def bare_docs(docs: Sequence[Doc]) -> list[Doc]:
    """Fresh documents with the same words and sentence starts."""
    return [
        Doc(
            doc.vocab,
            words=[token.text for token in doc],
            spaces=[bool(token.whitespace_) for token in doc],
            sent_starts=[token.is_sent_start for token in doc],
        )
        for doc in docs
    ]


def set_nil_bias(pipe: Any, docs: Sequence[Doc]) -> float:
    """Make random weights write about as many entities as text has; returns the bias."""
    _, scores = pipe.predict(docs)
    logits = pipe.model.ops.to_numpy(scores.logits)
    bias = float(np.quantile(logits[:, -1] - logits[:, :-1].max(-1), ENTITY_RATE))
    pipe.nil_bias = bias
    return bias


class BareNetwork:
    """The network calls of a two-stage pipeline for one batch of short documents; everything
    around them (candidates, pieces, packing, which spans the filter keeps) was done before."""

    def __init__(self, pipe: Any, docs: Sequence[Doc], max_words: int):
        encoder, head = encoder_of(pipe.model), head_of(pipe.model).eval()
        self.network = encoder.network.eval()
        self.head, self.filter = head.part("head", LinearHead), head.part("filter", SpanFilter)
        spans = all_spans(docs, encoder.pieces, max_words)
        pieces = align(docs, encoder.pieces)
        table = np.concatenate(spans)
        of_span = np.repeat(np.arange(len(docs)), [len(x) for x in spans])
        placed = place_spans(
            docs, pieces, encoder.pieces, table, of_span, size=MAX_WINDOW, overlap=0
        )
        (batch,) = placed.batches(None, all_windows=False)
        self.words = batch
        self.n_words = np.asarray([len(doc) for doc in docs], dtype=np.int64)
        widths = (table[:, 1] - table[:, 0])[batch.rows]
        self.candidates = self._tensors(batch.first, batch.last, widths)
        with torch.inference_mode():
            states = self.network.encode_words(self.words, self.n_words).states
            ranking = self._filter(states).float().cpu().numpy()
        kept = batch.take(best_per_sequence(ranking, batch.sequences, self.n_words))
        self.entities = kept.entities(encoder.mask_id)
        self.ends = self._tensors(kept.first, kept.last)

    def logits(self) -> torch.Tensor:
        """(n_scored, n_classes)."""
        word_pass = self.network.encode_words(self.words, self.n_words)
        self._filter(word_pass.states)
        states = self.network.encode_entities(word_pass, self.entities)
        first, last = self.ends
        return self.head.on_pieces(word_pass.states, first, last, states)

    def _filter(self, states: torch.Tensor) -> torch.Tensor:
        return self.filter(states, *self.candidates)

    def _tensors(self, *arrays: np.ndarray) -> list[torch.Tensor]:
        return [torch.from_numpy(x).to(self.network.device) for x in arrays]
