"""Tables in the paper's layout: a row per method, a column per measure, a block per OOD set."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import pandas as pd

from dpn_plugin.report.load import Results, Subject
from dpn_plugin.report.names import Metric, dataset_title, metric, slug, task_title

__all__ = ["Block", "Cell", "Table", "result_tables"]

#: tasks with a table per metric, whose columns are detectors
_BY_DETECTOR = ("ood", "misclassification")
#: tasks with one table, whose columns are metrics
_BY_METRIC = ("classification", "calibration", "gap")


@dataclass(frozen=True)
class Cell:
    """
    One figure.

    :param mean: over seeds; NaN where there is none
    :param std: sample standard deviation, NaN for a single seed
    :param n: the number of seeds
    :param metric: what it measures, and how it is printed
    :param best: whether nothing it is compared with prints better
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
        """The standard deviation as printed, or nothing."""
        return "" if math.isnan(self.std) else self.metric.text(self.std)


@dataclass(frozen=True)
class Block:
    """Rows under one heading: the methods, by name, on one data set."""

    title: str
    rows: dict[str, tuple[Cell | None, ...]]


@dataclass(frozen=True)
class Table:
    """
    :param key: name of its file and anchor
    :param subject: which backbone on which suite
    :param task: as in ``results.csv``
    :param title: what it shows
    :param columns: the heads of the columns after the method
    :param blocks: one per data set; a single one without title where there are no sets
    :param note: what a reader must know
    """

    key: str
    subject: Subject
    task: str
    title: str
    columns: tuple[str, ...]
    blocks: tuple[Block, ...]
    note: str


def result_tables(results: Results) -> list[Table]:
    """:return: all tables of every backbone on every suite"""
    return [table for subject in results.subjects() for table in _tables(results, subject)]


def _tables(results: Results, subject: Subject) -> Iterator[Table]:
    titles = _block_titles(results.sets(subject.suite))
    rows = results.of(subject)
    # the error on in-domain data alone is a block of its own, not other columns
    rows = rows.assign(metric=rows["metric"].str.removeprefix("in_domain_"))
    rows = rows[rows["dataset"].isin(titles)]
    for task in _BY_DETECTOR:
        for name, chosen in rows[rows["task"].eq(task)].groupby("metric", sort=False):
            yield _table(subject, task, (str(name),), chosen, titles, "detector")
    for task in _BY_METRIC:
        chosen = rows[rows["task"].eq(task)]
        if len(chosen):
            metrics = tuple(dict.fromkeys(chosen["metric"]))
            yield _table(subject, task, metrics, chosen, titles, "metric")


def _block_titles(sets: dict[str, list[str]]) -> dict[str, str]:
    """:return: the data sets in the order of their blocks; a group of one set has no mean"""
    titles = {"": dataset_title("")}
    for group, names in sets.items():
        if len(names) > 1:
            titles[group] = dataset_title(group)
        titles |= {name: f"{name} ({group})" for name in names}
    return titles


def _table(
    subject: Subject,
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
        slug(subject.suite, subject.backbone, task, metrics[0] if shown else ""),
        subject,
        task,
        f"{task_title(task)}: {shown}" if shown else task_title(task),
        tuple(heads),
        tuple(blocks),
        _note(metrics, rows),
    )


def _block(rows: pd.DataFrame, title: str, columns: list[str], across: str) -> Block:
    cells: dict[str, dict[str, Cell]] = {}
    for row in rows.to_dict("records"):
        cell = Cell(row["mean"], row["std"], int(row["n"]), metric(row["metric"]))
        cells.setdefault(row["method"], {})[row[across]] = cell
    # detectors compete with each other, metrics only within their column
    fields = [columns] if across == "detector" else [[column] for column in columns]
    for field in fields:
        _mark_best(cells, field)
    shown = {name: tuple(own.get(column) for column in columns) for name, own in cells.items()}
    return Block(title, shown)


def _mark_best(cells: dict[str, dict[str, Cell]], columns: list[str]) -> None:
    places = [
        (method, column)
        for method, own in cells.items()
        for column in columns
        if column in own and not math.isnan(own[column].mean)
    ]
    if len(places) < 2:
        return
    best = _best([cells[method][column] for method, column in places])
    for method, column in places:
        cell = cells[method][column]
        # what prints alike is equally good
        cells[method][column] = replace(cell, best=cell.text == best.text)


def _best(cells: Iterable[Cell]) -> Cell:
    return max(cells, key=lambda c: c.mean if c.metric.larger_is_better else -c.mean)


def _note(metrics: tuple[str, ...], rows: pd.DataFrame) -> str:
    known = [metric(name) for name in metrics]
    unit = "Per cent" if all(each.percent for each in known) else "As measured"
    lower = not any(each.larger_is_better for each in known)
    return f"{unit}, {'lower' if lower else 'higher'} is better; {_seeds(rows['n'])}."


def _seeds(counts: pd.Series) -> str:
    low, high = int(counts.min()), int(counts.max())
    if high <= 1:
        return "one seed, so no ±"
    over = f"{high} seeds" if low == high else f"{max(low, 1)} to {high} seeds"
    return f"mean ± standard deviation over {over}"
