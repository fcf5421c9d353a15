"""The units of a plan on a Ray cluster: each where there is room, again if its worker dies."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from dpn_plugin.bench.board import Board
from dpn_plugin.bench.executor import BenchMonitor, Outcome, outcome
from dpn_plugin.bench.on_ray.cluster import cluster, load_ray, token
from dpn_plugin.bench.on_ray.shift import Needs, Shift
from dpn_plugin.bench.workshop import Job, Workshop
from dpn_plugin.errors import UserError

__all__ = ["RayExecutor"]


@dataclass(frozen=True)
class RayExecutor:
    """
    :param address: of a running cluster, e.g. ``"auto"`` or ``"10.0.0.1:6379"``; without it, a
        cluster on this machine is started, and ended with the benchmark
    :param cpus: that every unit takes, and threads that it computes with
    :param gpus: that every unit takes; without it, one if the cluster has any
    :param scratch: let workers write to scratch folders of their own, also where they see the
        output folder, e.g. because it is slow for them
    """

    address: str | None = None
    cpus: int = 1
    gpus: float | None = None
    scratch: bool = False

    def run(self, workshop: Workshop, monitor: BenchMonitor) -> Iterator[Outcome]:
        """See :meth:`dpn_plugin.bench.Executor.run`."""
        if workshop.processes.world > 1:
            raise UserError("Ray starts processes of its own: use --executor ray without torchrun.")
        plan, ray = workshop.job.plan, load_ray()
        away = []
        for index, unit in enumerate(plan.units):
            if unit.missing(plan.detectors, plan.tune):
                away.append(index)
            else:  # reading what is here costs less than a journey
                yield outcome(workshop, index, monitor.unit(index, len(plan.units), unit))
        if away:
            job = _absolute(workshop.job)
            with cluster(ray, self.address), token(job.out) as session:
                needs = Needs(self.cpus, self._gpus(ray, job.device), self.scratch)
                board = Board(plan, monitor, workshop.notices)
                yield from Shift(ray, job, session, needs, board).run(away)

    def _gpus(self, ray: Any, device: str) -> float:
        if self.gpus is not None or device == "cpu":
            return self.gpus or 0
        return min(1, ray.cluster_resources().get("GPU", 0))


def _absolute(job: Job) -> Job:
    """Workers have other working directories."""
    units = tuple(
        replace(unit, folder=unit.folder.resolve(), trained=unit.trained and unit.trained.resolve())
        for unit in job.plan.units
    )
    plan = replace(job.plan, base=job.plan.base.resolve(), units=units)
    return replace(job, plan=plan, out=job.out.resolve(), root=job.root.resolve())
