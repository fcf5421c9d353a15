"""``--executor`` and the options that go with it."""

from dpn_plugin.bench import Executor, LocalExecutor
from dpn_plugin.errors import UserError, unknown_name

__all__ = ["make_executor"]

_NAMES = ("local", "ray")


def make_executor(
    name: str,
    *,
    jobs: int = 1,
    threads: int | None = None,
    address: str | None = None,
    gpus: float | None = None,
    scratch: bool = False,
) -> Executor:
    """
    :param name: ``local`` or ``ray``
    :param jobs: runs at a time, on this machine
    :param threads: CPUs of each run
    :param address: of a Ray cluster
    :param gpus: of each run on a Ray cluster
    :param scratch: whether its workers use folders of their own
    :raises UserError: for another name, or options that are not of this executor
    """
    if name not in _NAMES:
        raise unknown_name("executor", name, _NAMES)
    if name == "ray":
        if jobs > 1:
            raise UserError("--jobs belongs to --executor local; Ray fills its cluster by itself.")
        from dpn_plugin.bench.on_ray import RayExecutor

        return RayExecutor(address, threads or 1, gpus, scratch)
    if address is not None or gpus is not None or scratch:
        raise UserError("--ray-address, --ray-gpus and --ray-scratch belong to --executor ray.")
    if jobs > 1:
        from dpn_plugin.bench.pool import PoolExecutor

        return PoolExecutor(jobs, threads or 1)
    return LocalExecutor()
