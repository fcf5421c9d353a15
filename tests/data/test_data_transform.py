import numpy as np
import pytest
import torch
from torchvision.transforms.v2 import functional as transforms

from dpn_plugin.data import Samples, Transform, channel_statistics
from dpn_plugin.data.transform import to_float
from dpn_plugin.errors import UserError


def test_bytes_are_normalised_as_torchvision_does(images):
    mean, std = [0.4, 0.5, 0.6], [0.1, 0.2, 0.3]
    expected = transforms.normalize(transforms.to_dtype(images.inputs, scale=True), mean, std)
    torch.testing.assert_close(to_float(images.inputs, mean, std), expected)


def test_data_normalised_by_its_own_statistics_has_mean_0_and_deviation_1(images):
    values = to_float(images.inputs, *channel_statistics(images)).double()
    torch.testing.assert_close(values.mean((0, 2, 3)), torch.zeros(3).double(), atol=1e-6, rtol=0)
    deviation = values.std((0, 2, 3), correction=0)
    torch.testing.assert_close(deviation, torch.ones(3).double(), atol=1e-6, rtol=0)


def test_statistics_of_points_agree_with_numpy():
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
    ("mean", "std", "message"),
    [([0.5], [0.5], "3 values"), ([0.0] * 3, [1.0, 1.0, 0.0], "std must be positive")],
)
def test_invalid_statistics_are_refused(images, mean, std, message):
    with pytest.raises(UserError, match=message):
        to_float(images.inputs, mean, std)


@pytest.mark.parametrize(
    ("images", "found"),
    [
        (torch.linspace(0, 255, 48), "torch.float32 with values from 0 to 255"),
        (torch.linspace(-2, 2, 48), "torch.float32 with values from -2 to 2"),
        (torch.arange(48), "torch.int64 with values from 0 to 47"),
        (torch.full((48,), float("nan")), "values from nan to nan"),
    ],
)
def test_images_of_another_range_are_refused_with_the_fix(images, found):
    transform = Transform((0.5,) * 3, (0.2,) * 3, (4, 4))
    with pytest.raises(UserError, match=f"{found}.*uint8 images from 0 to 255, or .* from 0 to 1"):
        transform(images.reshape(1, 3, 4, 4))


def test_float_images_from_0_to_1_equal_bytes(images):
    transform = Transform((0.5,) * 3, (0.2,) * 3)
    torch.testing.assert_close(transform(images.inputs / 255), transform(images.inputs))
    slightly_outside = transform(torch.full((1, 3, 4, 4), 1.2))
    assert torch.isfinite(slightly_outside).all()


def test_points_and_empty_batches_have_any_range():
    assert Transform((0.0,) * 2, (1.0,) * 2)(torch.full((3, 2), 300.0)).max() == 300
    assert Transform((0.0,) * 3, (1.0,) * 3)(torch.zeros(0, 3, 4, 4)).shape == (0, 3, 4, 4)
