"""
Two small benchmarks give the same figures and the same weights as before, byte for byte.

The pinned files hold for one kind of machine and one version of every library, which
``pinned/platform.json`` names; elsewhere only the rows are compared, without their values.
``python tests/bench/test_bench_pinned.py`` writes the files anew.
"""

import hashlib
import json
import os
import platform
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import pandas as pd
import pytest
import torch

PINNED = Path(__file__).parent / "pinned"
BENCHMARKS = {
    "synthetic": ["--methods", "deep-ensemble,binary,dpn-minus"],
    "digits": ["--methods", "baseline,dpn-minus", "--epochs", "2"],
}
_PACKAGES = ("torch", "torchvision", "timm", "pytorch-ood", "numpy", "scikit-learn", "pandas")


def this_platform():
    """What decides the last digit of a figure, besides our own code."""
    return {
        "machine": platform.machine(),
        "cpu": torch.backends.cpu.get_cpu_capability(),
        "versions": {name: version(name) for name in _PACKAGES},
    }


def run_benchmark(suite, out):
    """Run the benchmark on one thread and return its results and the hashes of its weights."""
    command = [sys.executable, "-m", "dpn_plugin", "bench", suite, *BENCHMARKS[suite]]
    options = ["--seeds", "1", "--workers", "1", "--device", "cpu", "--out", str(out)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "DPN_PLUGINS": ""}
    subprocess.run([*command, *options], check=True, env=environment, capture_output=True)
    weights = {
        path.relative_to(out).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(out.glob("runs/**/*.safetensors"))
        if path.name != "held_out.safetensors"
    }
    return (out / "results.csv").read_bytes(), weights


@pytest.mark.parametrize("suite", BENCHMARKS)
def test_results_and_weights_are_those_that_were_pinned(suite, tmp_path):
    results, weights = run_benchmark(suite, tmp_path / "out")
    pinned = json.loads((PINNED / f"{suite}-weights.json").read_text())
    assert weights.keys() == pinned.keys()
    if json.loads((PINNED / "platform.json").read_text()) == this_platform():
        assert results == (PINNED / f"{suite}-results.csv").read_bytes()
        assert weights == pinned
    else:
        found, expected = (
            pd.read_csv(path, keep_default_na=False).drop(columns="value")
            for path in (tmp_path / "out" / "results.csv", PINNED / f"{suite}-results.csv")
        )
        pd.testing.assert_frame_equal(found, expected)


def main():
    """Write the pinned files of this platform."""
    for suite in BENCHMARKS:
        with tempfile.TemporaryDirectory() as folder:
            results, weights = run_benchmark(suite, Path(folder) / "out")
        (PINNED / f"{suite}-results.csv").write_bytes(results)
        (PINNED / f"{suite}-weights.json").write_text(json.dumps(weights, indent=1) + "\n")
    (PINNED / "platform.json").write_text(json.dumps(this_platform(), indent=1) + "\n")


if __name__ == "__main__":
    main()
