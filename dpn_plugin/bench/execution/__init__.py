"""How planned runs are carried out: in this process, in a pool of processes, or on Ray."""

from dpn_plugin.bench.execution.local import LocalExecutor, PoolExecutor
from dpn_plugin.bench.execution.ray_executor import RayExecutor

__all__ = ["LocalExecutor", "PoolExecutor", "RayExecutor"]
