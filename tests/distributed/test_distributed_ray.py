"""Results on a Ray cluster are the same as local ones, also if workers are killed."""

import os
import signal
from pathlib import Path

import pytest
from tiny_bench import RecordingMonitor, bench, file_hashes, record, write_times

from dpn_plugin.bench import RayExecutor
from dpn_plugin.bench.execution.workers import ATTEMPTS
from dpn_plugin.errors import UserError
from dpn_plugin.training import StepMetrics


def bench_on_ray(
    suite: Path,
    out: Path,
    address: str,
    monitor: RecordingMonitor | None = None,
    *,
    scratch: bool = False,
) -> RecordingMonitor:
    return bench(suite, out, monitor=monitor, executor=RayExecutor(address, scratch=scratch))


def worker_processes() -> list[int]:
    """Return the ids of the processes that carry out runs."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "cmdline").read_bytes().startswith(b"ray::stream_messages"):
                found.append(int(folder.name))
        except OSError:
            continue  # the process has just ended
    return found


class KillingMonitor(RecordingMonitor):
    """Kills all workers with ``kill -9`` after every so many messages about steps."""

    def __init__(self, every: int, most: int) -> None:
        super().__init__()
        self.every, self.most, self.killed = every, most, 0

    def stepped(self, images: int, metrics: StepMetrics) -> None:
        super().stepped(images, metrics)
        if self.steps % self.every == 0 and self.killed < self.most:
            for process in worker_processes():
                os.kill(process, signal.SIGKILL)
                self.killed += 1


def test_results_are_those_of_a_local_run(
    suite: Path, local: Path, address: str, tmp_path: Path
) -> None:
    monitor = bench_on_ray(suite, tmp_path, address)
    assert sorted(monitor.runs) == [
        "mlp_synthetic baseline seed 0",
        "mlp_synthetic deep-ensemble seed 0",
        "mlp_synthetic dpn-minus seed 0",
    ]
    assert file_hashes(tmp_path) == file_hashes(local)
    assert not list(tmp_path.glob(".session-*"))


def test_files_are_copied_back_from_scratch_folders(
    suite: Path, local: Path, address: str, tmp_path: Path
) -> None:
    bench_on_ray(suite, tmp_path, address, scratch=True)
    assert file_hashes(tmp_path) == file_hashes(local)
    assert not list(tmp_path.glob(".transfers/*"))


@pytest.mark.parametrize("scratch", [False, True])
def test_results_are_the_same_if_workers_are_killed(
    suite: Path, local: Path, address: str, tmp_path: Path, scratch: bool
) -> None:
    killer = KillingMonitor(every=2, most=3)
    bench_on_ray(suite, tmp_path, address, killer, scratch=scratch)
    assert killer.killed >= 1
    assert any("died" in message for message in killer.warnings)
    assert file_hashes(tmp_path) == file_hashes(local)
    assert record(tmp_path)["not_run"] == record(local)["not_run"]


def test_a_run_whose_workers_always_die_is_given_up(
    suite: Path, address: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=f"died {ATTEMPTS} times"):
        bench_on_ray(suite, tmp_path, address, KillingMonitor(every=1, most=10**6))


def test_a_finished_benchmark_is_not_repeated(
    suite: Path, local: Path, address: str, tmp_path: Path
) -> None:
    bench_on_ray(suite, tmp_path, address)
    before = write_times(tmp_path)
    assert bench_on_ray(suite, tmp_path, address).steps == 0
    assert write_times(tmp_path) == before


def test_a_trained_run_is_evaluated_in_a_scratch_folder(
    suite: Path, local: Path, address: str, tmp_path: Path
) -> None:
    bench_on_ray(suite, tmp_path, address)
    for path in tmp_path.rglob("evaluation.json"):
        path.unlink()
    monitor = bench_on_ray(suite, tmp_path, address, scratch=True)
    assert monitor.steps == 0
    assert monitor.detectors
    assert file_hashes(tmp_path) == file_hashes(local)


def test_a_run_that_was_trained_elsewhere_is_evaluated(
    suite: Path, local: Path, address: str, tmp_path: Path
) -> None:
    trained = local / "runs" / "mlp_synthetic" / "dpn-minus" / "seed-0"
    bench(suite, tmp_path, only_eval=trained, executor=RayExecutor(address, scratch=True))
    found, known = ((out / "results.csv").read_text("utf-8") for out in (tmp_path, local))
    assert set(found.splitlines()) < set(known.splitlines())


def test_no_cluster_at_the_address(suite: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    with pytest.raises(UserError, match=r"no Ray cluster to use at '127.0.0.1:9'"):
        bench_on_ray(suite, tmp_path, "127.0.0.1:9")
