"""A Ray cluster on this machine with room for two workers, and a suite of seconds."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))

from tiny_bench import POINTS, bench, suite_file  # the path is set above

RAY = [sys.executable, "-m", "ray.scripts.scripts"]


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    pytest.importorskip("ray")
    start = ["start", "--head", "--num-cpus=2", "--port=0", "--include-dashboard=false"]
    begun = subprocess.run(
        [*RAY, *start, "--disable-usage-stats"], capture_output=True, text=True, timeout=120
    )
    assert begun.returncode == 0, begun.stderr
    yield "auto"
    subprocess.run([*RAY, "stop", "--force"], capture_output=True, timeout=120)


@pytest.fixture(scope="session")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    methods = {'["baseline", "dpn-minus"]': '["baseline", "dpn-minus", "deep-ensemble"]'}
    return suite_file(
        tmp_path_factory.mktemp("suite"), POINTS, methods | {"epochs = 2": "epochs = 8"}
    )


@pytest.fixture(scope="session")
def local(suite: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same suite, done by the local executor."""
    out = tmp_path_factory.mktemp("local")
    bench(suite, out)
    return out
