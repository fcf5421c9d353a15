"""One process or many: who am I, and what do the others say."""

from dataclasses import dataclass

import torch
from timm.utils.distributed import init_distributed_device_so
from torch import Tensor
from torch import distributed as dist

__all__ = ["Processes"]


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
        """
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
        if self.world > 1:
            dist.all_reduce(values)
        return values

    def any(self, flag: bool) -> bool:
        """:return: whether the flag is set in some process"""
        if self.world == 1:
            return flag
        return bool(self.total(torch.tensor(float(flag), device=self.device)) > 0)

    def wait(self) -> None:
        """Wait until all processes are here."""
        if self.world > 1:
            dist.barrier()


def _resolved(device: str) -> str:
    if device != "auto":
        return device
    return "cuda" if torch.cuda.is_available() else "cpu"
