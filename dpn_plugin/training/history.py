"""The course of a training run, as a table and as a picture."""

from pathlib import Path
from typing import Any

import pandas as pd

from dpn_plugin.files import file_hash, replacing

__all__ = ["write_history"]


def write_history(out: Path, networks: dict[str, dict[str, Any]]) -> dict[str, str]:
    """
    Write ``history.csv`` and ``curves.png``.

    :param out: the run's folder
    :param networks: for each network its ``history``, a list of rows
    :return: the SHA-256 of both files
    """
    rows = [
        {"network": name, **row} for name, entry in networks.items() for row in entry["history"]
    ]
    table = pd.DataFrame(rows)
    with replacing(out / "history.csv") as temporary:
        table.to_csv(temporary, index=False)
    with replacing(out / "curves.png") as temporary:
        _draw(table, temporary)
    return {name: file_hash(out / name) for name in ("history.csv", "curves.png")}


def _draw(table: pd.DataFrame, path: Path) -> None:
    # without pyplot: no global state, no screen needed
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.5), layout="constrained")
    loss, accuracy = figure.subplots(1, 2)
    for name, rows in table.groupby("network", sort=False):
        for axes, column in ((loss, "loss"), (accuracy, "accuracy")):
            (line,) = axes.plot(rows["epoch"], rows[column], alpha=0.5, label=f"{name}, training")
            axes.plot(
                rows["epoch"], rows[f"held_out_{column}"], color=line.get_color(), ls="--",
                label=f"{name}, held out",
            )  # fmt: skip
    for axes, label in ((loss, "loss"), (accuracy, "accuracy")):
        axes.set(xlabel="epoch", ylabel=label)
        axes.grid(alpha=0.3)
    accuracy.legend(fontsize="small")
    figure.savefig(path, format="png", dpi=120)
