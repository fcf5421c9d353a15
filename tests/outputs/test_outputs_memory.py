"""The memory in use does not grow with the size of the outputs."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_outputs_of_240_mb_are_written_and_scored_within_120_mb():
    command = [sys.executable, "-m", "benchmark_suites.speed.memory", "--rows", "60000"]
    run = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
    peak, before = re.search(r"memory (\d+) MiB, of which (\d+) MiB", run.stdout).groups()
    assert int(peak) - int(before) < 120
