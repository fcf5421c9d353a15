"""The paper's tables with our figures, and with the paper's own beside them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from dpn_plugin.bench import paper_figures
from dpn_plugin.report.names import metric, slug
from dpn_plugin.report.paper.grid import Grid, Layout
from dpn_plugin.report.paper.layout import TASKS, layouts
from dpn_plugin.report.results import Results, Scope
from dpn_plugin.report.tables import Cell, describe_seeds, mark_best

_KEYS = ("paper_task", "table", "dataset", "method", "detector", "metric")
Identity = tuple[str, ...]
Place = tuple[int, int]


@dataclass(frozen=True)
class PaperCell:
    """
    A figure of the paper and ours.

    :param ours: missing if there are no results
    :param paper: as the paper prints it
    """

    ours: Cell | None
    paper: Cell


@dataclass(frozen=True)
class FilledGrid:
    """A part of a table; a cell that is ``None`` is empty in the paper, too."""

    layout: Grid
    cells: tuple[tuple[PaperCell | None, ...], ...]


@dataclass(frozen=True)
class PaperTable:
    """
    A table of the paper for one backbone.

    :param key: name of its files
    :param layout: which table, and what stands where
    :param backbone: of the networks
    :param grids: its parts
    :param note: unit, number of seeds, and what has no results
    """

    key: str
    layout: Layout
    backbone: str
    grids: tuple[FilledGrid, ...]
    note: str


def paper_tables(results: Results) -> list[PaperTable]:
    """
    Return the tables of the paper that have figures of the suites in the results.

    Suites of one backbone share their tables: C10, C100 and TIM side by side.
    """
    tables = []
    for backbone, suites in _shared(results):
        prefix = slug(*suites.values(), backbone)
        found = _figures(results, backbone, suites)
        for layout in layouts(suites):
            tables.append(_table(layout, prefix, backbone, found))
    return tables


def _shared(results: Results) -> Iterator[tuple[str, dict[str, str]]]:
    """Return backbones with their suites by task; a second suite of a task starts anew."""
    groups: list[tuple[str, dict[str, str]]] = []
    for scope in _compared(results):
        task = results.paper_tasks[scope.suite]
        open_groups = (own for name, own in groups if name == scope.backbone and task not in own)
        group = next(open_groups, None)
        if group is None:
            groups.append((scope.backbone, {task: scope.suite}))
        else:
            group[task] = scope.suite
    for backbone, suites in groups:
        yield backbone, {task: suites[task] for task in TASKS if task in suites}


def _compared(results: Results) -> list[Scope]:
    """Return the scopes that have figures of the paper."""
    comparison = results.comparison
    if comparison.empty:
        return []
    pairs = set(zip(comparison["suite"], comparison["backbone"], strict=True))
    return [scope for scope in results.scopes() if (scope.suite, scope.backbone) in pairs]


def _figures(results: Results, backbone: str, suites: dict[str, str]) -> dict[Identity, PaperCell]:
    """Return the figures of the paper and ours by what identifies them."""
    found: dict[Identity, PaperCell] = {}
    for task, suite in suites.items():
        table = results.comparison
        own = table[table["suite"].eq(suite) & table["backbone"].eq(backbone)]
        ours = {_identity({**row, "paper_task": task}): row for row in own.to_dict("records")}
        for row in paper_figures(task).to_dict("records"):
            key = _identity({**row, "paper_task": task})
            found[key] = _cell(row, ours.get(key))
    return found


def _identity(row: Mapping[Any, Any]) -> Identity:
    # of the best detector, ours is known by its name and the paper's is not
    unknown = {"detector": ""} if row["table"] == "ablation_binary" else {}
    return tuple({**row, **unknown}.get(key, "") for key in _KEYS)


def _cell(paper: Mapping[Any, Any], ours: Mapping[Any, Any] | None) -> PaperCell:
    printed = replace(metric(paper["metric"]), decimals=1)  # as in the paper
    own = ours and Cell(ours["mean"], ours["std"], int(ours["n"]), printed)
    return PaperCell(own or None, Cell(paper["paper_mean"], paper["paper_std"], 0, printed))


def _table(
    layout: Layout, prefix: str, backbone: str, figures: dict[Identity, PaperCell]
) -> PaperTable:
    grids = tuple(_fill(grid, figures) for grid in layout.grids)
    key = f"{prefix}-table-{layout.number:02}-{layout.name}"
    return PaperTable(key, layout, backbone, grids, _note(grids))


def _fill(grid: Grid, figures: dict[Identity, PaperCell]) -> FilledGrid:
    places: dict[Place, PaperCell] = {}
    contests: dict[tuple[str, str], dict[Place, Cell]] = {}
    for i, row in enumerate(grid.rows):
        for j, column in enumerate(grid.columns):
            cell = figures.get(_identity({**grid.keys, **row.keys, **column.keys}))
            if cell is None:
                continue
            places[i, j] = cell
            if cell.ours is not None:
                contests.setdefault((row.contest, column.contest), {})[i, j] = cell.ours
    for competitors in contests.values():
        for place, marked in mark_best(competitors).items():
            places[place] = replace(places[place], ours=marked)
    width, height = range(len(grid.columns)), range(len(grid.rows))
    return FilledGrid(grid, tuple(tuple(places.get((i, j)) for j in width) for i in height))


def _note(grids: tuple[FilledGrid, ...]) -> str:
    cells = [cell for grid in grids for row in grid.cells for cell in row if cell]
    counts = pd.Series([cell.ours.n for cell in cells if cell.ours], dtype=int)
    unit = "Per cent" if cells[0].paper.metric.percent else "As measured"
    seeds = f"{unit}; {describe_seeds(counts)}." if len(counts) else ""
    missing = sum(cell.ours is None for cell in cells)
    lacking = f"{missing} of {len(cells)} figures have no results." if missing else ""
    return " ".join(filter(None, [seeds, lacking]))


def figure_rows(table: PaperTable) -> pd.DataFrame:
    """
    Return a row per figure: where it stands, ours, and the paper's, as printed in the paper's unit.

    :param table: what :func:`paper_tables` returned
    """
    rows = [
        {
            "part": grid.layout.title,
            "row": " ".join(line.heads),
            "column": " ".join(filter(None, column.heads)),
            **_values(cell),
        }
        for grid in table.grids
        for line, cells in zip(grid.layout.rows, grid.cells, strict=True)
        for column, cell in zip(grid.layout.columns, cells, strict=True)
        if cell is not None
    ]
    return pd.DataFrame(rows)


def _values(cell: PaperCell) -> dict[str, float]:
    scale = 100 if cell.paper.metric.percent else 1
    ours = cell.ours or Cell(float("nan"), float("nan"), 0, cell.paper.metric)
    return {
        "mean": scale * ours.mean,
        "std": scale * ours.std,
        "n": ours.n,
        "best": ours.best,
        "paper_mean": round(scale * cell.paper.mean, 1),
        "paper_std": round(scale * cell.paper.std, 1),
    }
