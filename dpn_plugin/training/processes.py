"""One process or many: who am I, and what do the others say."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any, TypeVar

import torch
from timm.utils.distributed import init_distributed_device_so
from torch import Tensor
from torch import distributed as dist

from dpn_plugin.errors import UserError

__all__ = ["Processes"]

_T = TypeVar("_T")


@dataclass(frozen=True)
class Processes:
    """
    The processes of a run; alone unless ``torchrun`` started several.

    :param device: where this process computes
    :param rank: its number
    :param world: how many there are
    """

    device: torch.device
    rank: int = 0
    world: int = 1

    @classmethod
    def join(cls, device: str = "auto") -> "Processes":
        """
        Join the processes that ``torchrun`` started, with gloo on CPU and nccl on GPU.

        :param device: ``"cpu"``, ``"cuda"``, ``"cuda:1"``, ... or ``"auto"``
        :raises UserError: if there is no such device
        """
        _check_device(_resolved(device))
        if dist.is_initialized():
            return cls(torch.device(_resolved(device)), dist.get_rank(), dist.get_world_size())
        info = init_distributed_device_so(_resolved(device))
        return cls(torch.device(info["device"]), info["global_rank"], info["world_size"])

    @property
    def primary(self) -> bool:
        """Whether this process writes the files."""
        return self.rank == 0

    def total(self, values: Tensor) -> Tensor:
        """:return: the sum of ``values`` over all processes"""
        if self.world == 1:
            return values
        shared = values.to(self.device)  # nccl takes no tensors of the CPU
        dist.all_reduce(shared)
        return shared.to(values.device)

    def from_primary(self, decide: Callable[[], _T]) -> _T:
        """
        :param decide: called in the primary process alone, e.g. because it reads a file that the
            primary process goes on to write
        :return: what it returned there, in all processes
        :raises UserError: in all processes, if ``decide`` did
        """
        if self.world == 1:
            return decide()
        answer: list[_T | UserError | None] = [None]
        if self.primary:
            try:
                answer = [decide()]
            except UserError as error:
                answer = [error]
        dist.broadcast_object_list(answer, src=0, group=_patient())
        if isinstance(answer[0], UserError):
            raise answer[0]
        return answer[0]  # type: ignore[return-value]

    def to_primary(self, mine: _T) -> list[_T]:
        """:return: what every process gave, in the order of their numbers; nothing elsewhere"""
        if self.world == 1:
            return [mine]
        given: list[_T] | None = [mine] * self.world if self.primary else None
        dist.gather_object(mine, given, dst=0, group=_patient())
        return given or []

    def any(self, flag: bool) -> bool:
        """:return: whether the flag is set in some process"""
        if self.world == 1:
            return flag
        return bool(self.total(torch.tensor(float(flag), device=self.device)) > 0)

    def wait(self) -> None:
        """Wait until all processes are here."""
        if self.world > 1:
            dist.barrier(group=_patient())


@cache
def _patient() -> Any:
    """
    A group for words, not gradients: over the CPU, and without a limit on waiting, since the
    others wait while the primary process evaluates. ``torchrun`` ends them if it dies.
    """
    return dist.new_group(backend="gloo", timeout=timedelta(days=7))


def _resolved(device: str) -> str:
    if device != "auto":
        return device
    return "cuda" if torch.cuda.is_available() else "cpu"


def _check_device(device: str) -> None:
    try:
        torch.empty(0, device=device)
    # a torch that was built without the device asserts
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"device {device!r} cannot be used on this machine: {reason}") from error
