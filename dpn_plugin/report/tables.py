"""
Tables of results in the paper's layout (a row per method, a column per detector or metric, a block
per OOD set), and the comparison with the paper's own values.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

import pandas as pd

from dpn_plugin.report.names import MINUS, Metric, dataset_title, metric, slug, task_title
from dpn_plugin.report.results import Results, Scope

Key = TypeVar("Key")

#: tasks with a table per metric, whose columns are detectors
_BY_DETECTOR = ("ood", "full_spectrum", "misclassification")
#: tasks with one table, whose columns are metrics
_BY_METRIC = ("classification", "calibration", "gap")


@dataclass(frozen=True)
class Cell:
    """
    One value of a table.

    :param mean: over seeds; NaN if it is missing
    :param std: sample standard deviation, NaN for a single seed
    :param n: the number of seeds
    :param metric: decides how it is printed
    :param best: whether no cell that it is compared with is printed as a better value
    """

    mean: float
    std: float
    n: int
    metric: Metric
    best: bool = False

    @property
    def text(self) -> str:
        """The mean as printed."""
        return self.metric.text(self.mean)

    @property
    def spread(self) -> str:
        """The standard deviation as printed, empty for a single seed."""
        return "" if math.isnan(self.std) else self.metric.text(self.std)


@dataclass(frozen=True)
class Block:
    """The rows of one data set under its title, by method."""

    title: str
    rows: dict[str, tuple[Cell | None, ...]]


@dataclass(frozen=True)
class Table:
    """
    A table of results.

    :param key: name of its file and anchor
    :param scope: the suite and the backbone
    :param task: as in ``results.csv``
    :param title: what it shows
    :param columns: the heads of the columns after the method
    :param blocks: one per data set; a single one without title for a task without sets
    :param note: unit, direction and number of seeds
    """

    key: str
    scope: Scope
    task: str
    title: str
    columns: tuple[str, ...]
    blocks: tuple[Block, ...]
    note: str


@dataclass(frozen=True)
class PaperRow:
    """
    A value of the paper, ours, and ours minus the paper's as printed.

    :param table: of the paper, as ``comparison.csv`` names it
    :param compared: what of ours is compared, where that is not obvious
    """

    table: str
    backbone: str
    method: str
    set: str
    metric: str
    detector: str
    paper: Cell
    ours: Cell
    difference: str
    compared: str


def result_tables(results: Results) -> list[Table]:
    """Return all tables of every backbone on every suite."""
    return [table for scope in results.scopes() for table in _tables(results, scope)]


def paper_rows(results: Results) -> list[PaperRow]:
    """Return every value that the paper has too, in the paper's order."""
    found = []
    for row in results.comparison.to_dict("records"):
        own = metric(row["metric"])
        sign = "+" if row["difference"] >= 0 else MINUS
        found.append(
            PaperRow(
                table=row["table"],
                backbone=row["backbone"],
                method=row["method"],
                set=dataset_title(row["dataset"]),
                metric=own.title,
                detector=row["detector"],
                paper=Cell(row["paper_mean"], row["paper_std"], 0, own),
                ours=Cell(row["mean"], row["std"], int(row["n"]), own),
                difference=f"{sign}{own.text(abs(row['difference']))}",
                compared=row["compared"],
            )
        )
    return found


def _tables(results: Results, scope: Scope) -> Iterator[Table]:
    titles = _block_titles(results.sets(scope.suite))
    rows = results.rows(scope)
    # the error on in-domain data alone is a block of its own, not other columns
    rows = rows.assign(metric=rows["metric"].str.removeprefix("in_domain_"))
    rows = rows[rows["dataset"].isin(titles)]
    for task in _BY_DETECTOR:
        own = rows[rows["task"].eq(task) & rows["detector"].ne("")]
        for name, chosen in own.groupby("metric", sort=False):
            yield _table(scope, task, (str(name),), chosen, titles, "detector")
    for task in _BY_METRIC:
        chosen = rows[rows["task"].eq(task)]
        if len(chosen):
            metrics = tuple(dict.fromkeys(chosen["metric"]))
            yield _table(scope, task, metrics, chosen, titles, "metric")


def _block_titles(sets: dict[str, list[str]]) -> dict[str, str]:
    """Return the titles of the blocks by data set, in order; a group of one set has no mean."""
    titles = {"": dataset_title("")}
    for group, names in sets.items():
        if len(names) > 1:
            titles[group] = dataset_title(group)
        titles |= {name: f"{name} ({group})" for name in names}
    return titles


def _table(
    scope: Scope,
    task: str,
    metrics: tuple[str, ...],
    rows: pd.DataFrame,
    titles: dict[str, str],
    across: str,
) -> Table:
    columns = list(dict.fromkeys(rows[across]))
    present = set(rows["dataset"])
    blocks = [
        _block(rows[rows["dataset"].eq(name)], title if present != {""} else "", columns, across)
        for name, title in titles.items()
        if name in present
    ]
    shown = metric(metrics[0]).title if across == "detector" else ""
    heads = columns if across == "detector" else [metric(name).title for name in columns]
    return Table(
        slug(scope.suite, scope.backbone, task, metrics[0] if shown else ""),
        scope,
        task,
        f"{task_title(task)}: {shown}" if shown else task_title(task),
        tuple(heads),
        tuple(blocks),
        _note(metrics, rows),
    )


def _block(rows: pd.DataFrame, title: str, columns: list[str], across: str) -> Block:
    cells = {
        (row["method"], row[across]): Cell(
            row["mean"], row["std"], int(row["n"]), metric(row["metric"])
        )
        for row in rows.to_dict("records")
    }
    # detectors are compared with each other, metrics only within their column
    groups = [columns] if across == "detector" else [[column] for column in columns]
    for group in groups:
        cells |= mark_best({key: cell for key, cell in cells.items() if key[1] in group})
    methods = dict.fromkeys(method for method, _ in cells)
    shown = {name: tuple(cells.get((name, column)) for column in columns) for name in methods}
    return Block(title, shown)


def mark_best(cells: dict[Key, Cell]) -> dict[Key, Cell]:
    """Return the cells with the best ones marked; a cell without competitors is not the best."""
    compared = {key: cell for key, cell in cells.items() if not math.isnan(cell.mean)}
    if len(compared) < 2:
        return cells
    best = max(compared.values(), key=lambda c: c.mean if c.metric.larger_is_better else -c.mean)
    # values that are printed alike are equally good
    marked = {key: replace(cell, best=cell.text == best.text) for key, cell in compared.items()}
    return {**cells, **marked}


def _note(metrics: tuple[str, ...], rows: pd.DataFrame) -> str:
    known = [metric(name) for name in metrics]
    unit = "Per cent" if all(each.percent for each in known) else "As measured"
    lower = not any(each.larger_is_better for each in known)
    return f"{unit}, {'lower' if lower else 'higher'} is better; {describe_seeds(rows['n'])}."


def describe_seeds(counts: pd.Series) -> str:
    """Return what figures are, given the number of seeds of each."""
    low, high = int(counts.min()), int(counts.max())
    if high <= 1:
        return "one seed, so no ±"
    over = f"{high} seeds" if low == high else f"{max(low, 1)} to {high} seeds"
    return f"mean ± standard deviation over {over}"
