"""Lists of names and ``key=value`` on the command line, and the help for data sources."""

import re
from collections.abc import Iterable
from typing import Any

from dpn_plugin.errors import UserError

SOURCE_HELP = (
    "SCHEME:NAME, optionally followed by '?' and KEY=VALUE pairs joined by '&': "
    "'npz:drawings.npz?classes=0-169&limit=20000', 'torchvision:MNIST?split=test&classes=3,5'."
)


def names(text: str) -> tuple[str, ...]:
    """
    Return names that are separated by commas; those within parentheses belong to one name.

    :param text: e.g. ``"knn,fisher(dpn-mi,knn)"``
    """
    parts, depth = [""], 0
    for character in text:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += character
    return tuple(part.strip() for part in parts if part.strip())


def assignments(items: Iterable[str], option: str) -> dict[str, Any]:
    """
    Return a table of ``key=value`` items; a dot in a key makes a table within it.

    :param items: e.g. ``["lr=0.1", "augmentation.flip=false"]``
    :param option: the option that they were given to, e.g. ``"--set"``, for messages
    :raises UserError: if an item is not of the form ``key=value``
    """
    from dpn_plugin.data import parse_value  # imports torch, which `dpn train --help` does not need

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
        inner[last] = parse_value(value)
    return table


def byte_count(text: str | None, option: str) -> int | None:
    """
    Return the number of bytes that a text like ``"8GB"``, ``"512 MiB"`` or ``"0"`` denotes.

    :param text: a number, and a unit unless it is a number of bytes; ``None`` gives ``None``
    :param option: the option that it was given to, for messages
    :raises UserError: if it is something else
    """
    if text is None:
        return None
    found = re.fullmatch(r"(\d{1,15}(?:\.\d{1,6})?)\s*([kmgt]?)(i?)b?", text.strip().lower())
    if found is None:
        raise UserError(f"{option} takes a size like 8GB, 512MB or 0, not {text!r}.")
    number, prefix, binary = found.groups()
    return int(float(number) * (1024 if binary else 1000) ** " kmgt".index(prefix or " "))
