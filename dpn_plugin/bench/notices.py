"""Warnings on the way, each kind told once."""

import logging
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["Notices", "joined", "noticed"]


class Notices:
    """
    Collects messages. Those that differ in their numbers alone are of one kind.

    :param told: is given the first message of each kind
    """

    def __init__(self, told: Callable[[str], None]) -> None:
        self.told = told
        self.messages: list[str] = []
        self._kinds: set[str] = set()

    def add(self, message: str) -> None:
        """Keep a message, and tell it if it is the first of its kind."""
        self.messages.append(message)
        if _kind(message) not in self._kinds:
            self._kinds.add(_kind(message))
            self.told(message)

    def since(self, start: int) -> list[str]:
        """:return: the messages after the first ``start``, one of each kind"""
        return list({_kind(each): each for each in reversed(self.messages[start:])}.values())[::-1]


@contextmanager
def noticed(told: Callable[[str], None]) -> Iterator[Notices]:
    """Within the block, warnings of Python and of our loggers become notices instead of print."""
    notices, handler, log = Notices(told), logging.Handler(), logging.getLogger("dpn_plugin")
    handler.emit = lambda record: notices.add(record.getMessage())  # type: ignore[method-assign]
    handler.setLevel(logging.WARNING)

    def show(message: Warning | str, *place: Any, **more: Any) -> None:
        notices.add(" ".join(str(message).split()))

    propagated = log.propagate
    log.addHandler(handler)
    log.propagate = False
    try:
        with warnings.catch_warnings():
            for category in (UserWarning, RuntimeWarning):
                warnings.simplefilter("always", category)  # every run has its own, not the first
            warnings.showwarning = show
            yield notices
    finally:
        log.removeHandler(handler)
        log.propagate = propagated


def joined(messages: Iterable[tuple[str, str]]) -> list[str]:
    """
    :param messages: who said it, and what
    :return: one message of each kind, with the first who said it and how many more did
    """
    found: dict[str, tuple[str, dict[str, None]]] = {}
    for who, message in messages:
        found.setdefault(_kind(message), (message, {}))[1][who] = None
    return [f"{message} ({_named(list(who))})" for message, who in found.values()]


def _named(who: list[str]) -> str:
    return who[0] if len(who) == 1 else f"{who[0]} and {len(who) - 1} more runs"


def _kind(message: str) -> str:
    return re.sub(r"\d+", "0", message)
