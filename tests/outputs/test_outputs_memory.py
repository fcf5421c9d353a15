"""Memory stays flat however large the outputs."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_outputs_of_240_megabytes_are_written_scored_and_measured_in_less_than_120():
    command = [sys.executable, "-m", "benchmark_suites.speed.memory", "--rows", "60000"]
    run = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
    peak, before = re.search(r"memory (\d+) MiB, of which (\d+) MiB", run.stdout).groups()
    assert int(peak) - int(before) < 120
