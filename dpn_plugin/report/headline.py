"""Who won, by how much, over how many seeds."""

import math
from dataclasses import dataclass

import pandas as pd

from dpn_plugin.report.load import Results

__all__ = ["Entrant", "Headline", "Rival", "headlines"]

#: Max.P by its names, in the order of preference
_MAX_P = ("dpn-maxp", "max-softmax", "msp")


@dataclass(frozen=True)
class Entrant:
    """A method with a detector on a backbone, and its AUROC as a fraction."""

    backbone: str
    method: str
    detector: str
    mean: float
    std: float
    n: int


@dataclass(frozen=True)
class Rival:
    """
    Whom the winner is compared with.

    :param entrant: the rival
    :param margin: by how many points of AUROC the winner is ahead
    :param within_spread: whether that is less than the standard deviation of the difference
    """

    entrant: Entrant
    margin: float
    within_spread: bool


@dataclass(frozen=True)
class Headline:
    """
    :param suite: whose outcome it is
    :param group: ``"near"`` or ``"far"``
    :param sets: the OOD sets of the group
    :param winner: the highest mean AUROC
    :param runner_up: the best of the other methods on the winner's backbone
    :param baseline: Max.P of the baseline on the winner's backbone
    """

    suite: str
    group: str
    sets: tuple[str, ...]
    winner: Entrant
    runner_up: Rival | None
    baseline: Rival | None


def headlines(results: Results) -> list[Headline]:
    """:return: one for each suite and group that has figures"""
    found = []
    for suite in results.suites:
        for group, sets in results.sets(suite).items():
            entrants = _entrants(results.summary, suite, group)
            if entrants:
                found.append(_headline(suite, group, tuple(sets), entrants))
    return found


def _entrants(summary: pd.DataFrame, suite: str, group: str) -> list[Entrant]:
    chosen = summary[
        summary["suite"].eq(suite)
        & summary["task"].eq("ood")
        & summary["metric"].eq("auroc")
        & summary["dataset"].eq(group)
        & summary["mean"].notna()
    ]
    # one lucky seed must not beat the mean of three
    chosen = chosen[chosen["n"].eq(chosen["n"].max())]
    names = ["backbone", "method", "detector", "mean", "std", "n"]
    return [Entrant(*row) for row in chosen[names].itertuples(index=False)]


def _headline(suite: str, group: str, sets: tuple[str, ...], entrants: list[Entrant]) -> Headline:
    winner = max(entrants, key=lambda each: each.mean)
    beside = [each for each in entrants if each.backbone == winner.backbone]
    others = [each for each in beside if each.method != winner.method]
    runner_up = max(others, key=lambda each: each.mean, default=None)
    return Headline(
        suite, group, sets, winner, _rival(winner, runner_up), _rival(winner, _baseline(beside))
    )


def _baseline(entrants: list[Entrant]) -> Entrant | None:
    by_detector = {each.detector: each for each in entrants if each.method == "baseline"}
    return next((by_detector[name] for name in _MAX_P if name in by_detector), None)


def _rival(winner: Entrant, other: Entrant | None) -> Rival | None:
    if other is None or other == winner:
        return None
    margin = winner.mean - other.mean
    # NaN for a single seed, which is no evidence of a spread
    return Rival(other, 100 * margin, margin < math.hypot(winner.std, other.std))
