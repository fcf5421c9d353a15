"""A Ray cluster on this machine with two CPUs, and a suite that takes seconds."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))

from tiny_bench import POINTS, bench, suite_file  # the path is set above

RAY = [sys.executable, "-m", "ray.scripts.scripts"]


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    pytest.importorskip("ray")
    start = ["start", "--head", "--num-cpus=2", "--port=0", "--include-dashboard=false"]
    started = subprocess.run(
        [*RAY, *start, "--disable-usage-stats"], capture_output=True, text=True, timeout=120
    )
    assert started.returncode == 0, started.stderr
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
    """The results of the same suite with the local executor."""
    out = tmp_path_factory.mktemp("local")
    bench(suite, out)
    return out
