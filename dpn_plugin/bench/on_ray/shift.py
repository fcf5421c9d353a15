"""Units that are sent to a cluster, until the last is back."""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from dpn_plugin.bench.executor import BenchMonitor, Outcome
from dpn_plugin.bench.notices import Notices
from dpn_plugin.bench.on_ray.parcel import Parcel, packed
from dpn_plugin.bench.on_ray.worker import TRAINED, Order, unit_stream
from dpn_plugin.bench.workshop import Job, UnitMonitor
from dpn_plugin.errors import UserError

__all__ = ["TRIES", "Needs", "Shift"]

#: how often a unit is begun before it counts as failed
TRIES = 4
#: words on their way at a time, of each unit: some are pieces of files
_WORDS = 4


@dataclass(frozen=True)
class Needs:
    """
    What every unit takes.

    :param cpus: also the threads that compute
    :param gpus: or a share of one
    :param scratch: whether workers must not write to the output folder
    """

    cpus: int
    gpus: float
    scratch: bool


@dataclass
class _Delivery:
    """A unit that is under way."""

    index: int
    attempt: int
    parcel: Parcel
    row: UnitMonitor | None = None


class Shift:
    """
    Sends units, listens to all of them, and begins those again whose worker died.

    :param ray: the module, connected to a cluster
    :param job: with absolute paths
    :param session: names the benchmark, and the file that shows the output folder to workers
    :param needs: of every unit
    :param monitor: is told of every unit
    :param notices: where warnings arrive
    """

    def __init__(
        self,
        ray: Any,
        job: Job,
        session: str,
        needs: Needs,
        monitor: BenchMonitor,
        notices: Notices,
    ) -> None:
        self.ray, self.job, self.session, self.needs = ray, job, session, needs
        self.monitor, self.notices = monitor, notices
        self.remote = ray.remote(unit_stream).options(
            num_cpus=needs.cpus,
            num_gpus=needs.gpus,
            num_returns="streaming",
            max_retries=0,  # we begin again ourselves, and say so
            _generator_backpressure_num_objects=_WORDS,
        )
        self.under_way: dict[Any, _Delivery] = {}

    def run(self, indices: list[int]) -> Iterator[Outcome]:
        """:return: the outcome of every unit, as it ends"""
        for index in indices:
            self._send(index)
        while self.under_way:
            ready, _ = self.ray.wait(list(self.under_way), num_returns=1, timeout=1.0)
            for stream in ready:
                if (found := self._listened(stream)) is not None:
                    yield found

    def _send(self, index: int, attempt: int = 1, *, with_files: bool = False) -> None:
        unit = self.job.plan.units[index]
        order = Order(
            job=self.job,
            index=index,
            session=self.session,
            scratch=self.needs.scratch,
            at_home=not with_files and (unit.trained or unit.folder).exists(),
            threads=self.needs.cpus,
            version=version("dpn-plugin"),
        )
        stream = self.remote.remote(order, self._files(index) if with_files else [])
        self.under_way[stream] = _Delivery(index, attempt, Parcel(self.job.out, str(index)))

    def _files(self, index: int) -> list[tuple[str, bytes]]:
        unit = self.job.plan.units[index]
        if unit.trained is None:
            return list(packed(unit.folder, self.job.out))
        return [(f"{TRAINED}/{name}", piece) for name, piece in packed(unit.trained, unit.trained)]

    def _listened(self, stream: Any) -> Outcome | None:
        """:return: how the unit ended, if this was its last word"""
        try:
            kind, words = self.ray.get(next(stream))
        except self.ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except (self.ray.exceptions.RayError, StopIteration) as error:
            return self._lost(stream, type(error).__name__)
        try:
            return self._heard(stream, kind, words)
        except UserError as error:  # the files cannot be written here
            return self._over(stream, Outcome(self.under_way[stream].index, reason=str(error)))

    def _heard(self, stream: Any, kind: str, words: tuple[Any, ...]) -> Outcome | None:
        delivery, units = self.under_way[stream], self.job.plan.units
        if kind == "begun":
            unit = units[delivery.index]
            delivery.row = self.monitor.unit(delivery.index, len(units), unit)
        elif kind == "asked":
            self._forget(stream)
            self._send(delivery.index, delivery.attempt, with_files=True)
        elif kind == "warned":
            self.notices.add(*words)
        elif kind == "file":
            delivery.parcel.add(*words)
        elif kind == "end":
            delivery.parcel.unpack()
            return self._over(stream, *words)
        else:
            getattr(delivery.row, kind)(*words)
        return None

    def _lost(self, stream: Any, why: str) -> Outcome | None:
        delivery = self.under_way[stream]
        if delivery.attempt == TRIES:
            reason = f"its worker died {TRIES} times ({why})"
            return self._over(stream, Outcome(delivery.index, reason=reason))
        title = self.job.plan.units[delivery.index].title
        self.notices.add(f"The worker of {title} died ({why}); another one goes on.")
        self._forget(stream)
        self._send(delivery.index, delivery.attempt + 1)
        return None

    def _over(self, stream: Any, found: Outcome) -> Outcome:
        self._forget(stream)
        return found

    def _forget(self, stream: Any) -> None:
        delivery = self.under_way.pop(stream)
        if delivery.row is not None:
            delivery.row.ended()
