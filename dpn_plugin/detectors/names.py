"""The names of detectors that a pattern stands for."""

from collections.abc import Sequence

from dpn_plugin.detectors.combination import parse_combination
from dpn_plugin.errors import UserError
from dpn_plugin.plugins import registry


def find_detectors(patterns: Sequence[str]) -> tuple[str, ...]:
    """
    Return the full names of detectors.

    :param patterns: names, wildcards, combinations such as ``"fisher(dpn-mi,knn)"``, or ``"all"``
    :raises UserError: if a name is unknown, or a pattern matches nothing
    """
    names: dict[str, None] = {}
    for pattern in patterns:
        combination = parse_combination(pattern)
        if combination is not None:
            names[combination.name] = None
        elif pattern == "all":
            names |= dict.fromkeys(registry.list_detectors())
        elif any(mark in pattern for mark in "*?["):
            matching = registry.list_detectors(pattern)
            if not matching:
                raise UserError(f"No detector matches {pattern!r}.")
            names |= dict.fromkeys(matching)
        else:
            names[registry.find("detectors", pattern).name] = None
    return tuple(names)
