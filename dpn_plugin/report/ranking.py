"""The ranking of methods and detectors: the leaderboard, and the headline of each group of sets."""

import math
from dataclasses import dataclass

import pandas as pd

from dpn_plugin.report.names import MAX_P, dataset_title, metric
from dpn_plugin.report.results import Results
from dpn_plugin.report.tables import Cell

#: the metrics in the columns of the leaderboard
LEADERBOARD_METRICS = ("auroc", "aupr_out", "aupr_in", "fpr95")
_IDENTITY = ["suite", "backbone", "method", "detector", "dataset"]


@dataclass(frozen=True)
class LeaderboardRow:
    """
    A row of the leaderboard.

    :param dataset: an OOD set, or ``"near"`` or ``"far"``
    :param dataset_title: its title; that of its one set for a group that has no other
    :param cells: follow :data:`LEADERBOARD_METRICS`
    """

    suite: str
    backbone: str
    method: str
    detector: str
    dataset: str
    dataset_title: str
    cells: tuple[Cell | None, ...]

    @property
    def seeds(self) -> int:
        """The largest number of seeds of a cell."""
        return max((cell.n for cell in self.cells if cell is not None), default=0)


@dataclass(frozen=True)
class Candidate:
    """A method with a detector on a backbone, and its AUROC as a fraction."""

    backbone: str
    method: str
    detector: str
    mean: float
    std: float
    n: int


@dataclass(frozen=True)
class Lead:
    """
    The lead of the winner over another candidate.

    :param over: the other candidate
    :param points: the difference in points of AUROC
    """

    over: Candidate
    points: float


@dataclass(frozen=True)
class Headline:
    """
    The winner on one group of OOD sets of a suite.

    :param suite: name of the suite
    :param group: ``"near"`` or ``"far"``
    :param sets: the OOD sets of the group
    :param winner: the candidate with the highest mean AUROC
    :param pairs: the number of candidates, among which it was chosen on the test data
    :param runner_up: the lead over the best of the other methods on the winner's backbone
    :param baseline: the lead over Max.P of the baseline on the winner's backbone
    """

    suite: str
    group: str
    sets: tuple[str, ...]
    winner: Candidate
    pairs: int
    runner_up: Lead | None
    baseline: Lead | None


def leaderboard_rows(results: Results) -> list[LeaderboardRow]:
    """
    Return all rows of OOD detection, the highest AUROC first.

    A group of one set has one row, not one for the set and an equal one for the mean.
    """
    rows = results.summary[results.summary["task"].eq("ood")]
    rows = _without_single_sets(rows, results)
    titles = {suite: _group_titles(results.sets(suite)) for suite in results.suites}
    found = []
    for identity, group in rows.groupby(_IDENTITY, sort=False):
        cells = {
            row["metric"]: Cell(row["mean"], row["std"], int(row["n"]), metric(row["metric"]))
            for row in group.to_dict("records")
        }
        names = dict(zip(_IDENTITY, map(str, identity), strict=True))
        shown = tuple(cells.get(name) for name in LEADERBOARD_METRICS)
        title = titles.get(names["suite"], {}).get(names["dataset"], names["dataset"])
        found.append(LeaderboardRow(**names, dataset_title=title, cells=shown))
    return sorted(found, key=_sort_key)


def headlines(results: Results) -> list[Headline]:
    """Return one headline for each suite and group that has results."""
    found = []
    for suite in results.suites:
        for group, sets in results.sets(suite).items():
            candidates = _candidates(results.summary, suite, group)
            if candidates:
                found.append(_headline(suite, group, tuple(sets), candidates))
    return found


def _without_single_sets(rows: pd.DataFrame, results: Results) -> pd.DataFrame:
    """Return the rows without those of a set that is alone in its group, which has the same."""
    keys = [name for name in _IDENTITY if name != "dataset"]
    for suite in results.suites:
        sets = results.sets(suite)
        for group, names in sets.items():
            if len(names) == 1 and names[0] not in sets:
                own = rows["suite"].eq(suite)
                means = pd.MultiIndex.from_frame(rows[own & rows["dataset"].eq(group)][keys])
                repeated = pd.MultiIndex.from_frame(rows[keys]).isin(means)
                rows = rows[~(own & rows["dataset"].eq(names[0]) & repeated)]
    return rows


def _group_titles(sets: dict[str, list[str]]) -> dict[str, str]:
    return {
        group: f"{names[0]} ({group})" if len(names) == 1 else dataset_title(group)
        for group, names in sets.items()
    }


def _sort_key(row: LeaderboardRow) -> float:
    auroc = row.cells[0]
    # NaN does not sort
    return 1.0 if auroc is None or math.isnan(auroc.mean) else -auroc.mean


def _candidates(summary: pd.DataFrame, suite: str, group: str) -> list[Candidate]:
    chosen = summary[
        summary["suite"].eq(suite)
        & summary["task"].eq("ood")
        & summary["metric"].eq("auroc")
        & summary["dataset"].eq(group)
        & summary["mean"].notna()
    ]
    # a single good seed must not beat the mean of three
    chosen = chosen[chosen["n"].eq(chosen["n"].max())]
    names = ["backbone", "method", "detector", "mean", "std", "n"]
    return [Candidate(*row) for row in chosen[names].itertuples(index=False)]


def _headline(
    suite: str, group: str, sets: tuple[str, ...], candidates: list[Candidate]
) -> Headline:
    winner = max(candidates, key=lambda each: each.mean)
    beside = [each for each in candidates if each.backbone == winner.backbone]
    others = [each for each in beside if each.method != winner.method]
    runner_up = max(others, key=lambda each: each.mean, default=None)
    leads = _lead(winner, runner_up), _lead(winner, _baseline(beside))
    return Headline(suite, group, sets, winner, len(candidates), *leads)


def _baseline(candidates: list[Candidate]) -> Candidate | None:
    by_detector = {each.detector: each for each in candidates if each.method == "baseline"}
    return next((by_detector[name] for name in MAX_P if name in by_detector), None)


def _lead(winner: Candidate, other: Candidate | None) -> Lead | None:
    if other is None or other == winner:
        return None
    return Lead(other, 100 * (winner.mean - other.mean))
