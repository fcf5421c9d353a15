"""Mean and standard deviation of figures over seeds."""

import pandas as pd

from dpn_plugin.errors import UserError

#: The columns of ``results.csv``, one figure a row.
RESULT_COLUMNS = (
    "suite",
    "backbone",
    "method",
    "seed",
    "task",
    "detector",
    "dataset",
    "metric",
    "value",
)


def over_seeds(results: pd.DataFrame) -> pd.DataFrame:
    """
    Return mean, standard deviation and number of the figures over seeds.

    There is one row per combination of all columns but ``seed`` and ``value``, in order of first
    appearance, with ``mean``, ``std`` (sample standard deviation, NaN for a single seed) and ``n``,
    the number of seeds that have a figure. Missing figures (NaN) are ignored.

    :param results: figures with the columns :data:`RESULT_COLUMNS`
    :raises UserError: if a column is missing or a seed has two figures for the same thing
    """
    missing = [column for column in RESULT_COLUMNS if column not in results]
    if missing:
        raise UserError(f"The results lack the columns {', '.join(missing)}.")
    _refuse_repeated(results)
    groups = [column for column in RESULT_COLUMNS if column not in ("seed", "value")]
    # rows without a detector, such as accuracy, are groups too
    grouped = results.groupby(groups, sort=False, dropna=False)["value"]
    return grouped.agg(mean="mean", std="std", n="count").reset_index()


def _refuse_repeated(results: pd.DataFrame) -> None:
    identity = [column for column in RESULT_COLUMNS if column != "value"]
    repeated = results[results.duplicated(identity)]
    if len(repeated):
        first = ", ".join(f"{column}={repeated.iloc[0][column]}" for column in identity)
        raise UserError(f"The results hold two figures for {first}.")
