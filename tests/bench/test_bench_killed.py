"""Killed at any moment and started again, a benchmark ends like one that was left alone."""

import fcntl
import signal
from pathlib import Path

import pytest
from tiny_bench import FORKS, POINTS, bench, bench_and_die_in, bench_quietly, in_child, suite_file

from dpn_plugin.errors import UserError

FILES = ("results.csv", "leaderboard.csv")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("undisturbed")
    bench(suite_file(out, POINTS), out)
    return out


def check_like(undisturbed: Path, out: Path) -> None:
    bench(undisturbed / "mine.toml", out)
    for name in FILES:
        assert (out / name).read_bytes() == (undisturbed / name).read_bytes()
    assert list(out.rglob("*.tmp")) == []


@pytest.mark.parametrize(
    ("place", "call"),
    [
        ("dpn_plugin.training.train.write_weights", 2),
        ("dpn_plugin.bench.outputs.collect", 3),
        ("dpn_plugin.outputs.store.publish", 2),
        ("dpn_plugin.bench.evaluate.detector_rows", 2),
        ("dpn_plugin.bench.evaluate.write_evaluation", 6),
        ("dpn_plugin.files.sync", 40),
        ("dpn_plugin.bench.engine.write_table", 2),
        ("dpn_plugin.bench.record.write_text", 1),
    ],
)
def test_at_that_moment(place: str, call: int, undisturbed: Path, tmp_path: Path) -> None:
    code = in_child(bench_and_die_in, undisturbed / "mine.toml", tmp_path, place, call)
    assert code == -signal.SIGKILL
    check_like(undisturbed, tmp_path)


def test_again_and_again_at_any_time(undisturbed: Path, tmp_path: Path) -> None:
    kills, patience = 0, 0.4
    while True:
        child = FORKS.Process(target=bench_quietly, args=(undisturbed / "mine.toml", tmp_path))
        child.start()
        child.join(patience)
        if child.exitcode is not None:
            break
        child.kill()
        child.join()
        kills += 1
        patience *= 1.4
        assert kills < 30
    assert child.exitcode == 0
    assert kills
    check_like(undisturbed, tmp_path)


def test_a_folder_is_for_one_benchmark_at_a_time(undisturbed: Path, tmp_path: Path) -> None:
    with (tmp_path / ".lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(UserError, match=r"Another dpn bench is at work in .* another --out"):
            bench(undisturbed / "mine.toml", tmp_path)
    assert list(tmp_path.iterdir()) == [tmp_path / ".lock"]
