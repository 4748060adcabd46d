"""``benchmarks.WordClozeScorer.v1``: a cloze scorer without entity tokens."""

from dataclasses import dataclass

import numpy as np
import torch
from spacy.util import registry
from thinc.api import Model

from spacy_luke.layers.cloze_scorer import ClozeQuery, ClozeScorer, Mode
from spacy_luke.layers.encoder_run import EncoderRun
from spacy_luke.layers.given_spans import ClassScores
from spacy_luke.layers.shim import LearnRates
from spacy_luke.layers.task_layer import task_layer
from spacy_luke.model.packing import Entities, LukeInputs
from spacy_luke.model.ranges import range_means


@dataclass
class WordClozeScorer(ClozeScorer):
    """Reads the mean state of the pieces of gaps and mentions; there are no entity inputs."""

    def states(self, run: EncoderRun, inputs: LukeInputs) -> torch.Tensor:
        words, entities = inputs.words, inputs.entities
        none = Entities.none(words.n_sequences)
        states = run.encode(LukeInputs(words, none), "full").words
        base = np.repeat(words.offsets[:-1], np.diff(entities.offsets))
        starts, ends = run.index(base + entities.starts), run.index(base + entities.ends)
        return range_means(states, starts, ends)


@registry.architectures("benchmarks.WordClozeScorer.v1")
def WordClozeScorer_v1(
    encoder: Model,
    *,
    mode: Mode = "unmarked",
    stride: int = 128,
    max_query_pieces: int = 90,
    max_mention_pieces: int = 30,
    learn_rate_factor: float = 1.0,
) -> Model[ClozeQuery, ClassScores]:
    """Settings as of ``spacy-luke.ClozeScorer.v1``."""
    scorer = WordClozeScorer(mode, stride, max_query_pieces, max_mention_pieces)
    return task_layer(encoder, scorer, LearnRates(learn_rate_factor))
