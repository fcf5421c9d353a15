"""A suite on a Ray cluster ends as it does locally, whatever happens to the workers."""

import os
import signal
from pathlib import Path

import pytest
from tiny_bench import Told, bench, record, times, work

from dpn_plugin.bench import Request, plan_for_run, run_plan
from dpn_plugin.bench.board import TRIES
from dpn_plugin.bench.on_ray import RayExecutor
from dpn_plugin.errors import UserError


def on_ray(
    suite: Path, out: Path, address: str, told: Told | None = None, *, scratch: bool = False
) -> Told:
    return bench(suite, out, told=told, executor=RayExecutor(address, scratch=scratch))


def workers() -> list[int]:
    """The processes in which units are done."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "cmdline").read_bytes().startswith(b"ray::unit_stream"):
                found.append(int(folder.name))
        except OSError:
            continue  # it has just ended
    return found


class Killer(Told):
    """Kills all workers with -9 when so many words about steps have come, again and again."""

    def __init__(self, every: int, most: int) -> None:
        super().__init__()
        self.every, self.most, self.killed = every, most, 0

    def stepped(self, images: int, parts: dict[str, float]) -> None:
        super().stepped(images, parts)
        if self.steps % self.every == 0 and self.killed < self.most:
            for process in workers():
                os.kill(process, signal.SIGKILL)
                self.killed += 1


def test_results_are_those_of_a_local_run(
    suite: Path, local: Path, address: str, tmp_path: Path
) -> None:
    told = on_ray(suite, tmp_path, address)
    assert sorted(told.units) == [
        "mlp_synthetic baseline seed 0",
        "mlp_synthetic deep-ensemble seed 0",
        "mlp_synthetic dpn-minus seed 0",
    ]
    assert work(tmp_path) == work(local)
    assert not list(tmp_path.glob(".session-*"))


def test_files_come_home_from_scratch_folders(
    suite: Path, local: Path, address: str, tmp_path: Path
) -> None:
    on_ray(suite, tmp_path, address, scratch=True)
    assert work(tmp_path) == work(local)
    assert not list(tmp_path.glob(".parcels/*"))


@pytest.mark.parametrize("scratch", [False, True])
def test_workers_are_killed(
    suite: Path, local: Path, address: str, tmp_path: Path, scratch: bool
) -> None:
    killer = Killer(every=2, most=3)
    on_ray(suite, tmp_path, address, killer, scratch=scratch)
    assert killer.killed >= 1
    assert any("died" in message for message in killer.warnings)
    assert work(tmp_path) == work(local)
    assert record(tmp_path)["not_run"] == record(local)["not_run"]


def test_a_unit_whose_workers_always_die_is_given_up(
    suite: Path, address: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=f"died {TRIES} times"):
        on_ray(suite, tmp_path, address, Killer(every=1, most=10**6))


def test_what_is_done_is_not_done_again(
    suite: Path, local: Path, address: str, tmp_path: Path
) -> None:
    on_ray(suite, tmp_path, address)
    before = times(tmp_path)
    assert on_ray(suite, tmp_path, address).steps == 0
    assert times(tmp_path) == before


def test_a_run_is_finished_elsewhere(
    suite: Path, local: Path, address: str, tmp_path: Path
) -> None:
    on_ray(suite, tmp_path, address)
    for path in tmp_path.rglob("evaluation.json"):
        path.unlink()
    told = on_ray(suite, tmp_path, address, scratch=True)
    assert told.steps == 0
    assert told.detectors
    assert work(tmp_path) == work(local)


def test_a_run_from_elsewhere_is_evaluated(
    suite: Path, local: Path, address: str, tmp_path: Path
) -> None:
    trained = local / "runs" / "mlp_synthetic" / "dpn-minus" / "seed-0"
    plan = plan_for_run(Request(str(suite)), trained, tmp_path)
    executor = RayExecutor(address, scratch=True)
    run_plan(plan, tmp_path, root=tmp_path, monitor=Told(), device="cpu", executor=executor)
    found, known = ((out / "results.csv").read_text("utf-8") for out in (tmp_path, local))
    assert set(found.splitlines()) < set(known.splitlines())


def test_no_cluster_at_the_address(suite: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    with pytest.raises(UserError, match=r"no Ray cluster to use at '127.0.0.1:9'"):
        on_ray(suite, tmp_path, "127.0.0.1:9")
