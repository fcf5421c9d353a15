"""Runs on a Ray cluster, restarted if their worker dies."""

import os
import re
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from dpn_plugin._files import write_text
from dpn_plugin.bench.benchmark import Benchmark
from dpn_plugin.bench.execution.ray_scheduler import RayScheduler, Resources
from dpn_plugin.bench.execution.workers import WorkerTracker
from dpn_plugin.bench.executor import BenchMonitor, RunResult
from dpn_plugin.errors import UserError

#: prefixes of variables that workers get: which plugins to load, where weights are cached
_FORWARDED = ("DPN_", "HF_", "TORCH_", "PYTHON")


def import_ray() -> Any:
    """
    Import Ray.

    :raises UserError: if it is not installed
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        return import_module("ray")
    except ImportError as error:
        raise UserError(
            "--executor ray needs Ray, which is not installed: pip install 'dpn-plugin[ray]'."
        ) from error


@contextmanager
def connected(ray: Any, address: str | None) -> Iterator[None]:
    """
    Within the block, tasks can be sent to a cluster.

    :param ray: the module
    :param address: of a running cluster; without it, one on this machine is started and stopped
    :raises UserError: if there is no such cluster
    """
    if address is not None and re.fullmatch(r"[^/]+:\d+", address):
        _check_listening(address)
    variables = {name: text for name, text in os.environ.items() if name.startswith(_FORWARDED)}
    options: dict[str, Any] = {} if address else {"include_dashboard": False}
    try:
        ray.init(
            address=address,
            runtime_env={"env_vars": variables},
            log_to_driver=False,
            logging_level="ERROR",
            **options,
        )
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise _no_cluster(address, error) from error
    try:
        yield
    finally:
        ray.shutdown()


def _check_listening(address: str) -> None:
    """Check first, because Ray itself would retry for many minutes."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except (OSError, OverflowError) as error:
        raise _no_cluster(address, error) from error


def _no_cluster(address: str | None, error: Exception) -> UserError:
    where = f"at {address!r}" if address else "on this machine"
    return UserError(
        f"There is no Ray cluster to use {where}: {error}. If it asks for a token, set "
        "RAY_AUTH_MODE=token."
    )


@contextmanager
def session_file(out: Path) -> Iterator[str]:
    """
    Write a file into the output folder for as long as the block lasts, and give its name.

    A worker that finds it under the same path shares the folder.
    """
    name = f".session-{secrets.token_hex(8)}"
    write_text(out / name, "")
    try:
        yield name
    finally:
        (out / name).unlink(missing_ok=True)


@dataclass(frozen=True)
class RayExecutor:
    """
    Carries out runs on a Ray cluster.

    :param address: of a running cluster, e.g. ``"auto"`` or ``"10.0.0.1:6379"``; without it, a
        cluster on this machine is started, and stopped after the benchmark
    :param cpus: number of CPUs, and of computing threads, of every run
    :param gpus: number of GPUs of every run; without it, one if the cluster has any
    :param scratch: workers write to scratch folders of their own and copy the files back, even if
        they share the output folder, e.g. because it is slow
    """

    address: str | None = None
    cpus: int = 1
    gpus: float | None = None
    scratch: bool = False

    def slots(self) -> int:
        """Return how many runs the cluster carries out at a time; this connects to it."""
        if self.address is None:
            resources = {"CPU": os.cpu_count() or 1, "GPU": torch.cuda.device_count()}
        else:
            ray = import_ray()
            with connected(ray, self.address):
                resources = ray.cluster_resources()
        gpus, found = resources.get("GPU", 0), int(resources.get("CPU", 1) // self.cpus)
        wanted = min(1, gpus) if self.gpus is None else self.gpus
        return max(1, min(found, int(gpus // wanted)) if wanted else found)

    def execute(self, benchmark: Benchmark, monitor: BenchMonitor) -> Iterator[RunResult]:
        """Return the result of every run, as it ends."""
        if benchmark.processes.world > 1:
            raise UserError("Ray starts processes of its own: use --executor ray without torchrun.")
        plan, ray = benchmark.plan, import_ray()
        remaining = []
        for index, run in enumerate(plan.runs):
            if run.find_missing(plan.detectors, plan.tune):
                remaining.append(index)
            else:  # finished runs are read locally; sending them to a worker would be slower
                run_monitor = monitor.start_run(index, len(plan.runs), run)
                yield benchmark.carry_out(index, run_monitor)
        if remaining:
            # workers have other working directories
            base, data_root = plan.base.resolve(), plan.data_root.resolve()
            plan = replace(plan.moved(plan.out.resolve()), base=base, data_root=data_root)
            with connected(ray, self.address), session_file(plan.out) as session:
                resources = Resources(self.cpus, self._gpus(ray, plan.device), self.scratch)
                tracker = WorkerTracker(plan, monitor, benchmark.warnings)
                yield from RayScheduler(ray, plan, session, resources, tracker).run(remaining)

    def _gpus(self, ray: Any, device: str) -> float:
        if self.gpus is not None or device == "cpu":
            return self.gpus or 0
        return min(1, ray.cluster_resources().get("GPU", 0))
