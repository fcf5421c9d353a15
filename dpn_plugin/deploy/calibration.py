"""The calibration scores of one detector, and the p-values and decisions that follow from them."""

from collections.abc import Sequence

import torch
from torch import Tensor

from dpn_plugin.deploy.record import DecisionRule
from dpn_plugin.errors import UserError
from dpn_plugin.metrics import (
    conformal_p_values,
    conformal_p_values_by_class,
    conformal_threshold,
    conformal_thresholds_by_class,
)


class Calibration:
    """
    What a detector gave for calibration samples, which nothing was trained or fitted on.

    :param scores: of the calibration samples, shape n
    :param predictions: their predicted classes, shape n
    :param rule: when an image is rejected
    :param num_classes: number of in-domain classes
    :raises UserError: if there are too few samples for the rule
    """

    def __init__(
        self, scores: Tensor, predictions: Tensor, rule: DecisionRule, num_classes: int
    ) -> None:
        self.scores, self.predictions, self.rule = scores.double(), predictions, rule
        if rule.by_class:
            self.thresholds = conformal_thresholds_by_class(
                self.scores, predictions, rule.alpha, num_classes, rule.confidence
            )
        else:
            threshold = conformal_threshold(self.scores, rule.alpha, rule.confidence)
            self.thresholds = torch.tensor([threshold], dtype=torch.float64)

    def p_values(self, scores: Tensor, predictions: Tensor) -> Tensor:
        """
        Return a conformal p-value for each score, float64.

        :param scores: of new images, shape N
        :param predictions: their predicted classes, shape N
        """
        if self.rule.by_class:
            return conformal_p_values_by_class(
                self.scores, self.predictions, scores.double(), predictions
            )
        return conformal_p_values(self.scores, scores.double())

    def rejected(self, scores: Tensor, predictions: Tensor) -> Tensor:
        """
        Return whether each image is rejected; without ``confidence`` this is p <= alpha.

        :param scores: of new images, shape N
        :param predictions: their predicted classes, shape N
        """
        limits = self.thresholds[predictions] if self.rule.by_class else self.thresholds
        return scores.double() > limits

    def check_thresholds(self, name: str, recorded: Sequence[float]) -> None:
        """
        Check that recorded thresholds follow from these scores.

        :param name: of the detector, for the message
        :param recorded: the thresholds in ``bundle.json``
        :raises UserError: if they do not
        """
        if list(recorded) != self.thresholds.tolist():
            raise UserError(
                f"The thresholds of {name!r} in the bundle do not follow from its calibration "
                "scores: the bundle is forged or damaged. Make it again."
            )
