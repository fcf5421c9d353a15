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
    """Within the block, warnings of Python and of the loggers become notices instead of print."""
    notices = Notices(told)

    def show(message: Warning | str, *place: Any, **more: Any) -> None:
        notices.add(" ".join(str(message).split()))

    with _Listener(notices), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # for developers, not for readers
        for category in (UserWarning, RuntimeWarning):
            warnings.simplefilter("always", category)  # every run has its own, not the first alone
        warnings.showwarning = show
        yield notices


class _Listener(logging.Handler):
    """Takes the warnings of our loggers and the host's, and keeps them from others."""

    def __init__(self, notices: Notices) -> None:
        super().__init__(logging.WARNING)
        self.notices = notices
        self.loggers = [logging.getLogger(name) for name in ("dpn_plugin", "pytorch_ood")]

    def emit(self, record: logging.LogRecord) -> None:
        self.notices.add(record.getMessage())

    def __enter__(self) -> None:
        self.propagated = [log.propagate for log in self.loggers]
        for log in self.loggers:
            log.addHandler(self)
            log.propagate = False

    def __exit__(self, *problem: Any) -> None:
        for log, propagated in zip(self.loggers, self.propagated, strict=True):
            log.removeHandler(self)
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
