"""What thresholds promise and what they do, and the risk of what is not rejected."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from scipy.stats import betabinom
from torch import Tensor

from dpn_plugin.evaluation import EvaluationRecord
from dpn_plugin.metrics import RiskCoverage, equal_shares, risk_coverage, selective_metrics
from dpn_plugin.report.figures.style import (
    ReportFigure,
    escape_dollars,
    line_styles,
    panels,
    report_style,
)
from dpn_plugin.report.scores import Measure, measures
from dpn_plugin.report.stored_runs import LoadedRun, StoredRun

_METRIC = "rejected@"
#: methods differ in shape too, for readers who do not see colours
_MARKERS = "o^sDv"
#: points of a curve; more make files larger and look the same
_POINTS = 400
_DECISION_CAPTION = (
    "A dot for each detector, at thresholds that promise to reject 1, 5 and 10 % of in-domain "
    "samples (black lines), for the lowest seed. Left: the in-domain test samples that are "
    "rejected; by the chance in the draw of calibration and test samples, each dot is in its grey "
    "band with a probability of 95 % (the band of combined detectors, which use half of the "
    "calibration samples, is wider). Right: the OOD samples that are found, mean over all sets."
)
_SELECTIVE_CAPTION = (
    "Share of errors among the samples that are not rejected, against their share of all samples: "
    "in-domain test samples alone, and equally many in-domain and OOD samples, where every OOD "
    "sample that is accepted is an error. Each method with the one of the five measures that has "
    "the smallest area with OOD samples, and the lowest seed; area (AURC) in brackets. Lower is "
    "better."
)

Shares = dict[float, list[float]]


def decision_figure(key: str, runs: list[StoredRun]) -> ReportFigure | None:
    """Return promised against observed rejection, if some run has decisions."""
    decided = [run.record for run in runs if _in_domain_shares(run.record)]
    if not decided:
        return None
    levels = sorted({alpha for record in decided for alpha in _in_domain_shares(record)})
    with report_style():
        figure, axes = panels(2, 2, 3.4, share=False)
        for index, (record, style) in enumerate(zip(decided, line_styles(), strict=False)):
            offset = 0.7 * ((index + 0.5) / len(decided) - 0.5)
            label = escape_dollars(record.method)
            for own, shares in zip(axes, (_in_domain_shares, _ood_shares), strict=True):
                look = {"color": style["color"], "marker": _MARKERS[index % len(_MARKERS)]}
                _dots(own, shares(record), levels, offset, label=label, **look)
        _promises(axes[0], decided[0], levels)
        for own, title in zip(
            axes, ("in-domain samples rejected", "OOD samples found"), strict=True
        ):
            ticks = [f"{100 * alpha:g} %" for alpha in levels]
            own.set(title=title, xlabel="promised", xticks=range(len(levels)), xticklabels=ticks)
            own.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.3g} %")
            own.grid(axis="x", visible=False)
        axes[0].set(ylabel="observed")
        axes[1].set_ylim(0, 1.04)
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right upper")
    return ReportFigure(key, "Promised and observed rejection", _DECISION_CAPTION, figure)


def selective_figure(key: str, runs: list[StoredRun]) -> ReportFigure:
    """Return risk against coverage, in-domain and with OOD samples, a line per method."""
    with report_style():
        figure, axes = panels(2, 2, 3.6, share=False)
        for run, style in zip(runs, line_styles(), strict=False):
            loaded = run.load()
            best = _best_measure(loaded)
            inside, mixed = (best.score(loaded.in_domain), loaded.correct), _half_ood(loaded, best)
            for own, (scores, correct) in zip(axes, (inside, mixed), strict=True):
                area = selective_metrics(scores, correct)["aurc"]
                label = f"{escape_dollars(loaded.method)}, {best.title} ({area:.3f})"
                _risk_line(own, risk_coverage(scores, correct), label, style)
        for own, title in zip(axes, ("in-domain", "half OOD"), strict=True):
            own.set(title=title, xlabel="coverage", xlim=(0, 1.01))
            own.set_ylim(bottom=0)
            own.legend(loc="best", fontsize=7.5)
        axes[0].set_ylabel("risk")
    return ReportFigure(key, "Risk and coverage", _SELECTIVE_CAPTION, figure)


def _in_domain_shares(record: EvaluationRecord) -> Shares:
    """Return the observed rejections of every detector by the promised one."""
    found: Shares = {}
    for row in record.all_rows():
        if row.task == "decision" and row.dataset == "" and row.metric.startswith(_METRIC):
            found.setdefault(float(row.metric.removeprefix(_METRIC)), []).append(row.value)
    return found


def _ood_shares(record: EvaluationRecord) -> Shares:
    """Return the share of OOD samples that every detector finds, mean over sets."""
    sets = {*record.outputs.near, *record.outputs.far}
    values: dict[tuple[str, str], list[float]] = {}
    for row in record.all_rows():
        if row.task == "decision" and row.dataset in sets and row.metric.startswith(_METRIC):
            values.setdefault((row.metric, row.detector), []).append(row.value)
    found: Shares = {}
    for (metric, _), each in values.items():
        found.setdefault(float(metric.removeprefix(_METRIC)), []).append(float(np.mean(each)))
    return found


def _dots(axes: Axes, shares: Shares, levels: list[float], offset: float, **style: Any) -> None:
    x = [levels.index(alpha) + offset for alpha, each in shares.items() for _ in each]
    y = [value for each in shares.values() for value in each]
    axes.plot(x, y, ls="", ms=4.5, alpha=0.6, mew=0, **style)


def _promises(axes: Axes, record: EvaluationRecord, levels: Iterable[float]) -> None:
    """Draw each promised share, and the range that chance explains."""
    n, m = (record.samples.get(name, 0) for name in ("calibration", "in_domain_test"))
    for position, alpha in enumerate(levels):
        ends = [position - 0.42, position + 0.42]
        axes.plot(ends, [alpha, alpha], color="black", lw=1.2)
        rank = math.floor(alpha * (n + 1))
        if rank and m:
            low, high = betabinom.ppf([0.025, 0.975], m, rank, n + 1 - rank) / m
            axes.fill_between(ends, low, high, color="#8a8f98", alpha=0.25, lw=0)


def _risk_line(axes: Axes, curve: RiskCoverage, label: str, style: dict[str, Any]) -> None:
    chosen = np.unique(np.linspace(0, len(curve.risk) - 1, _POINTS).round().astype(int))
    x, y = curve.coverage.numpy()[chosen], curve.risk.numpy()[chosen]
    axes.plot(x, y, lw=1.4, label=label, **style)


def _best_measure(run: LoadedRun) -> Measure:
    """Return the measure with the smallest area under risk and coverage with OOD samples."""

    candidates = measures(run.in_domain).values()
    return min(candidates, key=lambda each: selective_metrics(*_half_ood(run, each))["aurc"])


def _half_ood(run: LoadedRun, measure: Measure) -> tuple[Tensor, Tensor]:
    """Return scores and correctness of equally many in-domain and OOD samples."""
    scores = measure.score(run.in_domain), run.correct, measure.score(run.ood)
    return equal_shares(*scores, torch.Generator().manual_seed(0))
