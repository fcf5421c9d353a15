"""``dpn score``: a row for each image, from a run alone."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from sklearn.datasets import load_digits
from typer.testing import CliRunner

from dpn_plugin.cli import app
from dpn_plugin.deploy import score_images
from dpn_plugin.runs import open_run

MEASURES = ["max_p", "entropy", "mutual_information", "log_precision", "differential_entropy"]
SOURCES = ["p_correct", "p_misclassified", "p_ood"]
DIGITS = (load_digits().images * 15.9).astype(np.uint8)


def run(*arguments: object):
    wide = {"COLUMNS": "250"}
    return CliRunner(env=wide).invoke(app, list(map(str, arguments)), prog_name="dpn")


def trained(out: Path, method: str, *data: str) -> Path:
    options = "--backbone test_vit --limit 500 --epochs 4 --device cpu --lr 0.003"
    done = run("train", *options.split(), "--method", method, *data, "--out", out)
    assert done.exit_code == 0, done.output
    return out


@pytest.fixture(scope="module")
def exposed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = ["--in-domain", "sklearn:digits?classes=0-6", "--outliers", "sklearn:digits?classes=7-"]
    return trained(tmp_path_factory.mktemp("exposed"), "dpn-minus", *data)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("plain"), "baseline", "--in-domain", "sklearn:digits")


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """A grey image, a larger one in colour, and one more in a folder below."""
    folder = tmp_path / "images"
    (folder / "more").mkdir(parents=True)
    Image.fromarray(DIGITS[0]).save(folder / "a.png")
    Image.fromarray(DIGITS[1]).resize((32, 24)).convert("RGB").save(folder / "b.png")
    Image.fromarray(DIGITS[2]).save(folder / "more" / "c.png")
    return folder


def test_a_folder_becomes_a_table(exposed: Path, images: Path, tmp_path: Path) -> None:
    out = tmp_path / "scores.csv"
    done = run("score", "--run", exposed, "--detector", "dpn-gaussian-kl", images, "--out", out)
    assert done.exit_code == 0, done.output
    table = pd.read_csv(out)
    assert [Path(name).name for name in table["image"]] == ["a.png", "b.png", "c.png"]
    assert list(table.columns) == ["image", "prediction", *MEASURES, "score", *SOURCES]
    np.testing.assert_allclose(table[SOURCES].sum(axis=1), 1)
    assert table["max_p"].between(0, 1).all()


def test_an_archive_scores_like_its_images(exposed: Path, images: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", images=DIGITS[[0, 2]])
    paths = [images / "a.png", images / "more" / "c.png"]
    ours, theirs = (
        pd.DataFrame(json.loads(run("score", "--run", exposed, *inputs, "--json").stdout))
        for inputs in ([tmp_path / "a.npz"], paths)
    )
    assert ours["image"].tolist() == [f"{tmp_path / 'a.npz'}[{index}]" for index in range(2)]
    pd.testing.assert_frame_equal(ours.drop(columns="image"), theirs.drop(columns="image"))
    assert ours["score"].tolist() == ours["mutual_information"].tolist()


def test_a_table_is_printed(plain: Path, images: Path) -> None:
    done = run("score", "--run", plain, "--detector", "energy", images / "a.png")
    assert done.exit_code == 0, done.output
    assert "prediction" in done.stdout
    assert "p_ood" not in done.stdout


def test_a_run_without_outliers_scores_but_tells_no_sources(plain: Path, images: Path) -> None:
    done = run("score", "--run", plain, "--detector", "dpn-gaussian-kl", images, "--json")
    assert done.exit_code == 0, done.output
    assert "p_ood" not in json.loads(done.stdout)[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--detector", "mahalanobis"], "needs more of the network than its logits"),
        (["--detector", "dpn-mii"], "Unknown detector 'dpn-mii'. Did you mean 'dpn-mi'"),
        (["nowhere.png"], "There is no image or folder nowhere.png"),
        (["nowhere.npz"], "nowhere.npz was not found"),
        (["--run", "nowhere"], "nowhere holds no trained run"),
        ([__file__], "is not a readable image"),
    ],
)
def test_bad_input_is_named(plain: Path, images: Path, arguments, message) -> None:
    done = run("score", "--run", plain, images / "a.png", *arguments)
    assert done.exit_code == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_points_are_no_images(images: Path, tmp_path: Path) -> None:
    options = "--backbone mlp_synthetic --recipe synthetic --epochs 1 --method baseline"
    data = ["--device", "cpu", "--in-domain", "synthetic:gaussians"]
    run("train", *options.split(), *data, "--out", tmp_path / "run")
    done = run("score", "--run", tmp_path / "run", images)
    assert done.exit_code == 2
    assert "trained on points" in done.stderr


def test_the_ending_of_out_decides_the_format(plain: Path, images: Path, tmp_path: Path) -> None:
    out, options = tmp_path / "x.json", ["--run", plain, images]
    assert run("score", *options, "--json", "--out", out).exit_code == 0
    written = json.loads(out.read_text("utf-8"))
    assert written == json.loads(run("score", *options, "--json").stdout)
    out.unlink()
    assert run("score", *options, "--out", out).exit_code == 0
    assert json.loads(out.read_text("utf-8")) == written


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--json", "--out", "x.csv"], "--json with --out takes a file that ends in .json, not"),
        (
            ["--out", "x.txt"],
            "--out takes a file that ends in .csv or .json or .parquet, not",
        ),
        (["--out", "x"], "not 'x': the ending decides the format"),
    ],
)
def test_another_ending_is_refused(plain: Path, images: Path, options, message) -> None:
    done = run("score", "--run", plain, images, *options)
    assert done.exit_code == 2
    assert message in " ".join(done.stderr.split())
    assert not Path(options[-1]).exists()


def test_hidden_files_and_folders_are_skipped(plain: Path, images: Path) -> None:
    (images / ".ipynb_checkpoints").mkdir()
    for hidden in (images / ".a.png", images / ".ipynb_checkpoints" / "b.png"):
        Image.fromarray(DIGITS[0]).save(hidden)
    found = json.loads(run("score", "--run", plain, images, "--json").stdout)
    assert [Path(row["image"]).name for row in found] == ["a.png", "b.png", "c.png"]


def test_paths_are_strings_one_or_several(plain: Path, images: Path) -> None:
    trained_run = open_run(str(plain))
    one = score_images(trained_run, "dpn-mi", str(images), device="cpu")
    several = score_images(trained_run, "dpn-mi", [str(images / "a.png"), images], device="cpu")
    assert (len(one), len(several)) == (3, 4)
