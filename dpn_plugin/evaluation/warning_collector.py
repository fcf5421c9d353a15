"""Collects warnings, each kind shown once."""

import logging
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

_LOGGERS = ("dpn_plugin", "pytorch_ood")


class WarningCollector(logging.Handler):
    """
    Collects messages. Those that differ only in their numbers are of one kind.

    :param on_warning: called with the first message of each kind
    """

    def __init__(self, on_warning: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self.on_warning = on_warning
        self.messages: list[str] = []
        self._kinds: set[str] = set()

    def add(self, message: str) -> None:
        """Keep a message, and pass it on if it is the first of its kind."""
        self.messages.append(message)
        if _kind(message) not in self._kinds:
            self._kinds.add(_kind(message))
            self.on_warning(message)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the message of a log record."""
        self.add(record.getMessage())

    def since(self, start: int) -> list[str]:
        """Return the messages after the first ``start``, one of each kind."""
        return list({_kind(each): each for each in reversed(self.messages[start:])}.values())[::-1]


@contextmanager
def collect_warnings(on_warning: Callable[[str], None]) -> Iterator[WarningCollector]:
    """
    Within the block, collect the warnings of Python and of the loggers instead of printing them.

    Not with :func:`logging.captureWarnings`: it adds the file and the line of code to a message.

    :param on_warning: called with the first message of each kind
    """
    collector = WarningCollector(on_warning)

    def show(message: Warning | str, *place: Any, **more: Any) -> None:
        collector.add(" ".join(str(message).split()))

    with _attached(collector), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # for developers
        for category in (UserWarning, RuntimeWarning):
            warnings.simplefilter("always", category)  # every run has its own
        warnings.showwarning = show
        yield collector


@contextmanager
def _attached(collector: WarningCollector) -> Iterator[None]:
    """Within the block, the loggers pass their warnings to the collector only."""
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    before = [logger.propagate for logger in loggers]
    for logger in loggers:
        logger.addHandler(collector)
        logger.propagate = False
    try:
        yield
    finally:
        for logger, propagate in zip(loggers, before, strict=True):
            logger.removeHandler(collector)
            logger.propagate = propagate


def join_messages(messages: Iterable[tuple[str, str]]) -> list[str]:
    """
    Return one message of each kind, with the first run that has it and the number of others.

    :param messages: pairs of the title of a run and a message
    """
    found: dict[str, tuple[str, dict[str, None]]] = {}
    for title, message in messages:
        found.setdefault(_kind(message), (message, {}))[1][title] = None
    return [f"{message} ({_first_of(list(titles))})" for message, titles in found.values()]


def _first_of(titles: list[str]) -> str:
    return titles[0] if len(titles) == 1 else f"{titles[0]} and {len(titles) - 1} more runs"


def _kind(message: str) -> str:
    return re.sub(r"\d+", "0", message)
