"""Training curves, and reliability diagrams of the trained classifiers."""

from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from dpn_plugin.errors import UserError
from dpn_plugin.functional import max_p
from dpn_plugin.metrics import equal_shares
from dpn_plugin.report.figures.style import (
    ReportFigure,
    escape_dollars,
    line_styles,
    panels,
    report_style,
)
from dpn_plugin.report.stored_runs import StoredRun
from dpn_plugin.runs import EpochRecord, plot_history, read_run_record

_BINS = 12
_RELIABILITY_CAPTION = (
    "Accuracy against confidence in bins of equal size, before temperature scaling, for the lowest "
    "seed. On the diagonal a model is right as often as it says; OOD samples are always wrong."
)
_TRAINING_CAPTION = (
    "Loss and accuracy on held-out data after every epoch, for the lowest seed and the first "
    "network of a method. Losses of different methods have different scales."
)


def reliability_figure(key: str, runs: list[StoredRun]) -> ReportFigure:
    """Return one panel for in-domain samples and one for equal shares with OOD; a line a method."""
    with report_style():
        figure, axes = panels(2, 2, 3.4)
        for run, style in zip(runs, line_styles(), strict=False):
            loaded = run.load()
            inside, outside = (
                max_p(outputs.logits.double()) for outputs in (loaded.in_domain, loaded.ood)
            )
            label = escape_dollars(loaded.method)
            _reliability_line(axes[0], inside, loaded.correct, label, style)
            generator = torch.Generator().manual_seed(0)
            mixed = equal_shares(inside, loaded.correct, outside, generator)
            _reliability_line(axes[1], *mixed, label, style)
        for own, title in zip(axes, ("in-domain", "half OOD"), strict=True):
            own.plot([0, 1], [0, 1], color="#8a8f98", lw=0.8)
            own.set(title=title, xlabel="confidence (Max.P)", xlim=(0, 1.02), ylim=(0, 1.02))
        axes[0].set_ylabel("accuracy")
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right upper")
    return ReportFigure(key, "Reliability", _RELIABILITY_CAPTION, figure)


def training_figure(key: str, runs: list[StoredRun]) -> ReportFigure | None:
    """Return held-out loss and accuracy over the epochs, a line per method that trains."""
    histories = [(run.record.method, _read_history(run)) for run in runs]
    trained = [(method, history) for method, history in histories if history]
    if not trained:
        return None
    with report_style():
        figure, axes = panels(2, 2, 3.0, share=False)
        for (method, history), style in zip(trained, line_styles(), strict=False):
            label = escape_dollars(method)
            plot_history(axes, history, label, held_out=True, lw=1.4, **style)
        for own, label in zip(axes, ("held-out loss", "held-out accuracy"), strict=True):
            own.set(xlabel="epoch", ylabel=label)
            own.xaxis.set_major_locator(MaxNLocator(integer=True))
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right upper")
    return ReportFigure(key, "Training", _TRAINING_CAPTION, figure)


def _reliability_line(
    axes: Axes, confidence: Tensor, correct: Tensor, label: str, style: dict[str, Any]
) -> None:
    order = torch.argsort(confidence, stable=True)
    bins = [part for part in np.array_split(order.numpy(), _BINS) if len(part)]
    x = [float(confidence[part].mean()) for part in bins]
    y = [float(correct[part].double().mean()) for part in bins]
    axes.plot(x, y, marker="o", ms=3, lw=1.3, label=label, **style)


def _read_history(run: StoredRun) -> list[EpochRecord]:
    """Return the epochs of the first network of a run."""
    record = read_run_record(run.folder)
    if record is None or not record.networks:
        raise UserError(f"{run.folder} has no record of the training.")
    return next(iter(record.networks.values())).history
