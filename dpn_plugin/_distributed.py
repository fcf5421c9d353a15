"""The torch.distributed processes of one run; usually there is one."""

import atexit
import os
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

_T = TypeVar("_T")


@dataclass(frozen=True)
class Processes:
    """
    This process and the others that ``torchrun`` started with it.

    :param device: where this process computes
    :param rank: its number
    :param world: how many processes there are
    """

    device: torch.device
    rank: int = 0
    world: int = 1

    @classmethod
    def join(cls, device: str = "auto") -> "Processes":
        """
        Join the processes that ``torchrun`` started, with gloo on CPU and nccl on GPU.

        :param device: ``"cpu"``, ``"cuda"``, ``"cuda:1"``, ... or ``"auto"``
        :raises UserError: if there is no such device, or the variables of a launcher are incomplete
        """
        device = _resolve(device)
        _check_device(device)
        if dist.is_initialized():
            return cls(torch.device(device), dist.get_rank(), dist.get_world_size())
        variables = dict(os.environ)
        try:
            info = init_distributed_device_so(device)
        # WORLD_SIZE is no number, or a variable is missing, as in an interactive SLURM job
        except ValueError as error:
            # timm sets the variables of torchrun from those of SLURM before it fails
            os.environ.clear()
            os.environ.update(variables)
            raise UserError(
                "WORLD_SIZE or SLURM_NTASKS asks for several processes, which cannot be started: "
                f"{error}. Start them with torchrun, or unset the variable."
            ) from error
        if info["world_size"] > 1:
            # threads of a group that still exists when Python ends abort the process
            atexit.register(_leave)
        return cls(torch.device(info["device"]), info["global_rank"], info["world_size"])

    @property
    def primary(self) -> bool:
        """Whether this process writes the files."""
        return self.rank == 0

    def all_reduce_sum(self, values: Tensor) -> Tensor:
        """Return the sum of ``values`` over all processes."""
        if self.world == 1:
            return values
        shared = values.to(self.device)  # nccl does not accept CPU tensors
        dist.all_reduce(shared)
        return shared.to(values.device)

    def broadcast(self, compute: Callable[[], _T]) -> _T:
        """
        Return in all processes what ``compute`` returns in the primary one.

        :param compute: called in the primary process only, e.g. because it reads a file that the
            primary process writes later
        :raises UserError: in all processes, if ``compute`` did
        """
        if self.world == 1:
            return compute()
        answer: list[_T | UserError | None] = [None]
        if self.primary:
            try:
                answer = [compute()]
            except UserError as error:
                answer = [error]
        dist.broadcast_object_list(answer, src=0, group=_object_group())
        if isinstance(answer[0], UserError):
            raise answer[0]
        return answer[0]  # type: ignore[return-value]

    def gather(self, value: _T) -> list[_T]:
        """Return the values of all processes, by rank, in the primary process; ``[]`` elsewhere."""
        if self.world == 1:
            return [value]
        values: list[_T] | None = [value] * self.world if self.primary else None
        dist.gather_object(value, values, dst=0, group=_object_group())
        return values or []

    def any(self, flag: bool) -> bool:
        """Return whether the flag is set in at least one process."""
        if self.world == 1:
            return flag
        return bool(self.all_reduce_sum(torch.tensor(float(flag), device=self.device)) > 0)

    def barrier(self) -> None:
        """Wait until all processes have called this."""
        if self.world > 1:
            dist.barrier(group=_object_group())


@cache
def _object_group() -> Any:
    """
    Return the group for Python objects: on the CPU, and with no practical limit on waiting, since
    the other processes wait while the primary one evaluates. ``torchrun`` ends them if it dies.
    """
    return dist.new_group(backend="gloo", timeout=timedelta(days=7))


def _resolve(device: str) -> str:
    if device != "auto":
        return device
    return "cuda" if torch.cuda.is_available() else "cpu"


def _check_device(device: str) -> None:
    try:
        torch.empty(0, device=device)
    # a torch build without support for the device raises AssertionError
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"device {device!r} cannot be used on this machine: {reason}") from error


def _leave() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()
