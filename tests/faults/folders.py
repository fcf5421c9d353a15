"""The suite of the campaign, and what two folders must have in common to be the same results."""

from hashlib import file_digest
from pathlib import Path

from tiny_bench import POINTS

from dpn_plugin.sealed import unsealed

#: a network with outliers, and three without
SUITE = {'["baseline", "dpn-minus"]': '["dpn-minus", "deep-ensemble"]'}
FIRST, SECOND = (
    Path(f"runs/mlp_synthetic/{name}/seed-0") for name in ("dpn-minus", "deep-ensemble")
)
#: times of day and durations are in them
_TIMED = (
    "bench.json",
    "run.json",
    "evaluation.json",
    "history.csv",
    "report.html",
    "report.sha256",
)

__all__ = ["FIRST", "POINTS", "SECOND", "SUITE", "check_same", "content"]


def content(out: Path) -> dict[str, str]:
    """:return: every folder, and every file with its hash, but for those that hold times"""
    return {str(path.relative_to(out)): _hash(path) for path in out.rglob("*")}


def check_same(out: Path, undisturbed: Path) -> None:
    """Nothing is lost, nothing is left over, and what tells of times is whole and current."""
    assert content(out) == content(undisturbed)
    for kind in ("bench.json", "run.json", "evaluation.json"):
        for path in out.rglob(kind):
            unsealed(path.read_text("utf-8"))
    for line in (out / "report.sha256").read_text("utf-8").splitlines():
        known, name = line.split("  ")
        with (out / name).open("rb") as file:
            assert file_digest(file, "sha256").hexdigest() == known, name


def _hash(path: Path) -> str:
    if path.is_dir() or path.name in _TIMED:
        return ""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()
