"""Figures of decisions: what is drawn is what the records and the stored outputs hold."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from scipy.stats import betabinom

from dpn_plugin.evaluation import DetectorEvaluation, ResultRow
from dpn_plugin.functional import one_minus_max_p
from dpn_plugin.metrics import selective_metrics
from dpn_plugin.report.figures.decisions import decision_figure, selective_figure
from dpn_plugin.report.results import Scope
from dpn_plugin.report.stored_runs import StoredRun, find_runs


@pytest.fixture(scope="module")
def runs(bench: Path) -> list[StoredRun]:
    return find_runs([bench], Scope("digits", "test_resnet"), ["oe", "baseline"])


def _decided(run: StoredRun, shares: dict[tuple[str, str, float], float]) -> StoredRun:
    """The run with decisions of a detector: a share by detector, data set and promise."""
    detectors: dict[str, DetectorEvaluation] = {}
    for (name, dataset, alpha), value in shares.items():
        row = ResultRow(
            task="decision",
            detector=name,
            dataset=dataset,
            metric=f"rejected@{alpha:g}",
            value=value,
        )
        detectors.setdefault(name, DetectorEvaluation()).rows.append(row)
    samples = {"calibration": 400, "in_domain_test": 240}
    return replace(
        run, record=run.record.model_copy(update={"detectors": detectors, "samples": samples})
    )


def test_a_benchmark_without_calibration_has_no_figure_of_decisions(runs) -> None:
    assert decision_figure("x", runs) is None


def test_dots_are_observed_shares_and_lines_are_promises(runs) -> None:
    shares = {("knn", "", 0.05): 0.04, ("knn", "", 0.1): 0.11, ("dpn-mi", "", 0.05): 0.07}
    found = {
        ("knn", "letters", 0.05): 0.5,
        ("knn", "noise", 0.05): 0.9,
        ("knn", "far", 0.05): 0.1,  # the mean of a group is not another set
        ("knn", "textures", 0.05): 0.1,
    }
    drawn = decision_figure("x", [_decided(runs[0], shares | found), runs[1]])
    inside, outside = drawn.figure.axes
    dots, *promises = inside.lines
    assert sorted(dots.get_ydata()) == [0.04, 0.07, 0.11]
    assert [line.get_ydata()[0] for line in promises] == [0.05, 0.1]
    assert list(outside.lines[0].get_ydata()) == [pytest.approx(0.5)]
    band = inside.collections[0].get_paths()[0].get_extents()
    low, high = betabinom.ppf([0.025, 0.975], 240, 20, 381) / 240
    assert (band.y0, band.y1) == (pytest.approx(low), pytest.approx(high))


def test_the_area_of_the_in_domain_curve_is_the_metric(runs) -> None:
    drawn = selective_figure("x", runs)
    loaded = runs[0].load()
    label = drawn.figure.axes[0].lines[0].get_label()
    assert label.startswith(f"{loaded.method}, ")
    if "1 - Max.P" in label:
        scores = one_minus_max_p(loaded.in_domain.logits.double())
        assert f"({selective_metrics(scores, loaded.correct)['aurc']:.3f})" in label
    half = drawn.figure.axes[1].lines[0].get_ydata()
    errors = 1 - float(loaded.correct.double().mean())
    # at full coverage, half of the samples are OOD and the others have the error of the classifier
    assert half[-1] == pytest.approx(0.5 + errors / 2, abs=0.02)
    assert torch.tensor(half).max() <= 1
