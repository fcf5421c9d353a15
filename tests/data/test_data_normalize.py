import numpy as np
import pytest
import torch
from torchvision.transforms.v2 import functional as transforms

from dpn_plugin.data import Samples
from dpn_plugin.data.normalize import channel_statistics, to_float
from dpn_plugin.errors import UserError


def test_bytes_are_normalised_as_torchvision_does(images):
    mean, std = [0.4, 0.5, 0.6], [0.1, 0.2, 0.3]
    expected = transforms.normalize(transforms.to_dtype(images.inputs, scale=True), mean, std)
    torch.testing.assert_close(to_float(images.inputs, mean, std), expected)


def test_data_normalised_by_its_own_statistics_is_standard(images):
    values = to_float(images.inputs, *channel_statistics(images)).double()
    torch.testing.assert_close(values.mean((0, 2, 3)), torch.zeros(3).double(), atol=1e-6, rtol=0)
    deviation = values.std((0, 2, 3), correction=0)
    torch.testing.assert_close(deviation, torch.ones(3).double(), atol=1e-6, rtol=0)


def test_statistics_of_points_are_numpys():
    points = torch.randn(5000, 2, generator=torch.Generator().manual_seed(0)) * 3 + 7
    mean, std = channel_statistics(Samples(points, torch.zeros(5000).long(), "points"))
    assert mean == pytest.approx(np.mean(points.double().numpy(), axis=0))
    assert std == pytest.approx(np.std(points.double().numpy(), axis=0))
    assert to_float(points, mean, std).mean().abs() < 1e-5


def test_the_batch_itself_is_not_changed():
    points = torch.ones(3, 2)
    to_float(points, [1.0, 1.0], [2.0, 2.0])
    assert points.unique().tolist() == [1.0]


@pytest.mark.parametrize(
    ("mean", "std", "words"),
    [([0.5], [0.5], "3 values"), ([0.0] * 3, [1.0, 1.0, 0.0], "std must be positive")],
)
def test_statistics_that_do_not_fit_are_refused(images, mean, std, words):
    with pytest.raises(UserError, match=words):
        to_float(images.inputs, mean, std)
