"""Small bundles, made once for all tests of a session."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_digits
from tiny_runs import digits
from torch import Tensor

from dpn_plugin.deploy import DecisionRule, create_bundle
from dpn_plugin.runs import Recipe, TrainedRun
from dpn_plugin.training import train

IMAGES = (load_digits().images * 15.9).astype(np.uint8)
#: removed when the process ends
_ROOT = TemporaryDirectory(prefix="dpn-test-")
DETECTORS = ("dpn-gaussian-kl", "mahalanobis", "knn")


@cache
def trained_run(
    method: str = "dpn-minus", backbone: str = "test_resnet", **recipe: Any
) -> TrainedRun:
    """Return a run on the digits 0 to 6 with a fifth of 600 samples for calibration."""
    settings = {"epochs": 3, "batch_size": 32, "outlier_batch_size": 16, "calibration": 0.2}
    config = digits(
        method,
        backbone,
        in_domain={"source": "sklearn:digits", "classes": {"first": 7}, "limit": 600},
        recipe=Recipe.named("small", **settings | recipe),
    )
    return train(config, Path(mkdtemp(dir=_ROOT.name)), device="cpu")


@cache
def bundle_folder(
    method: str = "dpn-minus",
    detectors: tuple[str, ...] = DETECTORS,
    rule: DecisionRule | None = None,
    **recipe: Any,
) -> Path:
    """Return the folder of a bundle; tests must not change it."""
    out = Path(mkdtemp(dir=_ROOT.name)) / "bundle"
    return create_bundle(trained_run(method, **recipe), detectors, out, rule=rule, device="cpu")


def tensors(*rows: int) -> Tensor:
    """Return some digits as a tensor N x 1 x 8 x 8."""
    return torch.from_numpy(IMAGES[list(rows)])[:, None]
