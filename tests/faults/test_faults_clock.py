"""A clock that jumps while a benchmark runs, and files with times in the past and the future."""

import os
from pathlib import Path

import pytest
from dpn_process import Dpn
from folders import check_same


@pytest.mark.parametrize("seed", range(3))
def test_a_clock_that_jumps(seed: int, reference: Dpn, tmp_path: Path, record_property) -> None:
    record_property("fault", "jumping clock")
    record_property("where", f"up to 1000 days at every file, seed {seed}")
    dpn = Dpn(reference.suite, tmp_path / "out", clock=seed)
    assert dpn.run() == 0, dpn.output
    record_property("observed", dpn.summary)
    check_same(dpn.out, reference.out)


@pytest.fixture(scope="session")
def smaller(reference: Dpn, workspace: Path) -> Path:
    """The same benchmark with fewer detectors."""
    dpn = Dpn(reference.suite, workspace / "smaller", arguments=("--detectors", "dpn-maxp"))
    assert dpn.run() == 0, dpn.output
    return dpn.out


@pytest.mark.parametrize("stamp", [0, 4_000_000_000], ids=["1970", "2096"])
@pytest.mark.parametrize("pattern", ["**/*", "report.*", "*.csv"])
def test_files_with_wrong_times(
    pattern: str, stamp: int, reference: Dpn, smaller: Path, copied, record_property
) -> None:
    record_property("fault", "wrong file times")
    record_property(
        "where", f"{pattern} from {'1970' if stamp == 0 else '2096'}, then more detectors"
    )
    out = copied(smaller)
    for path in out.glob(pattern):
        os.utime(path, (stamp, stamp))
    again = Dpn(reference.suite, out)
    assert again.run() == 0, again.output
    record_property("observed", f"again: {again.summary}")
    check_same(out, reference.out)
    assert "mahalanobis" in (out / "report.html").read_text("utf-8")
