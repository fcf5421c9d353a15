r"""
Five corruptions of images at five severities, after Hendrycks and Dietterich.

*Benchmarking Neural Network Robustness to Common Corruptions and Perturbations*, ICLR 2019, defines
them for ImageNet (224 pixels) and, with weaker parameters, for CIFAR-10 (32 pixels). Both sets of
parameters are here. ``x`` is an image with values between 0 and 1:

=============  ==================================================================================
``noise``      :math:`x + \sigma n`, :math:`n` standard normal for every pixel and channel
``blur``       a Gaussian kernel of standard deviation :math:`s`, edges repeated
``contrast``   :math:`c\,(x - \bar x) + \bar x`, :math:`\bar x` the mean of each channel
``jpeg``       saved and read again as JPEG of quality :math:`q`
``brightness`` :math:`V + b` in HSV, at most 1
=============  ==================================================================================

.. note:: Three things differ from the published sets. The noise of an image is drawn from a seed
    that its own pixels give, and is the same at all severities except for its scale, so that an
    image never depends on others. ``blur`` is their Gaussian blur, one of their four additional
    corruptions, not their defocus blur. Images of other sizes than 32 and 224 pixels get the
    parameters of one of the two as they are: ``s`` stays in pixels, and JPEG in blocks of 8.
"""

import io
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from PIL import Image
from scipy.ndimage import gaussian_filter

SEVERITIES = (1, 2, 3, 4, 5)


@dataclass(frozen=True)
class Parameters:
    """
    The parameters of all corruptions, one value for each severity.

    :param noise: standard deviation
    :param blur: standard deviation in pixels
    :param contrast: factor
    :param jpeg: quality
    :param brightness: what is added
    """

    noise: tuple[float, ...]
    blur: tuple[float, ...]
    contrast: tuple[float, ...]
    jpeg: tuple[int, ...]
    brightness: tuple[float, ...]


PARAMETERS = {
    "imagenet": Parameters(
        noise=(0.08, 0.12, 0.18, 0.26, 0.38),
        blur=(1, 2, 3, 4, 6),
        contrast=(0.4, 0.3, 0.2, 0.1, 0.05),
        jpeg=(25, 18, 15, 10, 7),
        brightness=(0.1, 0.2, 0.3, 0.4, 0.5),
    ),
    "cifar": Parameters(
        noise=(0.04, 0.06, 0.08, 0.09, 0.10),
        blur=(0.4, 0.6, 0.7, 0.8, 1),
        contrast=(0.75, 0.5, 0.4, 0.3, 0.15),
        jpeg=(80, 65, 58, 50, 40),
        brightness=(0.05, 0.1, 0.15, 0.2, 0.3),
    ),
}

#: images with a shorter side of at most this many pixels get the parameters of CIFAR-10
LARGEST_SMALL = 64


def corrupt(
    pixels: np.ndarray, corruption: str, severity: int, parameters: str = "auto"
) -> np.ndarray:
    """
    Return a corrupted image. The same image always gives the same bytes.

    :param pixels: ``uint8`` of shape (H, W) or (H, W, 3)
    :param corruption: a name of :data:`CORRUPTIONS`
    :param severity: 1 to 5
    :param parameters: a name of :data:`PARAMETERS`; ``"auto"`` takes those of ``"cifar"`` for
        images of up to 64 pixels and those of ``"imagenet"`` for larger ones
    """
    if parameters == "auto":
        parameters = "cifar" if min(pixels.shape[:2]) <= LARGEST_SMALL else "imagenet"
    value = getattr(PARAMETERS[parameters], corruption)[severity - 1]
    return CORRUPTIONS[corruption](pixels, value)


def noise(pixels: np.ndarray, sigma: float) -> np.ndarray:
    """Return the image with Gaussian noise of this standard deviation."""
    digest = blake2b(repr(pixels.shape).encode() + pixels.tobytes(), digest_size=16).digest()
    generator = np.random.default_rng(int.from_bytes(digest, "little"))
    return _to_bytes(_to_unit(pixels) + sigma * generator.standard_normal(pixels.shape))


def blur(pixels: np.ndarray, sigma: float) -> np.ndarray:
    """Return the image convolved with a Gaussian kernel of this standard deviation in pixels."""
    along = (sigma, sigma, 0)[: pixels.ndim]  # colours are not mixed
    return _to_bytes(gaussian_filter(_to_unit(pixels), along, mode="nearest"))


def contrast(pixels: np.ndarray, factor: float) -> np.ndarray:
    """Return the image with its values drawn towards the mean of each channel."""
    x = _to_unit(pixels)
    mean = x.mean(axis=(0, 1), keepdims=True)
    return _to_bytes(factor * (x - mean) + mean)


def jpeg(pixels: np.ndarray, quality: int) -> np.ndarray:
    """Return the image after a compression of this quality."""
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, format="jpeg", quality=quality)
    with Image.open(buffer, formats=["JPEG"]) as image:
        return np.array(image)


def brightness(pixels: np.ndarray, added: float) -> np.ndarray:
    """
    Return the image with a number added to V of its colours in HSV.

    V is the largest channel; with hue and saturation unchanged, all channels grow in proportion.
    """
    x = _to_unit(pixels)
    value = x if x.ndim == 2 else x.max(axis=2, keepdims=True)
    brighter = np.minimum(value + added, 1)
    # black has no hue and no saturation: all channels become V
    scaled = np.where(value > 0, x * brighter / np.where(value > 0, value, 1), brighter)
    return _to_bytes(scaled)


CORRUPTIONS: dict[str, Callable[[np.ndarray, float], np.ndarray]] = {
    "noise": noise,
    "blur": blur,
    "contrast": contrast,
    "jpeg": lambda pixels, quality: jpeg(pixels, int(quality)),
    "brightness": brightness,
}


def _to_unit(pixels: np.ndarray) -> np.ndarray:
    return pixels.astype(np.float64) / 255


def _to_bytes(x: np.ndarray) -> np.ndarray:
    return np.rint(255 * x.clip(0, 1)).astype(np.uint8)
