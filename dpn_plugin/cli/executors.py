"""``--executor`` and the options that go with it."""

from dpn_plugin.bench import Executor, LocalExecutor
from dpn_plugin.errors import UserError, unknown_name

__all__ = ["make_executor"]

_NAMES = ("local", "ray")


def make_executor(
    name: str, address: str | None, threads: int | None, gpus: float | None, scratch: bool
) -> Executor:
    """
    :param name: ``local`` or ``ray``
    :param address: of a Ray cluster
    :param threads: CPUs of each run
    :param gpus: GPUs of each run
    :param scratch: whether workers use folders of their own
    :raises UserError: for another name, or options that are not of this executor
    """
    if name not in _NAMES:
        raise unknown_name("executor", name, _NAMES)
    if name == "ray":
        from dpn_plugin.bench.on_ray import RayExecutor

        return RayExecutor(address, threads or 1, gpus, scratch)
    if address is not None or gpus is not None or scratch:
        raise UserError("--ray-address, --ray-gpus and --ray-scratch belong to --executor ray.")
    return LocalExecutor()
