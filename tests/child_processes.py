"""Functions in processes of their own: one that may be killed, or two as torchrun starts them."""

import multiprocessing
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import torch

#: forks a process that has imported everything already: a child starts in milliseconds
FORKSERVER = multiprocessing.get_context("forkserver")
FORKSERVER.set_forkserver_preload(
    [
        "dpn_plugin.bench",
        "dpn_plugin.cli.bench",
        "dpn_plugin.cli.progress",
        "pytorch_ood.loss",
        "pytorch_ood.dataset.img",
        "sklearn.datasets",
        "tiny_bench",
    ]
)


def run_in_child(target: Callable[..., None], *arguments: Any) -> int:
    """Return the exit code of ``target`` in a process of its own; below 0 is a signal."""
    child = FORKSERVER.Process(target=target, args=arguments)
    child.start()
    child.join(120)
    assert child.exitcode is not None
    return child.exitcode


def kill_repeatedly(target: Callable[..., None], *arguments: Any, seconds: float) -> int:
    """
    Start ``target`` again and again and kill it each time, until it ends before that.

    :param seconds: time before the first kill; it grows from kill to kill
    :return: how often it was killed
    """
    kills = 0
    while True:
        child = FORKSERVER.Process(target=target, args=arguments)
        child.start()
        child.join(seconds)
        if child.exitcode is not None:
            assert child.exitcode == 0
            return kills
        child.kill()
        child.join()
        kills += 1
        seconds *= 1.4
        assert kills < 30


def kill_self() -> None:
    """End this process as ``kill -9`` does."""
    os.kill(os.getpid(), signal.SIGKILL)


def kill_self_in(function: str, call: int) -> None:
    """Replace a function, given by its full name, by one that kills this process at a call."""
    module, _, name = function.rpartition(".")
    holder, calls = sys.modules[module], []
    original = getattr(holder, name)

    def counted(*arguments: Any, **keywords: Any) -> Any:
        calls.append(name)
        if len(calls) == call:
            kill_self()
        return original(*arguments, **keywords)

    setattr(holder, name, counted)


def run_in_two_processes(target: Callable[..., None], *arguments: Any) -> list[int | None]:
    """
    Return the exit codes of two processes that are connected as torchrun connects them.

    :param target: gets the rank of its process, and the arguments
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    children = [
        FORKSERVER.Process(target=_run_rank, args=(rank, port, target, arguments))
        for rank in range(2)
    ]
    for child in children:
        child.start()
    for child in children:
        child.join(180)
    return [child.exitcode for child in children]


def _run_rank(rank: int, port: int, target: Callable[..., None], arguments: tuple) -> None:
    torch.set_num_threads(1)
    address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", **address}
    target(rank, *arguments)


def run_with_torchrun(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run ``dpn`` with these arguments in two processes."""
    start = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    return subprocess.run(
        [*start, "-m", "dpn_plugin", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
