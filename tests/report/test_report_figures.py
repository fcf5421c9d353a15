"""The pictures: complete, labelled, true to the data."""

import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib.patches import Ellipse
from scipy.integrate import trapezoid

from dpn_plugin.errors import UserError
from dpn_plugin.functional import dirichlet_measures
from dpn_plugin.report.evaluations import Evaluation, evaluations
from dpn_plugin.report.figures.gap import gap_picture
from dpn_plugin.report.figures.histograms import histogram_picture
from dpn_plugin.report.figures.maps import map_picture
from dpn_plugin.report.figures.reliability import reliability_picture
from dpn_plugin.report.figures.roc import roc_picture
from dpn_plugin.report.figures.simplex import simplex_picture
from dpn_plugin.report.figures.style import KINDS
from dpn_plugin.report.figures.training import training_picture
from dpn_plugin.report.load import Subject
from dpn_plugin.training import Recipe, TrainConfig, train

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def runs(bench: Path) -> list[Evaluation]:
    return list(evaluations((bench,), Subject("digits", "test_resnet")))


def test_every_picture_is_saved_as_png_and_svg(reported: Path) -> None:
    names = {path.stem.rpartition("-")[2] for path in (reported / "figures").iterdir()}
    assert names == {"gap", "roc", "histograms", "reliability", "training"}
    for path in (reported / "figures").iterdir():
        start = path.read_bytes()[:400]
        assert (
            start.startswith(PNG)
            if path.suffix == ".png"
            else b"<svg" in start or b"<?xml" in start
        )


@pytest.mark.parametrize(
    "draw",
    [gap_picture, histogram_picture, reliability_picture, roc_picture, training_picture],
    ids=lambda draw: draw.__name__,
)
def test_every_axis_is_labelled(draw, runs: list[Evaluation]) -> None:
    figure = draw("x", runs).figure
    shared_x, shared_y = figure.get_supxlabel(), figure.get_supylabel()
    assert shared_x or all(axes.get_xlabel() for axes in figure.axes)
    # panels in one row share what stands beside the first
    assert shared_y or figure.axes[0].get_ylabel()


def test_the_lowest_seed_of_every_method_is_drawn(runs: list[Evaluation]) -> None:
    assert {each.method: each.seed for each in runs} == {"baseline": 0, "oe": 0, "dpn-minus": 0}


def test_ellipses_are_those_of_the_sample_covariance(runs: list[Evaluation]) -> None:
    figure = gap_picture("x", runs[:1]).figure
    ellipses = [each for each in figure.axes[0].patches if isinstance(each, Ellipse)]
    assert len(ellipses) == 6
    measures = dirichlet_measures(runs[0].ood["logits"].double())
    points = np.stack([measures.max_p, measures.log_neg_differential_entropy])
    own = [e for e in ellipses if np.allclose(e.center, points.mean(axis=1))]
    assert len(own) == 2
    # axis-aligned extent of an ellipse R diag(w, h) R' is the deviation of each coordinate
    for deviations, ellipse in zip((1, 2), own, strict=True):
        angle = np.radians(ellipse.angle)
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        half = np.diag([ellipse.width / 2, ellipse.height / 2]) / deviations
        np.testing.assert_allclose(turn @ half @ half @ turn.T, np.cov(points), rtol=1e-6)


def test_roc_labels_hold_the_share_of_pairs_in_the_right_order(runs: list[Evaluation]) -> None:
    figure = roc_picture("x", runs[:1]).figure
    label = figure.axes[1].get_lines()[0].get_label()
    shown = float(re.search(r"\(([\d.]+) %\)", label)[1])
    line = figure.axes[1].get_lines()[0]
    assert shown == pytest.approx(100 * trapezoid(line.get_ydata(), line.get_xdata()), abs=0.06)
    assert 50 < shown < 100


def test_kinds_differ_in_shape_and_in_grey() -> None:
    for names in (("correct", "misclassified", "ood"), ("in_domain", "near", "far")):
        kinds = [KINDS[name] for name in names]
        assert len({kind.marker for kind in kinds}) == 3
        rgb = np.array([[int(k.colour[i : i + 2], 16) for i in (1, 3, 5)] for k in kinds])
        # blue stays dark for every kind of colour blindness; the other two differ in shape too
        grey = rgb @ [0.2126, 0.7152, 0.0722]
        assert np.diff(np.sort(grey)).min() > 8


def test_the_density_on_the_simplex_has_mass_one() -> None:
    mesh = simplex_picture([3, 5, 8]).figure.axes[0].collections[0]
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
    ("values", "words"),
    [
        ([1, 2], "three concentrations, got 2"),
        ([1, 2, 0], "positive"),
        ([1, 2, float("nan")], "positive"),
    ],
    ids=["two", "zero", "nan"],
)
def test_a_simplex_needs_three_positive_concentrations(values: list[float], words: str) -> None:
    with pytest.raises(UserError, match=words):
        simplex_picture(values)


def test_the_same_picture_is_the_same_file(tmp_path: Path) -> None:
    for name in ("a", "b"):
        simplex_picture([2, 2, 2]).write(tmp_path / f"{name}.svg")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def trained(folder: Path, method: str) -> Evaluation:
    recipe = Recipe.named("synthetic", epochs=1)
    config = TrainConfig(
        backbone="mlp_synthetic", method=method, in_domain="synthetic:gaussians",
        outliers=["synthetic:gaussians-ood"] if method != "deep-ensemble" else [], recipe=recipe,
    )  # fmt: skip
    train(config, folder / method)
    return Evaluation(folder / method, method, 0, None, {})


def test_maps_show_the_measures_over_the_plane_with_the_data_on_top(tmp_path: Path) -> None:
    methods = [trained(tmp_path, name) for name in ("dpn-minus", "deep-ensemble")]
    figure = map_picture("maps", methods).figure
    drawn = [axes for axes in figure.axes if axes.images]
    # averaged predictions have no precision and no differential entropy
    assert len(drawn) == 5 + 3
    assert [len(each.get_offsets()) for each in drawn[0].collections] == [600, 600]
    shown = np.asarray(drawn[0].images[0].get_array())
    assert 1 / 3 <= shown.min() <= shown.max() <= 1


def test_images_have_no_maps(runs: list[Evaluation]) -> None:
    assert map_picture("maps", runs) is None
