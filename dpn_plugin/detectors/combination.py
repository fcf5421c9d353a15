"""Detectors that are combined by name: ``fisher(dpn-mi,knn)``."""

import re
from dataclasses import dataclass

from dpn_plugin.errors import UserError, unknown_name
from dpn_plugin.plugins import registry

#: the ways to combine detectors
COMBINATIONS = ("fisher",)


@dataclass(frozen=True)
class Combination:
    """
    Several detectors that give one score.

    :param kind: how they are combined, a name of :data:`COMBINATIONS`
    :param members: names of the detectors
    """

    kind: str
    members: tuple[str, ...]

    @property
    def name(self) -> str:
        """What it is called in results, e.g. ``fisher(dpn-mi,knn)``."""
        return f"{self.kind}({','.join(self.members)})"


def parse_combination(text: str) -> Combination | None:
    """
    Return the combination that a text names, ``None`` if it is the name of a single detector.

    :param text: e.g. ``fisher(dpn-mi, knn)``; members are names, aliases or wildcards
    :raises UserError: if there is no such combination or member, with the nearest names, or if
        there are fewer than two members
    """
    if "(" not in text:
        return None
    found = re.fullmatch(r"\s*([\w-]+)\s*\(([^()]*)\)\s*", text)
    if found is None:
        raise UserError(f"{text!r} is not a combination of detectors such as 'fisher(dpn-mi,knn)'.")
    kind = found[1].lower()
    if kind not in COMBINATIONS:
        raise unknown_name("combination of detectors", found[1], COMBINATIONS)
    members: dict[str, None] = {}
    for name in filter(None, map(str.strip, found[2].split(","))):
        members |= dict.fromkeys(_member_names(name))
    if len(members) < 2:
        raise UserError(f"{text!r} needs at least two detectors to combine.")
    return Combination(kind, tuple(members))


def _member_names(pattern: str) -> list[str]:
    if not any(mark in pattern for mark in "*?["):
        return [registry.find("detectors", pattern).name]
    matching = registry.list_detectors(pattern)
    if not matching:
        raise UserError(f"No detector matches {pattern!r}.")
    return matching
