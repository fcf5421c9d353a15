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

MEASURES = ["max_p", "entropy", "mutual_information", "log_precision", "differential_entropy"]
SOURCES = ["p_correct", "p_misclassified", "p_ood"]
DIGITS = (load_digits().images * 15.9).astype(np.uint8)


def run(*arguments: object):
    wide = {"COLUMNS": "250"}
    return CliRunner(env=wide).invoke(app, list(map(str, arguments)), prog_name="dpn")


def trained(out: Path, method: str, *data: str) -> Path:
    words = "--backbone test_vit --limit 500 --epochs 4 --device cpu --lr 0.003"
    done = run("train", *words.split(), "--method", method, *data, "--out", out)
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
    ("arguments", "words"),
    [
        (["--detector", "mahalanobis"], "needs more of the network than its logits"),
        (["--detector", "dpn-mii"], "Unknown detector 'dpn-mii'. Did you mean 'dpn-mi'"),
        (["nowhere.png"], "There is no image or folder nowhere.png"),
        (["nowhere.npz"], "nowhere.npz was not found"),
        (["--run", "nowhere"], "nowhere holds no trained run"),
        ([__file__], "is not a readable image"),
    ],
)
def test_bad_input_is_named(plain: Path, images: Path, arguments, words) -> None:
    done = run("score", "--run", plain, images / "a.png", *arguments)
    assert done.exit_code == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_points_are_no_images(images: Path, tmp_path: Path) -> None:
    words = "--backbone mlp_synthetic --recipe synthetic --epochs 1 --device cpu --method baseline"
    run("train", *words.split(), "--in-domain", "synthetic:gaussians", "--out", tmp_path / "run")
    done = run("score", "--run", tmp_path / "run", images)
    assert done.exit_code == 2
    assert "trained on points" in done.stderr
