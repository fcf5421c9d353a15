"""``key=value`` on the command line."""

from collections.abc import Iterable
from typing import Any

from dpn_plugin.errors import UserError

__all__ = ["assignments", "value_of"]

_WORDS = {"true": True, "false": False}


def assignments(items: Iterable[str], option: str) -> dict[str, Any]:
    """
    :param items: e.g. ``["lr=0.1", "augmentation.flip=false"]``
    :param option: where they stand, e.g. ``"--set"``, for messages
    :return: a table; a dot in a key makes a table within it
    :raises UserError: if one does not read ``key=value``
    """
    table: dict[str, Any] = {}
    for item in items:
        key, equals, value = item.partition("=")
        if not equals or not key:
            raise UserError(f"{option} takes key=value, not {item!r}.")
        *path, last = key.split(".")
        inner = table
        for name in path:
            inner = inner.setdefault(name, {})
            if not isinstance(inner, dict):
                raise UserError(f"{option}: {name!r} has a value and cannot hold {item!r}, too.")
        inner[last] = value_of(value)
    return table


def value_of(text: str) -> bool | int | float | str:
    """:return: what ``text`` stands for: a truth value, a number, or itself"""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
