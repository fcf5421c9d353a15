"""
Time an exported bundle.

    python -m benchmark_suites.speed.export

trains a small network on digits, bundles it with two detectors, and compares the time per call of
the bundle in torch with that of its ONNX file in onnxruntime, for single images and for batches, on
one thread each. It exits with 1 if scores differ.
"""

import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import onnxruntime
import torch

from dpn_plugin.deploy import create_bundle, export_bundle, load_bundle
from dpn_plugin.runs import Recipe, TrainConfig
from dpn_plugin.training import train

DETECTORS = ("dpn-gaussian-kl", "mahalanobis")
BACKBONES = ("test_resnet", "test_vit")
BATCHES, ROUNDS = (1, 64), 7


def config(backbone: str) -> TrainConfig:
    """Return the configuration of a short training on digits of 32 x 32 pixels."""
    settings = {"epochs": 2, "batch_size": 32, "calibration": 0.2, "image_size": 32}
    return TrainConfig(
        backbone=backbone,
        method="dpn-minus",
        in_domain={"source": "sklearn:digits", "classes": {"first": 7}, "limit": 600},
        outliers={"source": "sklearn:digits", "classes": {"from": 7}, "limit": 100},
        recipe=Recipe.named("small", outlier_batch_size=16, **settings),
    )


def best_time(function: Callable[[], object]) -> float:
    """Return the seconds of the fastest of several calls."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def compare(backbone: str, folder: Path) -> bool:
    """Print a line per batch size, and return whether all scores agree."""
    run = train(config(backbone), folder / "run", device="cpu")
    bundle = load_bundle(create_bundle(run, DETECTORS, folder / "bundle", device="cpu"), "cpu")
    exported = export_bundle(bundle, folder / "bundle.onnx")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(exported.path), options)
    agree = True
    for size in BATCHES:
        images = torch.randint(0, 256, (size, *bundle.input_shape), dtype=torch.uint8)
        feed = {"images": images.numpy()}
        in_torch = best_time(partial(bundle, images))
        in_onnx = best_time(partial(session.run, None, feed))
        found = dict(zip(exported.outputs, session.run(None, feed), strict=True))
        expected = bundle(images).detectors["mahalanobis"].score
        agree &= np.allclose(found["mahalanobis.score"], expected, rtol=1e-3)
        ratio = in_torch / in_onnx
        print(f"{backbone:>12} {size:>6} {in_torch:>9.4f} {in_onnx:>12.4f} {ratio:>6.1f}")
    return agree


def main() -> None:
    """Print seconds per call and their ratio for every backbone and batch size."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    print(f"{'backbone':>12} {'batch':>6} {'torch':>9} {'onnxruntime':>12} {'ratio':>6}")
    agree = True
    for backbone in BACKBONES:
        with tempfile.TemporaryDirectory() as folder:
            agree &= compare(backbone, Path(folder))
    sys.exit(0 if agree else 1)


if __name__ == "__main__":
    main()
