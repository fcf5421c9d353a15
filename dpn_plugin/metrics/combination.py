"""Several detectors as one, on their conformal p-values."""

import torch
from torch import Tensor

from dpn_plugin.errors import UserError
from dpn_plugin.metrics.conformal import conformal_p_values

_SEED = 0


class FisherCombination:
    r"""
    Fisher's statistic of several detectors, with calibration scores of its own.

    .. math:: T(x) = -2 \sum_j \log p_j(x)

    Detectors of one network depend on each other, so :math:`T` is not :math:`\chi^2`-distributed.
    It is one more score instead, and is calibrated like any other: one half of the calibration
    samples, drawn at random, gives the members' p-values :math:`p_j`; :math:`T` of the other half
    is :attr:`calibration`. Given the first half, :math:`T` is a fixed function, so new in-domain
    samples and the second half are exchangeable, and the promises of
    :func:`~dpn_plugin.metrics.conformal_p_values` and
    :func:`~dpn_plugin.metrics.conformal_threshold` hold exactly, for half of the samples.

    .. note:: Samples that score above the whole first half for every member share the largest
        :math:`T`.

    :param calibration: scores of n calibration samples by J members, shape (n, J)
    :raises UserError: if there are fewer than two samples or members
    """

    def __init__(self, calibration: Tensor) -> None:
        if calibration.dim() != 2 or min(calibration.shape) < 2:
            shape = tuple(calibration.shape)
            raise UserError(
                "calibration must have the scores of at least 2 samples by at least 2 detectors, "
                f"got shape {shape}."
            )
        n = len(calibration)
        order = torch.randperm(n, generator=torch.Generator().manual_seed(_SEED))
        #: scores of the samples that give the members' p-values, shape (n // 2, J)
        self.reference = calibration[order[: n // 2]]
        #: positions of the other samples
        self.calibrated = order[n // 2 :]
        #: their statistic: the calibration scores of the combination
        self.calibration = self.scores(calibration[self.calibrated])

    def scores(self, scores: Tensor) -> Tensor:
        """
        Return the statistic of new samples, float64, shape (M,); larger means more likely OOD.

        :param scores: of the members, shape (M, J)
        :raises UserError: if the number of members differs, or a score is NaN
        """
        members = self.reference.shape[1]
        if scores.dim() != 2 or scores.shape[1] != members:
            shape = tuple(scores.shape)
            raise UserError(f"scores must have one column for each of {members} members: {shape}.")
        columns = zip(self.reference.T, scores.T, strict=True)
        return -2 * torch.stack([conformal_p_values(*pair).log() for pair in columns]).sum(dim=0)
