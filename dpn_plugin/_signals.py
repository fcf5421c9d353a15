"""Stopping on Ctrl-C, and on the SIGTERM that a cluster sends before it takes a machine away."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn


class Stopped(KeyboardInterrupt):
    """A run was asked to stop, did so after a whole step, and can be continued."""


class StopRequest:
    """Whether the user has asked to stop."""

    def __init__(self) -> None:
        self.requested = False

    def stop(self, where: str) -> NoReturn:
        """
        Stop now.

        :param where: how far the work got, e.g. ``"after step 5 of 20"``
        :raises Stopped: with this and how to continue
        """
        raise Stopped(f"Stopped {where}. The same command goes on from there.")


@contextmanager
def stop_on_signals() -> Iterator[StopRequest]:
    """
    Within the block, the first Ctrl-C (or SIGTERM) asks to stop after the current step; a second
    one interrupts at once.
    """
    request = StopRequest()

    def on_signal(number: int, frame: Any) -> None:
        if request.requested:
            raise KeyboardInterrupt
        request.requested = True

    if threading.current_thread() is not threading.main_thread():
        yield request  # only the main thread receives signals
        return
    signals = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, on_signal) for number in signals}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
