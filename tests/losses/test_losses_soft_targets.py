"""Outlier exposure with a temperature, and with targets of mixtures."""

import pytest
import torch
from torch.nn import functional as F

from dpn_plugin.errors import UserError
from dpn_plugin.losses import MixtureExposureLoss, UniformOutliersLoss

LOGITS = torch.randn(8, 5, generator=torch.Generator().manual_seed(0)).double()
TARGET = torch.tensor([0, 1, 4, 2, 2, -1, -1, -3])


def test_the_temperature_softens_the_prediction_of_outliers_alone():
    uniform = torch.full((3, 5), 0.2).double()
    expected = F.cross_entropy(LOGITS[:5], TARGET[:5])
    expected = expected + 0.7 * F.cross_entropy(LOGITS[5:] / 4, uniform)
    found = UniformOutliersLoss(gamma=0.7, temperature=4.0)(LOGITS, TARGET)
    torch.testing.assert_close(found, expected)


def test_soft_targets_are_those_of_the_cross_entropy():
    soft = torch.rand(8, 5, generator=torch.Generator().manual_seed(1)).double().softmax(1)
    inside, outside = (F.cross_entropy(LOGITS[i], soft[i]) for i in (TARGET >= 0, TARGET < 0))
    found = MixtureExposureLoss(5, gamma=3.0)(LOGITS, TARGET, soft)
    torch.testing.assert_close(found, inside + 3 * outside)


def test_without_soft_targets_it_is_outlier_exposure():
    found = MixtureExposureLoss(gamma=0.5)(LOGITS, TARGET)
    assert found == UniformOutliersLoss(gamma=0.5)(LOGITS, TARGET)


@pytest.mark.parametrize(
    "options", [{"temperature": 0}, {"temperature": float("nan")}, {"gamma": 0}]
)
def test_a_weight_or_temperature_that_is_not_positive_is_refused(options):
    with pytest.raises(UserError, match=next(iter(options))):
        UniformOutliersLoss(**options)


def test_soft_targets_of_another_shape_are_refused():
    with pytest.raises(UserError, match=r"\(8, 5\), not \(8, 4\)"):
        MixtureExposureLoss()(LOGITS, TARGET, torch.ones(8, 4))
