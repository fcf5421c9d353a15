"""Batches that worker processes decode, in the order in which they are asked for."""

import multiprocessing
import os
import signal
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from dpn_plugin.errors import UserError

#: batches that wait, decoded, for each worker process
_PREFETCHED = 2
#: the most worker processes that are started unless a user asks for more
_MOST_WORKERS = 4


def default_workers() -> int:
    """Return how many processes decode images if nobody says: one for each core, at most four."""
    available = getattr(os, "sched_getaffinity", None)
    cores = len(available(0)) if available else os.cpu_count() or 1
    return min(_MOST_WORKERS, cores)


def decoded_batches(
    fetch: Callable[[Tensor], Any], positions: Iterable[Tensor], workers: int, name: str
) -> Iterator[tuple[Tensor, Any]]:
    """
    Yield each of the given positions with what is fetched for it, in this order.

    Workers decode a few batches ahead and no more, whatever the length of ``positions``. The order
    does not depend on their number, and torch's random state does not change.

    :param fetch: returns a batch, given its positions; it is called in the worker processes
    :param positions: of each batch, ``int64``
    :param workers: number of worker processes; 0 reads in this process
    :param name: the name of the data in messages
    :raises UserError: if an image cannot be read, or a worker process dies
    """
    if workers < 1:
        for rows in positions:
            yield rows, fetch(rows)
        return
    batches = _start_workers(fetch, positions, workers)
    while True:
        try:
            rows, found = next(batches)
        except StopIteration:
            return
        # what a worker has sent cannot be received any more once it is dead: OSError, EOFError
        except (RuntimeError, OSError, EOFError) as error:
            raise _worker_died(error, name) from error
        if isinstance(found, Exception):
            raise found
        yield rows, found


def _start_workers(
    fetch: Callable[[Tensor], Any], positions: Iterable[Tensor], workers: int
) -> Iterator[Any]:
    with warnings.catch_warnings(), _no_child_handler():
        warnings.filterwarnings("ignore", message="This DataLoader will create")
        loader = DataLoader(
            _BatchDataset(fetch),
            batch_size=None,  # an item is a whole batch
            sampler=positions,
            num_workers=workers,
            prefetch_factor=_PREFETCHED,
            worker_init_fn=_start_worker,
            multiprocessing_context=_start_method(),
            generator=torch.Generator(),  # the default one would change torch's random state
        )
        return iter(loader)


class _BatchDataset(Dataset[tuple[Tensor, Any]]):
    """Whole batches by their positions."""

    def __init__(self, fetch: Callable[[Tensor], Any]) -> None:
        self.fetch = fetch

    def __getitem__(self, rows: Tensor) -> tuple[Tensor, Any]:
        try:
            return rows, self.fetch(rows)
        except UserError as error:  # raised here, torch would wrap it into a traceback
            return rows, type(error)(str(error))


def _start_method() -> str | None:
    # a plugin's reader may be a closure, which a process that is not forked could not get
    return "fork" if "fork" in multiprocessing.get_all_start_methods() else None


def _start_worker(number: int) -> None:
    """Leave Ctrl-C to the main process, and end when that one asks for it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def _no_child_handler() -> Iterator[None]:
    """
    Keep the handler of SIGCHLD that there is.

    With torch's own, the death of a worker raises wherever the main thread happens to be, in the
    middle of a training step for example; without, it raises where the next batch is asked for.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "SIGCHLD"):
        yield
        return
    before = signal.getsignal(signal.SIGCHLD)
    try:
        yield
    finally:
        signal.signal(signal.SIGCHLD, before)


def _worker_died(error: Exception, name: str) -> Exception:
    if isinstance(error, RuntimeError) and "DataLoader worker" not in str(error):
        return error
    return UserError(
        f"A worker process that decodes images of {name} was killed; the system does so when "
        "memory runs out. Use fewer of them: --loaders 1, or 0 to decode in the main process."
    )
