"""Who does the runs: several processes end as one does, whatever happens to them."""

import multiprocessing
import sys
import time
from pathlib import Path

import pytest
import torch
from tiny_bench import FORKS, POINTS, Told, bench, record, suite_file, times, work

from dpn_plugin.bench import LocalExecutor
from dpn_plugin.bench.board import TRIES
from dpn_plugin.bench.on_ray import RayExecutor
from dpn_plugin.bench.pool import PoolExecutor
from dpn_plugin.cli.executors import make_executor
from dpn_plugin.errors import UserError


def below(pid: int) -> list[int]:
    """The processes that come from this one."""
    path = Path(f"/proc/{pid}/task/{pid}/children")
    found = [int(word) for word in path.read_text().split()] if path.exists() else []
    return found + [other for child in found for other in below(child)]


class Killer(Told):
    """Kills all workers with -9 whenever one tells of a step, so many times."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def stepped(self, images: int, parts: dict[str, float]) -> None:
        super().stepped(images, parts)
        if self.most:
            self.most -= 1
            for worker in multiprocessing.active_children():
                worker.kill()


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return suite_file(tmp_path_factory.mktemp("suite"), POINTS, {"epochs = 2": "epochs = 12"})


@pytest.fixture(scope="module")
def alone(suite: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("alone")
    bench(suite, out)
    return out


def test_two_at_a_time_end_as_one_after_the_other(suite: Path, alone: Path, tmp_path: Path) -> None:
    told = bench(suite, tmp_path, executor=PoolExecutor(2))
    assert len(told.units) == 2
    assert told.steps
    assert "mahalanobis" in told.detectors
    assert work(tmp_path) == work(alone)
    assert record(tmp_path)["not_run"] == record(alone)["not_run"]
    before = times(tmp_path)
    assert bench(suite, tmp_path, executor=PoolExecutor(2)).steps == 0
    assert times(tmp_path) == before
    assert multiprocessing.active_children() == []


def test_workers_are_killed(suite: Path, alone: Path, tmp_path: Path) -> None:
    told = bench(suite, tmp_path, told=Killer(2), executor=PoolExecutor(2))
    assert any("died (exit code -9)" in message for message in told.warnings)
    assert work(tmp_path) == work(alone)


def test_a_unit_whose_workers_always_die_is_given_up(suite: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"died {TRIES} times"):
        bench(suite, tmp_path, told=Killer(1000), executor=PoolExecutor(1))


def in_pool(suite: Path, out: Path) -> None:
    torch.set_num_threads(1)
    bench(suite, out, executor=PoolExecutor(2))


def test_workers_end_with_a_killed_parent(suite: Path, alone: Path, tmp_path: Path) -> None:
    parent = FORKS.Process(target=in_pool, args=(suite, tmp_path))
    parent.start()
    while not list(tmp_path.rglob("run.json")):
        assert parent.is_alive()
        time.sleep(0.05)
    assert parent.pid
    workers = [Path(f"/proc/{pid}/cmdline") for pid in below(parent.pid)]
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
    assert work(tmp_path) == work(alone)


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
