"""The scores that a component writes, and the least score of every label."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..calibration import CalibrationTable, calibrate
from ..errors import ConfigError
from ..ties import reaches

Array = np.ndarray


def unknown_labels(thresholds: Iterable[str], labels: Iterable[str]) -> list[str]:
    """The labels with a threshold that a component does not have."""
    return sorted(set(thresholds) - set(labels))


class Confidence:
    """Scores are calibrated probabilities (:mod:`spacy_luke.calibration`), or the network's.

    thresholds: label -> least score, or None if it is never written; ``threshold`` for all other
        labels.
    """

    def __init__(
        self,
        labels: Sequence[str],
        threshold: float,
        thresholds: Mapping[str, float | None],
        calibration: CalibrationTable | None,
    ) -> None:
        self.labels, self.calibration = labels, calibration
        least = [thresholds.get(x, threshold) for x in labels]
        self.least = np.asarray([np.inf if x is None else x for x in least], dtype=np.float64)

    @classmethod
    def of(
        cls, name: str, cfg: Mapping[str, Any], labels: Sequence[str], least_score: str
    ) -> "Confidence":
        """The confidence of a component's settings. Raises ConfigError for thresholds of labels
        that it does not have. name: of the component. labels: of its answers. least_score: the
        setting with the threshold; if it is None, that is a half where an answer may have several
        labels, each with a probability of its own, and else 0: the most probable counts."""
        unknown = unknown_labels(cfg["thresholds"], labels)
        if unknown:
            raise ConfigError(f"{name}.thresholds names {unknown}, which are not its labels.")
        least = cfg[least_score]
        if least is None:
            least = 0.5 if cfg["multi_label"] else 0.0
        return cls(labels, least, cfg["thresholds"], cfg["calibration"])

    def scores(self, of_label: Array, probabilities: Array) -> Array:
        """of_label: the number of each answer's label. probabilities: of the same shape."""
        if self.calibration is None:
            return probabilities
        return calibrate(self.calibration, self.labels, of_label, probabilities)

    def accepts(self, of_label: Array, scores: Array) -> Array:
        """Whether each answer is written."""
        return reaches(scores, self.least[of_label])
