"""Benchmarks that take seconds, in this process and in child processes that can be killed."""

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import pandas as pd
import timm
import torch
from child_processes import kill_self_in
from safetensors.torch import save_file
from sklearn.datasets import load_digits
from torch.nn.functional import interpolate

from dpn_plugin.bench import (
    Executor,
    LocalExecutor,
    PlannedRun,
    Request,
    make_plan,
    run_benchmark,
)
from dpn_plugin.runs import EpochRecord
from dpn_plugin.training import StepMetrics

POINTS = """
title = "Points"
methods = ["baseline", "dpn-minus"]
detectors = ["dpn-maxp", "dpn-mi", "mahalanobis"]
seeds = 1
[in_domain]
source = "synthetic:gaussians"
[in_domain_test]
source = "synthetic:gaussians"
split = "test"
[outliers]
source = "synthetic:gaussians-ood"
limit = 100
[far.around]
source = "synthetic:gaussians-ood"
split = "test"
[train]
backbone = "mlp_synthetic"
recipe = "synthetic"
epochs = 2
batch_size = 64
"""

DIGITS = """
title = "Digits"
input_size = [1, 8, 8]
methods = ["baseline"]
detectors = ["dpn-maxp", "dpn-mi"]
seeds = 1
[in_domain]
source = "sklearn:digits"
classes = { first = 5 }
[outliers]
source = "sklearn:digits"
classes = [5, 6]
[near.seven]
source = "sklearn:digits"
classes = [7]
[near.eight]
source = "sklearn:digits"
classes = [8]
[far.noise]
source = "pytorch_ood:UniformNoise/60"
[far.flower]
source = "sklearn:photograph/flower"
options = { patches = 50, size = 16 }
[train]
backbone = "test_resnet"
recipe = "small"
stem = "small"
epochs = 2
drop_rate = 0.2
"""


#: heads on frozen features, with weights that are given to ``bench``
FROZEN = {
    "epochs = 2": "epochs = 2\nimage_size = 32\nfreeze = true",
    'stem = "small"\n': "",
    '["baseline"]': '["baseline", "dpn-minus"]',
    '"dpn-mi"]': '"dpn-mi", "knn"]',
}


def write_base_weights(folder: Path) -> Path:
    """Write weights of a network whose features separate digits, and return the file."""
    path = folder / "base.safetensors"
    torch.manual_seed(0)
    model = timm.create_model("test_resnet", num_classes=9)
    images = torch.from_numpy(load_digits().images[:300] / 8 - 1).float()[:, None]
    images = interpolate(images.expand(-1, 3, -1, -1), (32, 32), mode="bilinear")
    with torch.no_grad():
        for _ in range(30):
            model(images)  # random layers with fitted batch norms give features that separate
    save_file(model.state_dict(), path)
    return path


class RecordingMonitor:
    """Records the progress events of a benchmark."""

    def __init__(self) -> None:
        self.runs: list[str] = []
        self.steps = 0
        self.detectors: list[str] = []
        self.warnings: list[str] = []

    def start_run(self, index: int, total: int, run: PlannedRun) -> "RecordingMonitor":
        self.runs.append(run.title)
        return self

    def started(self, steps: int, done: int) -> None: ...

    def stepped(self, images: int, metrics: StepMetrics) -> None:
        self.steps += 1

    def finished_epoch(self, epoch: EpochRecord) -> None: ...

    def evaluating(self, detector: str) -> None:
        self.detectors.append(detector)

    def ended(self) -> None: ...

    def on_warning(self, message: str) -> None:
        self.warnings.append(message)


def suite_file(folder: Path, text: str, changes: Mapping[str, str] | None = None) -> Path:
    """Write a suite file, with pieces of the text replaced."""
    path = folder / "mine.toml"
    for old, new in (changes or {}).items():
        assert old in text
        text = text.replace(old, new)
    path.write_text(text, "utf-8")
    return path


def bench(
    suite: Path | str,
    out: Path,
    *,
    monitor: RecordingMonitor | None = None,
    executor: Executor | None = None,
    **request: Any,
) -> RecordingMonitor:
    """Run a benchmark on the CPU and return the monitor that recorded its progress."""
    monitor = monitor or RecordingMonitor()
    request = {"data_root": out / "data", "device": "cpu", **request}
    run_benchmark(
        make_plan(Request(str(suite), out, **request)), executor or LocalExecutor(), monitor
    )
    return monitor


def results(out: Path) -> pd.DataFrame:
    return pd.read_csv(out / "results.csv", keep_default_na=False, na_values={"value": [""]})


def record(out: Path) -> dict[str, Any]:
    return json.loads((out / "bench.json").read_text("utf-8"))


def file_hashes(out: Path) -> dict[str, str]:
    """The hash of every file that holds weights, outputs or figures."""
    kinds = ("*.safetensors", "*.npy", "entry.json", "results.csv", "leaderboard.csv")
    return {
        str(path.relative_to(out)): sha256(path.read_bytes()).hexdigest()
        for kind in kinds
        for path in out.rglob(kind)
    }


def write_times(out: Path) -> dict[str, int]:
    """When every file that holds weights, outputs or figures was written."""
    kinds = ("*.safetensors", "*.npy", "evaluation.json", "run.json", "results.csv", "bench.json")
    return {str(path): path.stat().st_mtime_ns for kind in kinds for path in out.rglob(kind)}


def bench_on_one_thread(suite: Path, out: Path) -> None:
    torch.set_num_threads(1)
    bench(suite, out)


def bench_and_die(suite: Path, out: Path, function: str, call: int) -> None:
    """Die when the function of this full name is called for the ``call``-th time."""
    kill_self_in(function, call)
    bench_on_one_thread(suite, out)
