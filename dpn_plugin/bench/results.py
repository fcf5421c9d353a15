"""The files that a benchmark leaves for people and programs."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from dpn_plugin.files import write_text
from dpn_plugin.metrics import RESULT_COLUMNS, over_seeds

__all__ = ["leaderboard", "results_table", "write_table"]


def results_table(suite: str, evaluations: Iterable[dict[str, Any]]) -> pd.DataFrame:
    """
    :param suite: its name
    :param evaluations: contents of ``evaluation.json``
    :return: one figure a row, in the columns of ``results.csv``
    """
    rows = []
    for evaluation in evaluations:
        key = {"suite": suite, **{k: evaluation[k] for k in ("backbone", "method", "seed")}}
        found = [*evaluation["general"]]
        for detector in evaluation["detectors"].values():
            found += detector["rows"]
        rows += [{**key, **row} for row in found]
    return pd.DataFrame(rows, columns=list(RESULT_COLUMNS))


def leaderboard(results: pd.DataFrame) -> pd.DataFrame:
    """
    :param results: figures with the columns of ``results.csv``
    :return: one row per backbone, method and detector with OpenOOD's columns, in percent: near and
        far AUROC, FPR95 and AUPR as means over seeds, and the accuracy; best far AUROC first
    """
    means = over_seeds(results)
    keys = ["backbone", "method", "detector"]
    groups = means[(means["task"] == "ood") & means["dataset"].isin(["near", "far"])]
    columns = {
        ("near", "auroc"): "Near-OOD AUROC",
        ("far", "auroc"): "Far-OOD AUROC",
        ("near", "fpr95"): "Near-OOD FPR@95",
        ("far", "fpr95"): "Far-OOD FPR@95",
        ("near", "aupr_in"): "Near-OOD AUPR_IN",
        ("far", "aupr_in"): "Far-OOD AUPR_IN",
        ("near", "aupr_out"): "Near-OOD AUPR_OUT",
        ("far", "aupr_out"): "Far-OOD AUPR_OUT",
    }
    wide = groups.pivot_table(index=keys, columns=["dataset", "metric"], values="mean")
    table = pd.DataFrame(index=wide.index)
    for column, title in columns.items():
        table[title] = 100 * wide[column] if column in wide else float("nan")
    table = table.reset_index()
    accuracy = means[means["metric"] == "accuracy"][["backbone", "method", "mean", "n"]]
    accuracy = accuracy.rename(columns={"mean": "ID ACC", "n": "Seeds"})
    accuracy["ID ACC"] *= 100
    table = table.merge(accuracy, on=["backbone", "method"], how="left")
    order = [c for c in ("Far-OOD AUROC", "Near-OOD AUROC") if table[c].notna().any()]
    return table.sort_values(order, ascending=False, kind="stable") if order else table


def write_table(path: Path, table: pd.DataFrame) -> None:
    """Write a table as CSV, whole or not at all; not if the file holds it already."""
    text = table.to_csv(index=False, lineterminator="\n")
    if not path.exists() or path.read_bytes() != text.encode():
        write_text(path, text)
