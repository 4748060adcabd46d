"""What tuning has chosen for a component holds for the weights that it was chosen with."""

from typing import Any, ClassVar

from thinc.api import Model

from ..calibration import CalibrationTable
from ..layers.task_layer import encoder_steps
from ..report import LOGGER
from ..validation import HasSettings, Name, Probability, setting
from .confidence import Confidence


class HasTunedSettings(HasSettings):
    """A component with a calibration of its scores and thresholds of its labels.

    They are removed when the component learns, and a warning is logged if only the encoder that it
    shares does.
    """

    least_score: ClassVar[str] = "threshold"
    """The setting with the least score of an answer."""

    thresholds: dict[Name, Probability | None] = setting()
    calibration: CalibrationTable | None = setting()

    model: Model
    _tuned_at: tuple[int, int] | None = None

    @property
    def answer_labels(self) -> tuple[str, ...]:
        """The labels of the component's answers."""
        raise NotImplementedError

    @property
    def _confidence(self) -> Confidence:
        return Confidence.of(self.name, self.cfg, self.answer_labels, self.least_score)

    def note_weights(self) -> None:
        """Calibration and thresholds are those of the present weights: they are being tuned, or
        were loaded."""
        self._tuned_at = encoder_steps(self.model)

    def _forget_tuning(self) -> None:
        """Remove calibration and thresholds, which are those of weights that are now changed."""
        if self.calibration is None and not self.thresholds:
            return
        # The least score that was chosen is one of calibrated scores.
        before: Any = getattr(self, self.least_score)
        if self.calibration is not None:
            before = self.calibration.get("before", before)
        self.cfg.update(thresholds={}, calibration=None, **{self.least_score: before})
        LOGGER.warning(
            "%s: calibration and thresholds of labels are removed, because the weights that they "
            "were chosen for are changed. %s is %s, as before tuning. Tune again after training, "
            "unless that tunes what it saves.",
            self.name,
            self.least_score,
            getattr(self, self.least_score),
        )

    def _warn_of_moved_encoder(self) -> None:
        """Warn, once, if a shared encoder has learned without this component since that was
        tuned."""
        if self._tuned_at is None or not (self.calibration or self.thresholds):
            return
        now = encoder_steps(self.model)
        if now is not None and now[0] == self._tuned_at[0] and now != self._tuned_at:
            self._tuned_at = None
            LOGGER.warning(
                "%s was tuned, and its encoder has been trained since, with other components: its "
                "scores and thresholds are those of other weights. Tune it again.",
                self.name,
            )
