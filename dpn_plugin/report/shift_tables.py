"""Tables of covariate shift: accuracy and calibration over severity, and rejection by detector."""

from collections.abc import Iterator

import pandas as pd

from dpn_plugin.data import split_severity
from dpn_plugin.report.names import metric, slug, task_title
from dpn_plugin.report.results import Results, Scope
from dpn_plugin.report.tables import Block, Cell, Table, describe_seeds, mark_best

_TASK = "shift"
#: metrics with severities in the columns, and their name on in-domain data
_OVER_SEVERITY = {
    "accuracy": ("classification", "accuracy"),
    "ece": ("calibration", "in_domain_ece"),
    "rms_error": ("calibration", "in_domain_rms_error"),
}
_REJECTED = "rejected95"


def shift_tables(results: Results) -> list[Table]:
    """Return the tables of every backbone on every suite that has shifted sets."""
    return [table for scope in results.scopes() for table in _tables(results, scope)]


def _tables(results: Results, scope: Scope) -> Iterator[Table]:
    sets, rows = results.shifted_sets(scope.suite), results.rows(scope)
    if not sets:
        return
    for name in _OVER_SEVERITY:
        yield _severity_table(scope, name, rows, sets)
    rejected = rows[rows["task"].eq(_TASK) & rows["metric"].eq(_REJECTED)]
    if len(rejected):
        yield _rejection_table(scope, rejected, sets)


def _severity_table(scope: Scope, name: str, rows: pd.DataFrame, sets: list[str]) -> Table:
    """Return one block per shift, with the in-domain test data and the severities as columns."""
    severities = sorted({s for _, s in map(split_severity, sets) if s is not None})
    shifts = list(dict.fromkeys(split_severity(each)[0] for each in sets))
    task, own = _OVER_SEVERITY[name]
    clean = _cells(rows[rows["task"].eq(task) & rows["metric"].eq(own) & rows["dataset"].eq("")])
    shown = rows[rows["task"].eq(_TASK) & rows["metric"].eq(name)]
    blocks = []
    for shift in [*([_TASK] if len(shifts) > 1 else []), *shifts]:
        names = [f"{shift}@{severity}" for severity in severities]
        columns = [clean, *(_cells(shown[shown["dataset"].eq(each)]) for each in (*names, shift))]
        blocks.append(Block("All shifts (mean)" if shift == _TASK else shift, _rows(columns)))
    heads = ("In-domain", *(f"Severity {each}" for each in severities), "Mean")
    direction = "higher" if metric(name).larger_is_better else "lower"
    return Table(
        slug(scope.suite, scope.backbone, _TASK, name),
        scope,
        _TASK,
        f"{task_title(_TASK)}: {metric(name).title}",
        heads,
        tuple(blocks),
        f"Per cent, {direction} is better; {describe_seeds(shown['n'])}.",
    )


def _rejection_table(scope: Scope, rows: pd.DataFrame, sets: list[str]) -> Table:
    """Return one block per set and mean, with the detectors as columns."""
    detectors = list(dict.fromkeys(rows["detector"]))
    shifts = [name for name in map(_shift_of, sets) if name is not None]
    titles = {"": "In-domain", _TASK: "All shifts (mean)"}
    titles |= {name: f"{name} (mean)" for name in shifts}
    blocks = []
    for name, title in {**titles, **{each: each for each in sets}}.items():
        own = rows[rows["dataset"].eq(name)]
        columns = [_cells(own[own["detector"].eq(each)]) for each in detectors]
        blocks.append(Block(title, _rows(columns, mark=name != "")))
    return Table(
        slug(scope.suite, scope.backbone, _TASK, _REJECTED),
        scope,
        _TASK,
        f"{task_title(_TASK)}: {metric(_REJECTED).title}",
        tuple(detectors),
        tuple(blocks),
        "Share of samples that the threshold rejects which accepts 95 % of the in-domain test "
        f"samples. Per cent, lower is better; {describe_seeds(rows['n'])}.",
    )


def _shift_of(name: str) -> str | None:
    shift, severity = split_severity(name)
    return None if severity is None else shift


def _cells(rows: pd.DataFrame) -> dict[str, Cell]:
    """Return the cells of a column by method."""
    return {
        row["method"]: Cell(row["mean"], row["std"], int(row["n"]), metric(row["metric"]))
        for row in rows.to_dict("records")
    }


def _rows(columns: list[dict[str, Cell]], mark: bool = True) -> dict[str, tuple[Cell | None, ...]]:
    """Return the rows of a block by method; the best of every column is marked."""
    marked = [mark_best(column) for column in columns] if mark else columns
    methods = dict.fromkeys(name for column in columns for name in column)
    return {name: tuple(column.get(name) for column in marked) for name in methods}
