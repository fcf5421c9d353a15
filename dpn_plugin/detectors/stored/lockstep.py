"""Several functions that iterate over the same batches, each of which is read once for all."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

import torch

from dpn_plugin.detectors.stored.inputs import Batches
from dpn_plugin.detectors.wiring import RandomStream


class _Cancelled(BaseException):
    """Ends a function that will get no more batches."""


class _Consumer:
    """
    A function in a thread of its own, which runs only between :meth:`step` and its next batch.

    :param work: takes what returns the batches
    """

    def __init__(self, work: Callable[[Batches], None]) -> None:
        self.work, self.random = work, RandomStream()
        self.wanted, self.done, self.cancelled = 0, False, False
        self.error: Exception | None = None
        self._batch: Any = None
        self._resume, self._paused = threading.Semaphore(0), threading.Semaphore(0)
        self._threads = torch.get_num_threads()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def step(self, batch: Any = None) -> None:
        """Let the function go on with a batch, or with the end of its iteration."""
        self._batch = batch
        with self.random.active():
            self._resume.release()
            self._paused.acquire()

    def cancel(self) -> None:
        """End the function and wait for it."""
        self.cancelled = True
        self._resume.release()
        self._thread.join()

    def _run(self) -> None:
        torch.set_num_threads(self._threads)  # a thread starts with all cores
        self._resume.acquire()
        try:
            if not self.cancelled:
                self.work(self._batches)
        except _Cancelled:
            pass
        except Exception as error:
            self.error = error
        finally:
            self.done = True
            self._paused.release()

    def _batches(self) -> Iterator[Any]:
        index = 0
        while (batch := self._take(index)) is not None:
            yield batch
            index += 1

    def _take(self, index: int) -> Any:
        self.wanted = index
        self._paused.release()
        self._resume.acquire()
        if self.cancelled:
            raise _Cancelled
        batch, self._batch = self._batch, None
        return batch


def in_lockstep(
    batches: Batches,
    works: Mapping[str, Callable[[Batches], None]],
    on_batch: Callable[[Any], AbstractContextManager[None]],
    on_step: Callable[[str], AbstractContextManager[None]],
) -> dict[str, Exception]:
    """
    Run functions that iterate over batches, with one pass over the batches for all of them.

    One function runs at a time: each gets a batch and goes on until it asks for the next one. It
    has random numbers of its own, so that the result does not depend on the others. One that
    iterates again is served by another pass.

    :param batches: returns the batches
    :param works: the functions by name; each takes what returns its batches
    :param on_batch: is entered while a batch is in use
    :param on_step: is entered while the function of this name runs
    :return: the exceptions of those that failed, by name
    """
    consumers = {name: _Consumer(work) for name, work in works.items()}
    try:
        for name, each in consumers.items():
            with on_step(name):
                each.step()
        while any(not each.done for each in consumers.values()):
            _pass(batches, consumers, on_batch, on_step)
    finally:
        for each in consumers.values():
            each.cancel()
    return {name: each.error for name, each in consumers.items() if each.error is not None}


def _pass(
    batches: Batches,
    consumers: Mapping[str, _Consumer],
    on_batch: Callable[[Any], AbstractContextManager[None]],
    on_step: Callable[[str], AbstractContextManager[None]],
) -> None:
    """Give each batch to the functions that wait for it, then the end to those that had all."""
    count = 0
    for batch in batches():
        with on_batch(batch):
            _serve(batch, count, consumers, on_step)
        count += 1
        if all(each.done for each in consumers.values()):
            return
    waiting = {n: each for n, each in consumers.items() if not each.done and each.wanted == count}
    for name, each in waiting.items():
        with on_step(name):
            each.step()


def _serve(
    batch: Any,
    index: int,
    consumers: Mapping[str, _Consumer],
    on_step: Callable[[str], AbstractContextManager[None]],
) -> None:
    for name, each in consumers.items():
        # more than once for a function that starts again after its first batch
        while not each.done and each.wanted == index:
            with on_step(name):
                each.step(batch)
