"""Executors: several processes give the same results as one, also if some of them die."""

import multiprocessing
import sys
import time
from pathlib import Path

import pytest
import torch
from child_processes import FORKSERVER
from tiny_bench import POINTS, RecordingMonitor, bench, file_hashes, record, suite_file, write_times

from dpn_plugin.bench import LocalExecutor, PoolExecutor, RayExecutor
from dpn_plugin.bench.execution.workers import ATTEMPTS
from dpn_plugin.cli.bench import make_executor
from dpn_plugin.errors import UserError
from dpn_plugin.training import StepMetrics


def descendants(pid: int) -> list[int]:
    """The child processes of a process, and theirs."""
    path = Path(f"/proc/{pid}/task/{pid}/children")
    found = [int(word) for word in path.read_text().split()] if path.exists() else []
    return found + [other for child in found for other in descendants(child)]


class Killer(RecordingMonitor):
    """Kills all workers with SIGKILL when one reports a step, ``most`` times."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def stepped(self, images: int, metrics: StepMetrics) -> None:
        super().stepped(images, metrics)
        if self.most:
            self.most -= 1
            for worker in multiprocessing.active_children():
                worker.kill()


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return suite_file(tmp_path_factory.mktemp("suite"), POINTS, {"epochs = 2": "epochs = 12"})


@pytest.fixture(scope="module")
def one_process(suite: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("one-process")
    bench(suite, out)
    return out


def test_two_runs_at_a_time_give_the_same_files(
    suite: Path, one_process: Path, tmp_path: Path
) -> None:
    monitor = bench(suite, tmp_path, executor=PoolExecutor(2))
    assert len(monitor.runs) == 2
    assert monitor.steps
    assert "mahalanobis" in monitor.detectors
    assert file_hashes(tmp_path) == file_hashes(one_process)
    assert record(tmp_path)["not_run"] == record(one_process)["not_run"]
    before = write_times(tmp_path)
    assert bench(suite, tmp_path, executor=PoolExecutor(2)).steps == 0
    assert write_times(tmp_path) == before
    assert multiprocessing.active_children() == []


def test_runs_of_killed_workers_are_continued(
    suite: Path, one_process: Path, tmp_path: Path
) -> None:
    monitor = bench(suite, tmp_path, monitor=Killer(2), executor=PoolExecutor(2))
    assert any("died (exit code -9)" in message for message in monitor.warnings)
    assert file_hashes(tmp_path) == file_hashes(one_process)


def test_a_run_whose_workers_always_die_fails(suite: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"died {ATTEMPTS} times"):
        bench(suite, tmp_path, monitor=Killer(1000), executor=PoolExecutor(1))


def bench_in_pool(suite: Path, out: Path) -> None:
    torch.set_num_threads(1)
    bench(suite, out, executor=PoolExecutor(2))


def test_workers_exit_when_their_parent_is_killed(
    suite: Path, one_process: Path, tmp_path: Path
) -> None:
    parent = FORKSERVER.Process(target=bench_in_pool, args=(suite, tmp_path))
    parent.start()
    while not list(tmp_path.rglob("run.json")):
        assert parent.is_alive()
        time.sleep(0.05)
    assert parent.pid
    workers = [Path(f"/proc/{pid}/cmdline") for pid in descendants(parent.pid)]
    assert len(workers) >= 2
    parent.kill()
    parent.join()
    for _ in range(200):
        if not any(each.exists() and each.read_bytes() for each in workers):
            break
        time.sleep(0.05)
    else:
        pytest.fail("a worker outlives its parent")
    bench(suite, tmp_path)
    assert file_hashes(tmp_path) == file_hashes(one_process)


def test_executors_by_name() -> None:
    assert isinstance(make_executor("local"), LocalExecutor)
    assert make_executor("local", jobs=2, threads=3) == PoolExecutor(2, 3)
    made = make_executor("ray", address="auto", threads=3, scratch=True)
    assert made == RayExecutor("auto", 3, None, True)


def test_options_of_another_executor_are_refused() -> None:
    with pytest.raises(UserError, match="belong to --executor ray"):
        make_executor("local", address="auto")
    with pytest.raises(UserError, match="belongs to --executor local"):
        make_executor("ray", jobs=2)
    with pytest.raises(UserError, match="'ray'"):
        make_executor("rai")


def test_without_ray_a_sentence_says_how_to_get_it(
    suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UserError, match=r"dpn-plugin\[ray\]"):
        bench(suite, tmp_path, executor=RayExecutor())
