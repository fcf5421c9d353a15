"""The page "Put it to use" works as written, from the first command to the last."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

PAGE = Path(__file__).parents[2] / "docs" / "deploy.md"
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)


def steps() -> list[list[str]]:
    """Return the commands and programs of the page in order."""
    found = []
    for language, body in BLOCKS:
        if language == "python":
            found.append(["-c", body])
        else:
            found += [["-m", "dpn_plugin", *shlex.split(line)[1:]] for line in body.splitlines()]
    return found


@pytest.mark.slow
def test_the_page_works_as_written(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("mapie")
    printed = []
    for step in steps():
        done = subprocess.run(
            [sys.executable, *step], cwd=tmp_path, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, (step, done.stderr)
        printed.append(done.stdout)
    table = pd.read_csv(tmp_path / "scores.csv")
    is_known = table["image"].str.startswith("known")
    assert table["mahalanobis.rejected"][~is_known].mean() > 0.8
    assert table["mahalanobis.rejected"][is_known].mean() < 0.2
    together = pd.read_csv(tmp_path / "discoveries.csv")
    assert list(together.columns) == list(table.columns)
    assert together["mahalanobis.score"].equals(table["mahalanobis.score"])
    assert "[False,  True]" in printed[5]
    assert printed[8].split()[-1] == "False"
    assert "Alarm at image" in printed[9]
    assert (tmp_path / "evidence.png").stat().st_size > 1000
    assert printed[10].strip().isdigit()
