"""Every corruption against a computation of its own; no image depends on another."""

import colorsys
import io

import numpy as np
import pytest
from PIL import Image
from scipy.signal import convolve2d
from sklearn.datasets import load_sample_image

from dpn_plugin.data.corruptions import CORRUPTIONS, PARAMETERS, SEVERITIES, corrupt


@pytest.fixture(params=["grey", "colour"])
def image(request):
    photograph = load_sample_image("flower.jpg")[180:220, 300:348]
    return photograph[..., 1].copy() if request.param == "grey" else photograph.copy()


@pytest.mark.parametrize("parameters", PARAMETERS)
@pytest.mark.parametrize("corruption", CORRUPTIONS)
def test_the_image_moves_farther_away_with_every_severity(image, corruption, parameters):
    found = [corrupt(image, corruption, severity, parameters) for severity in SEVERITIES]
    distances = [np.abs(each.astype(float) - image).mean() for each in found]
    assert all(each.shape == image.shape and each.dtype == np.uint8 for each in found)
    assert distances[0] > 0
    assert distances == sorted(distances)


@pytest.mark.parametrize("corruption", CORRUPTIONS)
def test_an_image_is_corrupted_alike_every_time(image, corruption):
    first = corrupt(image, corruption, 3)
    corrupt(image[::-1].copy(), corruption, 5)
    assert np.array_equal(first, corrupt(image.copy(), corruption, 3))


def test_different_images_have_different_noise(image):
    other = image.copy()
    other[0, 0] += 1
    noise = [corrupt(each, "noise", 3).astype(int) - each for each in (image, other)]
    assert np.mean(noise[0] == noise[1]) < 0.2


@pytest.mark.parametrize(("parameters", "sigma"), [("cifar", 0.08), ("imagenet", 0.18)])
def test_noise_has_the_published_standard_deviation(parameters, sigma):
    image = np.full((200, 200, 3), 128, dtype=np.uint8)
    noise = (corrupt(image, "noise", 3, parameters).astype(float) - 128) / 255
    assert noise.std() == pytest.approx(sigma, rel=0.02)
    assert abs(noise.mean()) < 0.002
    assert abs(np.corrcoef(noise[..., 0].ravel(), noise[..., 1].ravel())[0, 1]) < 0.02


def test_blur_is_a_convolution_with_a_gaussian(image):
    sigma, radius = PARAMETERS["cifar"].blur[4], 4
    line = np.exp(-(np.arange(-radius, radius + 1) ** 2) / (2 * sigma**2))
    kernel = np.outer(line, line) / line.sum() ** 2
    channels = image.reshape(*image.shape[:2], -1)
    expected = [
        convolve2d(np.pad(channels[..., k].astype(float), radius, mode="edge"), kernel, "valid")
        for k in range(channels.shape[2])
    ]
    found = corrupt(image, "blur", 5).reshape(channels.shape)
    assert np.abs(found - np.stack(expected, axis=2)).max() <= 0.51


def test_contrast_keeps_the_mean_and_scales_the_deviations(image):
    found = corrupt(image, "contrast", 3).astype(float)
    mean = image.mean(axis=(0, 1))
    assert np.abs(found - (mean + 0.4 * (image - mean))).max() <= 0.51


@pytest.mark.parametrize(("parameters", "quality"), [("cifar", 58), ("imagenet", 15)])
def test_jpeg_has_the_published_quality(image, parameters, quality):
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "JPEG", quality=quality)
    assert np.array_equal(corrupt(image, "jpeg", 3, parameters), np.array(Image.open(buffer)))


def test_brightness_adds_to_the_value_of_hsv(image):
    image[0, 0] = 0
    colours = np.stack([image] * 3, axis=2) if image.ndim == 2 else image
    found = corrupt(image, "brightness", 4, "imagenet")
    found = np.stack([found] * 3, axis=2) if found.ndim == 2 else found
    for before, after in zip(colours.reshape(-1, 3), found.reshape(-1, 3), strict=True):
        hue, saturation, value = colorsys.rgb_to_hsv(*(before / 255))
        expected = colorsys.hsv_to_rgb(hue, saturation, min(value + 0.4, 1))
        assert np.abs(after / 255 - expected).max() <= 0.51 / 255


def test_the_size_decides_the_parameters():
    rng = np.random.default_rng(0)
    for side, parameters in ((32, "cifar"), (64, "cifar"), (65, "imagenet"), (224, "imagenet")):
        image = rng.integers(0, 256, (side, side + 10, 3), dtype=np.uint8)
        for corruption in CORRUPTIONS:
            expected = corrupt(image, corruption, 2, parameters)
            assert np.array_equal(corrupt(image, corruption, 2), expected)
