from pathlib import Path

import pytest
from sample_bench import SampleBench

from dpn_plugin.report import write_report


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a benchmark with three methods, three seeds, near and far sets."""
    return SampleBench().write(tmp_path_factory.mktemp("bench"))


@pytest.fixture(scope="session")
def reported(bench: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of that benchmark's report."""
    return write_report(bench, tmp_path_factory.mktemp("report")).parent
