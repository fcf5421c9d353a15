"""The figures of the paper: drawn, labelled, not blank, and of the right values."""

import io
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import Result
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from PIL import Image
from sample_bench import SampleBench, evaluation_record, store_outputs
from typer.testing import CliRunner

from dpn_plugin._records import read_record, write_record
from dpn_plugin.cli import app
from dpn_plugin.data import load
from dpn_plugin.evaluation import EvaluationRecord, plane_samples
from dpn_plugin.functional import mutual_information
from dpn_plugin.outputs import OutputStore
from dpn_plugin.report import PaperFigures, draw_paper_figures

METHODS = ("dpn-rev", "dpn-plus", "dpn-minus")


def dpn(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(each) for each in arguments], prog_name="dpn")


def plane_logits(inputs: torch.Tensor) -> torch.Tensor:
    """Return logits that depend on the place, so that a map has a shape."""
    centres = torch.tensor([[-4.0, 0.0], [4.0, 0.0], [0.0, 5.0]])
    return 4 - (inputs[:, None] - centres).norm(dim=2)


@pytest.fixture(scope="module")
def synthetic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A benchmark of three classes whose samples are points in the plane."""
    folder = tmp_path_factory.mktemp("synthetic")
    SampleBench(suite="synthetic", methods=METHODS, seeds=(0,), classes=3).write(folder)
    train = load("synthetic:gaussians", root=".", in_domain=True)
    outliers = load("synthetic:gaussians-ood", root=".")
    store = OutputStore(folder / "store")
    keys = {}
    for name, samples in plane_samples(train, [outliers]).items():
        logits = plane_logits(samples.inputs)
        arrays = {"logits": logits, "labels": samples.labels, "inputs": samples.inputs}
        keys[name.removeprefix("plane.")] = store_outputs(store, arrays, name)
    for path in folder.glob("runs/**/evaluation.json"):
        old = read_record(path, EvaluationRecord)
        outputs = old.outputs.model_dump() | {"plane": keys}
        write_record(path, evaluation_record("test_resnet", old.method, old.seed, outputs))
    return folder


@pytest.fixture(scope="module")
def drawn(synthetic: Path) -> PaperFigures:
    return draw_paper_figures(synthetic)


def all_axes(figure: Figure) -> list:
    return [axes for axes in figure.axes if axes.get_title(loc="left") or axes.get_title()]


def test_all_seven_figures_are_drawn_and_none_is_blank(drawn: PaperFigures) -> None:
    assert (sorted(drawn.figures), drawn.missing) == ([1, 2, 3, 4, 5, 6, 7], {})
    for number, each in drawn.figures.items():
        assert each.key == f"paper-figure-{number}"
        pixels = np.asarray(Image.open(io.BytesIO(each.png)).convert("L"))
        # text alone covers less than this, and a blank panel is white
        assert (pixels < 250).mean() > 0.04, number
        assert pixels.std() > 15, number


@pytest.mark.parametrize(("number", "panels"), {1: 4, 2: 2, 3: 2, 4: 3, 5: 9, 6: 3, 7: 16}.items())
def test_a_figure_has_the_panels_of_the_paper(
    drawn: PaperFigures, number: int, panels: int
) -> None:
    titled = all_axes(drawn.figures[number].figure)
    letters = [(axes.get_title(loc="left") or axes.get_title())[:3] for axes in titled]
    assert letters == [f"({letter})" for letter in "abcdefghijklmnop"[:panels]]


def test_titles_carry_the_measures_that_the_paper_prints(drawn: PaperFigures) -> None:
    titles = [axes.get_title() for n in (2, 4) for axes in all_axes(drawn.figures[n].figure)]
    printed = [(-199.1, 8e-4), (-3.45, 9.7e-3), (-2.3, 0.03), (-1.2, 0.1), (-13.0, 0.84)]
    for title, (entropy, information) in zip(titles, printed, strict=True):
        parts = title.replace(",  MI", "").split(" = ")
        assert float(parts[1].split()[0]) == pytest.approx(entropy, abs=0.05)
        assert float(parts[2]) == pytest.approx(information, rel=0.11)


def test_the_precision_grows_without_bound_and_the_regulariser_does_not(
    drawn: PaperFigures,
) -> None:
    left, right = all_axes(drawn.figures[3].figure)
    for axes, function in (
        (left, lambda z: 3 * torch.exp(z)),
        (right, lambda z: torch.sigmoid(z)),
    ):
        value, slope = axes.lines[:2]
        z = torch.tensor(np.array(value.get_xdata())).requires_grad_()
        expected = function(z)
        expected.sum().backward()
        np.testing.assert_allclose(value.get_ydata(), expected.detach(), rtol=1e-9)
        np.testing.assert_allclose(slope.get_ydata(), z.grad, rtol=1e-9)


def test_maps_show_the_measure_of_their_title(drawn: PaperFigures) -> None:
    panel = next(
        axes for axes in all_axes(drawn.figures[5].figure) if "(g) MI" in axes.get_title("left")
    )
    (image,) = (each for each in panel.get_children() if isinstance(each, AxesImage))
    shown = np.asarray(image.get_array())
    left, right, bottom, top = image.get_extent()
    side = len(shown)
    x, y = np.meshgrid(np.linspace(left, right, side), np.linspace(bottom, top, side))
    points = torch.tensor(np.stack([x.ravel(), y.ravel()], axis=1)).float()
    expected = mutual_information(plane_logits(points).double()).reshape(side, side)
    np.testing.assert_allclose(shown, expected, rtol=1e-3)


def test_titles_and_colour_bars_do_not_overlap(drawn: PaperFigures) -> None:
    for each in drawn.figures.values():
        renderer = FigureCanvasAgg(each.figure).get_renderer()
        boxes = []
        for axes in all_axes(each.figure):
            titles = (axes.title, axes._left_title)
            boxes += [text.get_window_extent(renderer) for text in titles if text.get_text()]
            # with their labels
            boxes += [bar.get_tightbbox(renderer) for bar in axes.child_axes]
        for index, box in enumerate(boxes):
            assert not any(box.overlaps(other) for other in boxes[index + 1 :]), each.key


def test_plot_paper_without_a_benchmark_says_what_is_missing(tmp_path: Path) -> None:
    done = dpn("plot", "paper", "--out", tmp_path / "figures")
    assert done.exit_code == 0, done.output
    names = {path.name for path in (tmp_path / "figures").iterdir()}
    assert names == {f"paper-figure-{n}.{end}" for n in (1, 2, 3, 4) for end in ("png", "svg")}
    for number in (5, 6, 7):
        assert f"Not drawn: figure {number}. It shows trained networks" in done.stdout


def test_plot_paper_draws_a_benchmark(synthetic: Path, tmp_path: Path) -> None:
    done = dpn("plot", "paper", "--bench", synthetic, "--out", tmp_path, "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["not_drawn"] == {}
    assert [Path(path).exists() for path in found["pictures"].values()] == [True] * 7


def test_images_have_the_gap_but_no_maps(bench: Path, tmp_path: Path) -> None:
    found = draw_paper_figures(SampleBench(methods=METHODS, seeds=(0,)).write(tmp_path))
    assert sorted(found.figures) == [1, 2, 3, 4, 6]
    assert all("not points in the plane" in found.missing[number] for number in (5, 7))
    # a benchmark without the methods of the figures
    found = draw_paper_figures(bench)
    assert found.missing[6] == "The benchmark has no run of dpn-rev."
    assert found.missing[5] == "The benchmark has no run of dpn-plus."


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("paper", 1, 1, 1), "'paper' takes none"),
        (("simplex", 1, 1, 1, "--bench", "x"), "--bench belongs to 'paper'"),
        (("paper", "--bench", "nowhere"), "nowhere"),
    ],
)
def test_options_of_the_other_picture_are_refused(
    arguments: tuple[object, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = dpn("plot", *arguments)
    assert done.exit_code == 2
    assert message in done.stderr
    assert not list(tmp_path.iterdir())
