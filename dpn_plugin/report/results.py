"""Read the folders of one or several benchmarks as one set of results."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from dpn_plugin.bench import BenchRecord, compare_with_paper, read_bench_record
from dpn_plugin.errors import UserError
from dpn_plugin.metrics import RESULT_COLUMNS, over_seeds


@dataclass(frozen=True)
class Scope:
    """The suite and the backbone that a table or figure is about."""

    suite: str
    backbone: str


@dataclass(frozen=True)
class Results:
    """
    The joined results of one or several benchmarks.

    :param folders: the benchmarks
    :param records: the ``bench.json`` of each
    :param summary: one row per value, with mean, standard deviation and number of seeds
    :param comparison: the paper's values beside ours; empty where there are none
    """

    folders: tuple[Path, ...]
    records: tuple[BenchRecord, ...]
    summary: pd.DataFrame
    comparison: pd.DataFrame

    @property
    def suites(self) -> list[str]:
        """The names of the suites, in order of appearance."""
        return list(dict.fromkeys(record.suite for record in self.records))

    @property
    def paper_tasks(self) -> dict[str, str]:
        """The paper's names of the tasks, by suite, for the suites of the paper."""
        return _paper_tasks(self.records)

    def scopes(self) -> Iterator[Scope]:
        """Return every pair of suite and backbone that has results."""
        pairs = self.summary[["suite", "backbone"]].drop_duplicates()
        return (Scope(*pair) for pair in pairs.itertuples(index=False))

    def rows(self, scope: Scope) -> pd.DataFrame:
        """Return the rows of the summary for one backbone on one suite."""
        chosen = self.summary["suite"].eq(scope.suite)
        return self.summary[chosen & self.summary["backbone"].eq(scope.backbone)]

    def sets(self, suite: str) -> dict[str, list[str]]:
        """Return the names of the OOD sets of a suite, by ``"near"`` and ``"far"``."""
        records = [record for record in self.records if record.suite == suite]
        return {
            group: list(dict.fromkeys(name for each in records for name in each.set_names(group)))
            for group in ("near", "far")
        }

    def shifted_sets(self, suite: str) -> list[str]:
        """Return the names of the shifted sets of a suite."""
        records = [record for record in self.records if record.suite == suite]
        return list(dict.fromkeys(name for each in records for name in each.shift))

    def suite_folders(self, suite: str) -> list[Path]:
        """Return the folders of the benchmarks of a suite."""
        both = zip(self.folders, self.records, strict=True)
        return [folder for folder, record in both if record.suite == suite]


def load_results(folders: Iterable[str | Path]) -> Results:
    """
    Return the joined results of several benchmarks.

    :param folders: what ``dpn bench`` wrote, of one or several backbones, suites or machines
    :raises UserError: if a folder holds no results, they are damaged or of another format, or two
        folders have different values for the same thing
    """
    paths = tuple(dict.fromkeys(Path(folder) for folder in folders))
    if not paths:
        raise UserError("folders must name at least one folder that dpn bench wrote.")
    records = tuple(read_bench_record(path) for path in paths)
    # a row that is the same in two folders counts once
    joined = pd.concat([_read_results(path) for path in paths]).drop_duplicates()
    summary = _summary(joined, paths)
    return Results(paths, records, summary, _comparison(summary, records))


def _summary(joined: pd.DataFrame, paths: tuple[Path, ...]) -> pd.DataFrame:
    try:
        return over_seeds(joined)
    except UserError as error:
        named = " and ".join(str(path) for path in paths)
        raise UserError(f"{named} cannot be one report. {error}") from error


def _read_results(folder: Path) -> pd.DataFrame:
    path = folder / "results.csv"
    table = _read_csv(path, RESULT_COLUMNS)
    if table.empty:
        raise UserError(f"{path} holds no figures: nothing has been measured yet.")
    return table


def _paper_tasks(records: tuple[BenchRecord, ...]) -> dict[str, str]:
    return {record.suite: record.paper_task for record in records if record.paper_task}


def _comparison(summary: pd.DataFrame, records: tuple[BenchRecord, ...]) -> pd.DataFrame:
    found = [
        compare_with_paper(summary[summary["suite"].eq(suite)], task).assign(suite=suite)
        for suite, task in _paper_tasks(records).items()
    ]
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame()


def _read_csv(path: Path, columns: tuple[str, ...]) -> pd.DataFrame:
    try:
        # as text first: a set may be called "NA", and only empty cells are missing values
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
    except FileNotFoundError:
        raise UserError(f"{path.parent} holds no results: it has no {path.name}.") from None
    except pd.errors.EmptyDataError:
        raise UserError(f"{path} is empty.") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read: {error}.") from error
    missing = [column for column in columns if column not in table]
    if missing:
        raise UserError(f"{path} lacks the columns {', '.join(missing)}.")
    return table.assign(value=_numbers(path, table["value"]))


def _numbers(path: Path, column: pd.Series) -> pd.Series:
    try:
        return pd.to_numeric(column.replace("", None)).astype(float)
    except (ValueError, TypeError):
        raise UserError(
            f"{path} is damaged: {column.name} has a value that is no number."
        ) from None
