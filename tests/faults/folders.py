"""The suite of these tests, and the comparison of two benchmark folders."""

from hashlib import file_digest
from pathlib import Path

from tiny_bench import DIGITS, POINTS

from dpn_plugin._records import Record, read_record
from dpn_plugin.bench import BENCH_FILE, BenchRecord
from dpn_plugin.evaluation import (
    EVALUATION_FILE,
    SAMPLES_FILE,
    EvaluationRecord,
    SamplesRecord,
)
from dpn_plugin.runs import RUN_FILE, RunRecord

#: a network with outliers, and three without
SUITE = {'["baseline", "dpn-minus"]': '["dpn-minus", "deep-ensemble"]'}
FIRST, SECOND = (
    Path(f"runs/mlp_synthetic/{name}/seed-0") for name in ("dpn-minus", "deep-ensemble")
)
#: two networks on images of 8 x 8 pixels
IMAGES_SUITE = {'["baseline"]': '["baseline", "dpn-minus"]', "epochs = 2": "epochs = 1"}
IMAGES_FIRST = Path("runs/test_resnet/baseline/seed-0")
#: files that hold times of day or durations
_TIMED = (
    "bench.json",
    "run.json",
    "evaluation.json",
    "history.csv",
    "report.html",
    "report.sha256",
)

#: all records below runs/ and beside the results, which must be undamaged
_RECORDS: dict[str, type[Record]] = {
    BENCH_FILE: BenchRecord,
    RUN_FILE: RunRecord,
    EVALUATION_FILE: EvaluationRecord,
    SAMPLES_FILE: SamplesRecord,
}

__all__ = [
    "DIGITS",
    "FIRST",
    "IMAGES_FIRST",
    "IMAGES_SUITE",
    "POINTS",
    "SECOND",
    "SUITE",
    "check_same",
    "content",
]


def content(out: Path) -> dict[str, str]:
    """Return every folder, and every file with its hash unless it holds times."""
    return {str(path.relative_to(out)): _hash(path) for path in out.rglob("*")}


def check_same(out: Path, reference: Path) -> None:
    """Check that no file is missing or left over, and that files with times are undamaged."""
    assert content(out) == content(reference)
    for name, model in _RECORDS.items():
        for path in out.rglob(name):
            read_record(path, model)
    for line in (out / "report.sha256").read_text("utf-8").splitlines():
        known, name = line.split("  ")
        with (out / name).open("rb") as file:
            assert file_digest(file, "sha256").hexdigest() == known, name


def _hash(path: Path) -> str:
    if path.is_dir() or path.name in _TIMED:
        return ""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()
