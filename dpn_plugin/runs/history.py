"""The epochs of a training run, as a table and as a figure."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from dpn_plugin._files import file_hash, replacing
from dpn_plugin.runs.record import EpochRecord, NetworkRecord


def write_history(folder: Path, networks: Mapping[str, NetworkRecord]) -> dict[str, str]:
    """
    Write ``history.csv`` and ``curves.png`` and return the SHA-256 of both.

    Networks that were not trained have no history; without any other, nothing is written.

    :param folder: the run's folder
    :param networks: the trained networks by name
    """
    # without pyplot: no global state, and no display is needed
    from matplotlib.figure import Figure

    rows = [
        {"network": name, **epoch.model_dump()}
        for name, network in networks.items()
        for epoch in network.history
    ]
    if not rows:
        return {}
    with replacing(folder / "history.csv") as temporary:
        pd.DataFrame(rows).to_csv(temporary, index=False)
    figure = Figure(figsize=(9, 3.5), layout="constrained")
    axes = figure.subplots(1, 2)
    for index, (name, network) in enumerate(networks.items()):
        color, history = f"C{index % 10}", network.history
        plot_history(axes, history, f"{name}, training", color=color, alpha=0.5)
        plot_history(axes, history, f"{name}, held out", held_out=True, color=color, linestyle="--")
    for each, name in zip(axes, ("loss", "accuracy"), strict=True):
        each.set(xlabel="epoch", ylabel=name)
        each.grid(alpha=0.3)
    axes[1].legend(fontsize="small")
    with replacing(folder / "curves.png") as temporary:
        figure.savefig(temporary, format="png", dpi=120)
    return {name: file_hash(folder / name) for name in ("history.csv", "curves.png")}


def plot_history(
    axes: Iterable[Any],
    history: list[EpochRecord],
    label: str,
    *,
    held_out: bool = False,
    **style: Any,
) -> None:
    """
    Draw loss and accuracy over the epochs of one network.

    :param axes: one for the loss, one for the accuracy
    :param history: the epochs
    :param label: for the legend
    :param held_out: draw the figures of the held-out data instead of the training data
    :param style: keyword arguments of matplotlib's ``plot``
    """
    epochs = [epoch.epoch for epoch in history]
    marker = "o" if len(history) == 1 else ""
    for each, name in zip(axes, ("loss", "accuracy"), strict=True):
        column = f"held_out_{name}" if held_out else name
        values = [getattr(epoch, column) for epoch in history]
        each.plot(epochs, values, label=label, marker=marker, **style)
