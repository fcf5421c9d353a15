"""Accuracy and rejection over the severity of a covariate shift."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MultipleLocator

from dpn_plugin.data import split_severity
from dpn_plugin.evaluation import EvaluationRecord
from dpn_plugin.report.figures.style import (
    ReportFigure,
    escape_dollars,
    line_styles,
    panels,
    report_style,
)
from dpn_plugin.report.stored_runs import StoredRun

#: more shifts than this are drawn as their mean
_MOST = 6
#: the name of the mean of all shifts
_ALL = "shift"
_CAPTION = (
    "Severity 0 is the in-domain test data. Top: accuracy. Bottom: the share of samples that is "
    "rejected at the threshold which accepts 95 % of the in-domain test samples. Each method with "
    "the lowest seed and the detector that has the largest mean AUROC of the full spectrum "
    "(in-domain and shifted samples against all OOD sets)."
)
#: values by shift and severity
Curves = dict[str, dict[int, float]]


def shift_figure(key: str, runs: list[StoredRun]) -> ReportFigure | None:
    """Return two rows of panels, one column per shift, if sets have severities."""
    records = [run.record for run in runs if _curves(run.record, "accuracy", "")]
    if not records:
        return None
    shifts = [name for name in _curves(records[0], "accuracy", "") if name != _ALL]
    shown = shifts if len(shifts) <= _MOST else [_ALL]
    with report_style():
        figure, axes = panels(2 * len(shown), len(shown), 2.1)
        accuracies, rejections = axes[: len(shown)], axes[len(shown) :]
        for record, style in zip(records, line_styles(), strict=False):
            detector = _best_detector(record)
            label = escape_dollars(f"{record.method}, {detector}" if detector else record.method)
            for metric, row in (("accuracy", accuracies), ("rejected95", rejections)):
                curves = _curves(record, metric, detector if metric == "rejected95" else "")
                for name, own in zip(shown, row, strict=True):
                    own.plot(
                        *_points(curves.get(name, {})), lw=1.4, marker=".", label=label, **style
                    )
        for name, own in zip(shown, accuracies, strict=True):
            own.set_title("mean of all shifts" if name == _ALL else escape_dollars(name))
        _finish(accuracies, rejections)
        handles, labels = accuracies[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return ReportFigure(key, "Covariate shift", _CAPTION, figure)


def _finish(accuracies: list[Axes], rejections: list[Axes]) -> None:
    accuracies[0].set_ylabel("accuracy")
    rejections[0].set_ylabel("rejected")
    for own in (*accuracies, *rejections):
        own.set_ylim(-0.02, 1.02)
        own.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
        own.xaxis.set_major_locator(MultipleLocator(1))
    for own in rejections:
        own.set_xlabel("severity")


def _points(curve: dict[int, float]) -> tuple[list[int], list[float]]:
    severities = sorted(curve)
    return severities, [curve[each] for each in severities]


def _curves(record: EvaluationRecord, metric: str, detector: str) -> Curves:
    """Return the values of every shift that has severities; 0 is the in-domain test data."""
    found: Curves = {}
    clean = np.nan
    for row in record.all_rows():
        if row.metric != metric or row.detector != detector:
            continue
        shift, severity = split_severity(row.dataset)
        if row.task in ("shift", "classification") and row.dataset == "":
            clean = row.value
        elif row.task == "shift" and severity is not None:
            found.setdefault(shift, {})[severity] = row.value
    return {name: {0: clean, **curve} for name, curve in found.items()}


def _best_detector(record: EvaluationRecord) -> str:
    """Return the detector with the largest mean full-spectrum AUROC of near and far OOD sets."""
    values: dict[str, list[float]] = {}
    for row in record.all_rows():
        is_group = row.task == "full_spectrum" and row.dataset in ("near", "far")
        if is_group and row.metric == "auroc" and not np.isnan(row.value):
            values.setdefault(row.detector, []).append(row.value)
    return max(values, key=lambda name: float(np.mean(values[name])), default="")
