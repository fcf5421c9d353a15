"""A benchmark that is killed at any moment and run again ends with the same results."""

import signal
from pathlib import Path

import pytest
from child_processes import kill_repeatedly, run_in_child
from tiny_bench import POINTS, bench, bench_and_die, bench_on_one_thread, suite_file

from dpn_plugin._files import locked
from dpn_plugin.errors import UserError

FILES = ("results.csv", "leaderboard.csv")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("undisturbed")
    bench(suite_file(out, POINTS), out)
    return out


def check_same_results(undisturbed: Path, out: Path) -> None:
    bench(undisturbed / "mine.toml", out)
    for name in FILES:
        assert (out / name).read_bytes() == (undisturbed / name).read_bytes()
    assert [path for path in out.rglob(".*") if path.is_file()] == []


@pytest.mark.parametrize(
    ("place", "call"),
    [
        ("dpn_plugin.training.network.write_weights", 2),
        ("dpn_plugin.outputs.store.creating_folder", 3),
        ("dpn_plugin.outputs.entry.write_record", 2),
        ("dpn_plugin.evaluation.evaluate.detector_rows", 2),
        ("dpn_plugin.evaluation.evaluate.write_evaluation", 6),
        ("dpn_plugin._files._sync", 40),
        ("dpn_plugin.bench.results._write_table", 2),
        ("dpn_plugin.bench.record.write_record", 1),
    ],
)
def test_killed_in_a_function(place: str, call: int, undisturbed: Path, tmp_path: Path) -> None:
    code = run_in_child(bench_and_die, undisturbed / "mine.toml", tmp_path, place, call)
    assert code == -signal.SIGKILL
    check_same_results(undisturbed, tmp_path)


def test_killed_repeatedly(undisturbed: Path, tmp_path: Path) -> None:
    suite = undisturbed / "mine.toml"
    assert kill_repeatedly(bench_on_one_thread, suite, tmp_path, seconds=0.05)
    check_same_results(undisturbed, tmp_path)


def test_a_folder_is_for_one_benchmark_at_a_time(undisturbed: Path, tmp_path: Path) -> None:
    with locked(tmp_path / ".lock"):
        with pytest.raises(UserError, match=r"Another dpn bench is at work in .* another --out"):
            bench(undisturbed / "mine.toml", tmp_path)
        assert list(tmp_path.iterdir()) == [tmp_path / ".lock"]
