"""A data source in one word of the command line: ``npz:drawings.npz?classes=0-169&limit=20000``."""

import re
from collections.abc import Callable
from typing import Any

from dpn_plugin.cli.assignments import value_of
from dpn_plugin.data.spec import SourceSpec
from dpn_plugin.errors import UserError

__all__ = ["SOURCE_HELP", "parse_source"]

SOURCE_HELP = (
    "SCHEME:NAME, and after '?' what is wanted of it, joined by '&': "
    "'npz:drawings.npz?classes=0-169&limit=20000', 'torchvision:MNIST?split=test&classes=3,5'."
)


def parse_source(text: str, option: str, limit: int | None = None) -> SourceSpec:
    """
    ``split``, ``classes`` (``0-169``, ``170-`` for all others, ``3,5`` or names) and ``limit`` are
    those of :class:`SourceSpec`; any other key is an option of the source.

    :param text: what the user wrote
    :param option: where, e.g. ``"--in-domain"``, for messages
    :param limit: take no more samples than that, whatever the source says
    :raises UserError: if it cannot be read
    """
    source, _, query = text.partition("?")
    table: dict[str, Any] = {"source": source, "options": {}}
    for part in filter(None, query.split("&")):
        key, equals, value = part.partition("=")
        if not equals:
            raise UserError(f"{option}: {part!r} must read key=value, e.g. 'split=test'.")
        if key in ("split", "classes", "limit"):
            table[key] = _READ[key](value)
        else:
            table["options"][key] = value_of(value)
    spec = SourceSpec.parse(table, option)
    if limit is None or (spec.limit is not None and spec.limit <= limit):
        return spec
    return spec.model_copy(update={"limit": limit})


def _classes(text: str) -> Any:
    found = re.fullmatch(r"(\d{1,9})-(\d{0,9})", text)
    if not found:
        return [value_of(each) if each.isdigit() else each for each in text.split(",")]
    first, last = int(found[1]), found[2]
    if not last:
        return {"from": first}
    if int(last) < first:
        raise UserError(f"classes={text}: the last class must not be below the first.")
    return {"from": first, "first": int(last) - first + 1}


_READ: dict[str, Callable[[str], Any]] = {"split": str, "classes": _classes, "limit": value_of}
