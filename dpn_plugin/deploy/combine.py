"""Combinations of detectors in a bundle: ``fisher(dpn-mi,knn)``."""

from collections.abc import Mapping

import torch
from torch import Tensor

from dpn_plugin.deploy.calibration import Calibration
from dpn_plugin.detectors import Combination
from dpn_plugin.metrics import FisherCombination


class BundledCombination:
    """
    Fisher's statistic of some of a bundle's detectors.

    It follows from the calibration scores of its members, so a bundle keeps nothing else for it.
    One half of them gives the members' p-values, the other half calibrates the statistic.

    :param combination: names its members
    :param calibrations: of the detectors of the bundle, by name
    :param num_classes: number of in-domain classes
    :raises UserError: if half of the calibration samples are too few for the rule
    """

    def __init__(
        self, combination: Combination, calibrations: Mapping[str, Calibration], num_classes: int
    ) -> None:
        self.name, self.members = combination.name, combination.members
        members = [calibrations[name] for name in self.members]
        self._fisher = FisherCombination(torch.stack([each.scores for each in members], dim=1))
        predictions = members[0].predictions[self._fisher.calibrated]
        #: the calibration of the statistic itself
        self.calibration = Calibration(
            self._fisher.calibration, predictions, members[0].rule, num_classes
        )

    def scores(self, found: Mapping[str, Tensor]) -> Tensor:
        """
        Return one score per sample, float64.

        :param found: scores of the bundle's detectors, by name
        """
        columns = [found[name].double() for name in self.members]
        return self._fisher.scores(torch.stack(columns, dim=1))
