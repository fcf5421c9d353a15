"""The examples of the documentation run and show what they claim."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def printed(example: str, folder: Path) -> dict[str, float]:
    """:return: the numbers that an example prints, by name"""
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "examples" / example)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return {name: float(value) for name, value in map(str.split, done.stdout.splitlines())}


def test_dpn_minus_separates_the_plane_and_inverts_differential_entropy(tmp_path: Path) -> None:
    roc = printed("synthetic.py", tmp_path)
    assert set(roc) == {"dpn-maxp", "dpn-entropy", "dpn-mi", "dpn-precision", "dpn-dent"}
    assert roc["dpn-mi"] > 0.99
    assert roc["dpn-dent"] < 0.2
    assert min(value for name, value in roc.items() if name != "dpn-dent") > 0.98
    assert list(tmp_path.iterdir()) == []
