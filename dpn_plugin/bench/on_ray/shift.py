"""Units that are sent to a cluster, until the last is back."""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from dpn_plugin.bench.board import Board
from dpn_plugin.bench.executor import Outcome
from dpn_plugin.bench.on_ray.parcel import Parcel, packed
from dpn_plugin.bench.on_ray.worker import TRAINED, Order, unit_stream
from dpn_plugin.bench.workshop import Job

__all__ = ["Needs", "Shift"]

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


@dataclass(frozen=True)
class _Delivery:
    """A unit that is under way."""

    index: int
    parcel: Parcel


class Shift:
    """
    Sends units, listens to all of them, and begins those again whose worker died.

    :param ray: the module, connected to a cluster
    :param job: with absolute paths
    :param session: names the benchmark, and the file that shows the output folder to workers
    :param needs: of every unit
    :param board: hears how they go
    """

    def __init__(self, ray: Any, job: Job, session: str, needs: Needs, board: Board) -> None:
        self.ray, self.job, self.session, self.needs = ray, job, session, needs
        self.board = board
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

    def _send(self, index: int, *, with_files: bool = False) -> None:
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
        self.under_way[stream] = _Delivery(index, Parcel(self.job.out, str(index)))

    def _files(self, index: int) -> list[tuple[str, bytes]]:
        unit = self.job.plan.units[index]
        if unit.trained is None:
            return list(packed(unit.folder, self.job.out))
        return [(f"{TRAINED}/{name}", piece) for name, piece in packed(unit.trained, unit.trained)]

    def _listened(self, stream: Any) -> Outcome | None:
        """:return: how the unit ended, if this was its last word"""
        delivery = self.under_way[stream]
        try:
            kind, words = self.ray.get(next(stream))
        except self.ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except (self.ray.exceptions.RayError, StopIteration) as error:
            found = self.board.lose(delivery.index, type(error).__name__)
            self.under_way.pop(stream)
            if found is None:
                self._send(delivery.index)
            return found
        found = self._heard(delivery, kind, words)
        if found is not None or kind == "asked":
            self.under_way.pop(stream)
        return found

    def _heard(self, delivery: _Delivery, kind: str, words: tuple[Any, ...]) -> Outcome | None:
        if kind == "begun":
            self.board.begin(delivery.index)
        elif kind == "asked":
            self.board.leave(delivery.index)
            self._send(delivery.index, with_files=True)
        elif kind == "file":
            delivery.parcel.add(*words)
        else:
            if kind == "end":
                delivery.parcel.unpack()
            return self.board.hear(delivery.index, kind, words)
        return None
