"""A function in two processes that know of each other, as torchrun starts them."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from multiprocessing.context import ForkServerContext
from typing import Any

import torch


def in_two_processes(forks: ForkServerContext, work: Callable[..., None], *arguments: Any) -> list:
    """
    :param forks: from which processes start in milliseconds
    :param work: is given the number of its process, and the arguments
    :return: the exit codes
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    children = [
        forks.Process(target=_one_of_two, args=(rank, port, work, arguments)) for rank in range(2)
    ]
    for child in children:
        child.start()
    for child in children:
        child.join(180)
    return [child.exitcode for child in children]


def _one_of_two(rank: int, port: int, work: Callable[..., None], arguments: tuple) -> None:
    torch.set_num_threads(1)
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", **place}
    work(rank, *arguments)


def torchrun(*words: object) -> subprocess.CompletedProcess[str]:
    """:return: how ``dpn`` with these words ended, in two processes"""
    start = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    return subprocess.run(
        [*start, "-m", "dpn_plugin", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
