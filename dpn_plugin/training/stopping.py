"""Ctrl-C, and the signal that a cluster sends before it takes a machine away."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

__all__ = ["StopRequest", "Stopped", "stop_on_signals"]


class Stopped(KeyboardInterrupt):
    """A run was asked to stop, did so after a whole step, and can be continued."""


class StopRequest:
    """Whether somebody asked to stop."""

    def __init__(self) -> None:
        self.requested = False

    def stop(self, where: str) -> NoReturn:
        """:raises Stopped: saying where, and how to go on"""
        raise Stopped(f"Stopped {where}. The same command goes on from there.")


@contextmanager
def stop_on_signals() -> Iterator[StopRequest]:
    """
    Within the block, the first Ctrl-C (or SIGTERM) asks to stop after the current step; a second
    one interrupts at once.
    """
    request = StopRequest()

    def ask(number: int, frame: Any) -> None:
        if request.requested:
            raise KeyboardInterrupt
        request.requested = True

    if threading.current_thread() is not threading.main_thread():
        yield request  # signals reach the main thread alone
        return
    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
