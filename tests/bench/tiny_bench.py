"""Benchmarks of seconds, in this process and in others that can be killed."""

import json
import multiprocessing
import os
import signal
import sys
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from dpn_plugin.bench import Executor, Request, Unit, make_plan, run_plan

#: one interpreter that has imported all and is forked: a child starts in milliseconds
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    [
        "dpn_plugin.bench",
        "dpn_plugin.cli.bench",
        "dpn_plugin.cli.bench_progress",
        "pytorch_ood.loss",
        "pytorch_ood.dataset.img",
        "sklearn.datasets",
        "tiny_bench",
    ]
)

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


class Told:
    """A monitor that remembers."""

    def __init__(self) -> None:
        self.units: list[str] = []
        self.steps = 0
        self.detectors: list[str] = []
        self.warnings: list[str] = []

    def unit(self, index: int, total: int, unit: Unit) -> "Told":
        self.units.append(unit.title)
        return self

    def started(self, steps: int, done: int) -> None: ...

    def stepped(self, images: int, parts: dict[str, float]) -> None:
        self.steps += 1

    def finished_epoch(self, row: dict[str, float]) -> None: ...

    def evaluating(self, detector: str) -> None:
        self.detectors.append(detector)

    def ended(self) -> None: ...

    def warned(self, message: str) -> None:
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
    told: Told | None = None,
    executor: Executor | None = None,
    **asked: Any,
) -> Told:
    """Run a benchmark on one thread, and tell what was done."""
    told = told or Told()
    plan = make_plan(Request(str(suite), **asked), out)
    run_plan(plan, out, root=out / "data", monitor=told, device="cpu", executor=executor)
    return told


def results(out: Path) -> pd.DataFrame:
    return pd.read_csv(out / "results.csv", keep_default_na=False, na_values={"value": [""]})


def record(out: Path) -> dict[str, Any]:
    return json.loads((out / "bench.json").read_text("utf-8"))


def work(out: Path) -> dict[str, str]:
    """The hash of every file that holds weights, outputs or figures."""
    kinds = ("*.safetensors", "*.npy", "entry.json", "results.csv", "leaderboard.csv")
    return {
        str(path.relative_to(out)): sha256(path.read_bytes()).hexdigest()
        for kind in kinds
        for path in out.rglob(kind)
    }


def times(out: Path) -> dict[str, int]:
    """When every file that holds work was written."""
    kinds = ("*.safetensors", "*.npy", "evaluation.json", "run.json", "results.csv", "bench.json")
    return {str(path): path.stat().st_mtime_ns for kind in kinds for path in out.rglob(kind)}


def in_child(target: Any, *arguments: Any) -> int:
    """:return: the exit code of ``target`` in a process of its own; below 0 is a signal"""
    child = FORKS.Process(target=target, args=arguments)
    child.start()
    child.join(120)
    assert child.exitcode is not None
    return child.exitcode


def bench_and_die_in(suite: Path, out: Path, place: str, call: int) -> None:
    """Die as ``kill -9`` does when the function at ``place`` is called for the ``call``-th time."""
    torch.set_num_threads(1)
    module, _, name = place.rpartition(".")
    holder, calls = sys.modules[module], []
    original = getattr(holder, name)

    def dying(*arguments: Any, **keywords: Any) -> Any:
        calls.append(name)
        if len(calls) == call:
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*arguments, **keywords)

    setattr(holder, name, dying)
    bench(suite, out)


def bench_quietly(suite: Path, out: Path) -> None:
    torch.set_num_threads(1)
    bench(suite, out)
