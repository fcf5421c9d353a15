"""The figures: complete, labelled, and computed from the stored outputs."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib.patches import Ellipse
from sample_bench import SampleBench, evaluation_record, store_outputs
from scipy.integrate import trapezoid

from dpn_plugin.data import load
from dpn_plugin.errors import UserError
from dpn_plugin.evaluation import plane_samples
from dpn_plugin.functional import dirichlet_measures
from dpn_plugin.outputs import OutputStore
from dpn_plugin.report import simplex_figure, write_report
from dpn_plugin.report.figures.classification import reliability_figure, training_figure
from dpn_plugin.report.figures.decisions import selective_figure
from dpn_plugin.report.figures.detection import histogram_figure, roc_figure
from dpn_plugin.report.figures.gap import gap_figure
from dpn_plugin.report.figures.maps import map_figure
from dpn_plugin.report.figures.style import SAMPLE_KINDS
from dpn_plugin.report.results import Scope
from dpn_plugin.report.stored_runs import StoredRun, find_runs
from dpn_plugin.runs import read_run_record

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def runs(bench: Path) -> list[StoredRun]:
    methods = ["oe", "baseline", "dpn-minus"]
    return find_runs([bench], Scope("digits", "test_resnet"), methods)


def test_every_figure_is_saved_as_png_and_svg(reported: Path) -> None:
    names = {path.stem.rpartition("-")[2] for path in (reported / "figures").iterdir()}
    assert names == {"gap", "roc", "histograms", "selective", "reliability", "training"}
    for path in (reported / "figures").iterdir():
        start = path.read_bytes()[:400]
        assert (
            start.startswith(PNG)
            if path.suffix == ".png"
            else b"<svg" in start or b"<?xml" in start
        )


@pytest.mark.parametrize(
    "draw",
    [
        gap_figure,
        histogram_figure,
        reliability_figure,
        roc_figure,
        selective_figure,
        training_figure,
    ],
    ids=lambda draw: draw.__name__,
)
def test_every_axis_is_labelled(draw, runs: list[StoredRun]) -> None:
    figure = draw("x", runs).figure
    shared_x, shared_y = figure.get_supxlabel(), figure.get_supylabel()
    assert shared_x or all(axes.get_xlabel() for axes in figure.axes)
    # panels in one row share the label of the first
    assert shared_y or figure.axes[0].get_ylabel()


def test_the_lowest_seed_of_every_method_is_drawn_in_the_given_order(runs: list[StoredRun]) -> None:
    seeds = {run.record.method: run.record.seed for run in runs}
    assert list(seeds.items()) == [("oe", 0), ("baseline", 0), ("dpn-minus", 0)]


def test_ellipses_are_those_of_the_sample_covariance(runs: list[StoredRun]) -> None:
    figure = gap_figure("x", runs[:1]).figure
    ellipses = [each for each in figure.axes[0].patches if isinstance(each, Ellipse)]
    assert len(ellipses) == 6
    measures = dirichlet_measures(runs[0].load().ood.logits.double())
    points = np.stack([measures.max_p, measures.log_neg_differential_entropy])
    own = [e for e in ellipses if np.allclose(e.center, points.mean(axis=1))]
    assert len(own) == 2
    # axis-aligned extent of an ellipse R diag(w, h) R' is the deviation of each coordinate
    for deviations, ellipse in zip((1, 2), own, strict=True):
        angle = np.radians(ellipse.angle)
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        half = np.diag([ellipse.width / 2, ellipse.height / 2]) / deviations
        np.testing.assert_allclose(turn @ half @ half @ turn.T, np.cov(points), rtol=1e-6)


def test_roc_labels_hold_the_share_of_pairs_in_the_right_order(runs: list[StoredRun]) -> None:
    figure = roc_figure("x", runs[:1]).figure
    label = figure.axes[1].get_lines()[0].get_label()
    shown = float(re.search(r"\(([\d.]+) %\)", label)[1])
    line = figure.axes[1].get_lines()[0]
    assert shown == pytest.approx(100 * trapezoid(line.get_ydata(), line.get_xdata()), abs=0.06)
    assert 50 < shown < 100


def test_kinds_of_samples_differ_in_shape_and_in_grey() -> None:
    for names in (("correct", "misclassified", "ood"), ("in_domain", "near", "far")):
        kinds = [SAMPLE_KINDS[name] for name in names]
        assert len({kind.marker for kind in kinds}) == 3
        rgb = np.array([[int(k.colour[i : i + 2], 16) for i in (1, 3, 5)] for k in kinds])
        # blue stays dark for every kind of colour blindness; the other two differ in shape too
        grey = rgb @ [0.2126, 0.7152, 0.0722]
        assert np.diff(np.sort(grey)).min() > 8


def test_the_density_on_the_simplex_has_mass_one() -> None:
    mesh = simplex_figure([3, 5, 8]).figure.axes[0].collections[0]
    triangulation = mesh._triangulation
    x, y = triangulation.x[triangulation.triangles], triangulation.y[triangulation.triangles]
    areas = (
        abs((x[:, 1] - x[:, 0]) * (y[:, 2] - y[:, 0]) - (x[:, 2] - x[:, 0]) * (y[:, 1] - y[:, 0]))
        / 2
    )
    density = np.exp(mesh.get_array()[triangulation.triangles].mean(axis=1))
    # the drawing is an equilateral triangle, the density is over two coordinates: area 1/2
    whole = np.sqrt(3) / 4
    assert (density * areas).sum() / whole * 0.5 == pytest.approx(1, abs=0.005)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1, 2], "three concentrations, got 2"),
        ([1, 2, 0], "positive"),
        ([1, 2, float("nan")], "positive"),
    ],
    ids=["two", "zero", "nan"],
)
def test_a_simplex_needs_three_positive_concentrations(values: list[float], message: str) -> None:
    with pytest.raises(UserError, match=message):
        simplex_figure(values)


def test_the_same_figure_is_the_same_file(tmp_path: Path) -> None:
    for name in ("a", "b"):
        simplex_figure([2, 2, 2]).write(tmp_path / f"{name}.svg")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def plane_run(folder: Path, method: str, **shapes: tuple[int, ...]) -> StoredRun:
    """Return a run with invented outputs over the plane of the synthetic data."""
    train = load("synthetic:gaussians", root=".", in_domain=True)
    outliers = load("synthetic:gaussians-ood", root=".")
    store, keys = OutputStore(folder), {}
    for name, samples in plane_samples(train, [outliers]).items():
        logits = torch.cat([samples.inputs, samples.inputs.sum(dim=1, keepdim=True)], dim=1)
        arrays = {"logits": logits, "labels": samples.labels, "inputs": samples.inputs}
        added = {array: torch.ones(len(logits), *shape) for array, shape in shapes.items()}
        keys[name.removeprefix("plane.")] = store_outputs(store, arrays | added, method + name)
    record = evaluation_record("mlp", method, 0, {"in_domain_test": "", "plane": keys})
    return StoredRun(folder, record, store)


def test_maps_show_the_measures_over_the_plane_with_the_data_on_top(tmp_path: Path) -> None:
    runs = [
        plane_run(tmp_path, "dpn-minus"),
        plane_run(tmp_path, "deep-ensemble", mutual_information=()),
        plane_run(tmp_path, "binary", ood_logits=(2,)),
    ]
    figure = map_figure("maps", runs).figure
    drawn = [axes for axes in figure.axes if axes.images]
    # averaged predictions have no precision and no differential entropy; binary is not drawn
    assert len(drawn) == 5 + 3
    in_domain, ood = (each.get_offsets() for each in drawn[0].collections)
    assert [len(in_domain), len(ood)] == [600, 600]
    assert in_domain.std() < ood.std()
    shown = np.asarray(drawn[0].images[0].get_array())
    assert 1 / 3 <= shown.min() <= shown.max() <= 1
    # rows go from bottom to top, columns from left to right
    left, right, bottom, top = drawn[0].images[0].get_extent()
    x, y = np.meshgrid(np.linspace(left, right, 100), np.linspace(bottom, top, 100))
    logits = np.stack([x, y, x + y])
    expected = np.exp(logits - logits.max(axis=0))
    np.testing.assert_allclose(shown, 1 / expected.sum(axis=0), rtol=1e-4)
    # the mutual information of averaged predictions is the stored one
    assert (np.asarray(drawn[7].images[0].get_array()) == 1).all()


def test_outputs_that_are_no_grid_are_refused(tmp_path: Path) -> None:
    run = plane_run(tmp_path, "dpn-minus")
    plane = run.record.outputs.plane
    swapped = {"in_domain_test": "", "plane": {"grid": plane["points"], "points": plane["grid"]}}
    for keys, message in (
        (swapped, "not those of a square grid"),
        (swapped | {"plane": {"grid": plane["grid"]}}, "no outputs for a grid and points"),
    ):
        other = StoredRun(tmp_path, evaluation_record("mlp", "dpn-minus", 0, keys), run.store)
        with pytest.raises(UserError, match=message):
            map_figure("maps", [other])


def test_images_have_no_maps(runs: list[StoredRun]) -> None:
    assert map_figure("maps", runs) is None


def test_a_damaged_evaluation_is_reported_on_the_page(tmp_path: Path) -> None:
    folder = SampleBench(methods=("oe",), seeds=(0,)).write(tmp_path)
    path = folder / "runs/test_resnet/oe/seed-0/evaluation.json"
    path.write_text(path.read_text().replace('"method": "oe"', '"method": "baseline"'))
    page = write_report(folder).read_text("utf-8")
    assert f"Not drawn: {path} is damaged: its content does not match its hash." in page
    assert not (folder / "figures").exists()


def test_training_curves_are_those_of_the_record(runs: list[StoredRun]) -> None:
    axes = training_figure("x", runs).figure.axes
    for run, loss, accuracy in zip(runs, *(each.get_lines() for each in axes), strict=True):
        history = read_run_record(run.folder).networks["classifier"].history
        assert list(loss.get_ydata()) == [epoch.held_out_loss for epoch in history]
        assert list(accuracy.get_ydata()) == [epoch.held_out_accuracy for epoch in history]
        assert loss.get_label() == run.record.method


def test_a_run_without_a_record_of_its_training_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="has no record of the training"):
        training_figure("x", [plane_run(tmp_path, "dpn-minus")])
