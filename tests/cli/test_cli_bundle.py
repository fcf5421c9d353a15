"""``dpn bundle``, ``dpn score --bundle`` and ``dpn monitor`` as a user runs them."""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from sklearn.datasets import load_digits
from typer.testing import CliRunner

from dpn_plugin.cli import app
from dpn_plugin.metrics import benjamini_hochberg

MEASURES = ["max_p", "entropy", "mutual_information", "log_precision", "differential_entropy"]
SOURCES = ["p_correct", "p_misclassified", "p_ood"]
DETECTORS = ["dpn-gaussian-kl", "mahalanobis"]


def run(*arguments: object):
    wide = {"COLUMNS": "250"}
    return CliRunner(env=wide).invoke(app, list(map(str, arguments)), prog_name="dpn")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("trained") / "run"
    data = ["--in-domain", "sklearn:digits?classes=0-6", "--outliers", "sklearn:digits?classes=7-"]
    options = "--backbone test_resnet --method dpn-minus --limit 400 --epochs 2 --device cpu"
    done = run("train", *options.split(), *data, "--set", "calibration=0.2", "--out", out)
    assert done.exit_code == 0, done.output
    return out


@pytest.fixture(scope="module")
def bundle(trained: Path) -> Path:
    out = trained.parent / "bundle"
    names = ",".join(DETECTORS)
    done = run("bundle", "--run", trained, "--detectors", names, "--out", out, "--device", "cpu")
    assert done.exit_code == 0, done.output
    assert "alpha = 0.05" in " ".join(done.stdout.split())  # the table is as wide as a terminal
    return out


@pytest.fixture
def images(tmp_path: Path) -> Path:
    folder = tmp_path / "images"
    folder.mkdir()
    digits = (load_digits().images * 15.9).astype(np.uint8)
    for index in range(40):
        Image.fromarray(digits[index]).save(folder / f"{index:03}.png")
    return folder


def test_the_columns_are_those_of_the_documentation(bundle: Path, images: Path) -> None:
    out = images.parent / "scores.csv"
    done = run("score", "--bundle", bundle, images, "--out", out, "--device", "cpu")
    assert done.exit_code == 0, done.output
    table = pd.read_csv(out)
    each = [f"{name}.{what}" for name in DETECTORS for what in ("score", "p_value", "rejected")]
    sources = SOURCES if "p_ood" in table else []
    assert list(table.columns) == ["image", "prediction", *MEASURES, *sources, *each]
    assert len(table) == 40
    assert (table["mahalanobis.rejected"] == (table["mahalanobis.p_value"] <= 0.05)).all()


@pytest.mark.parametrize("ending", ["json", "parquet"])
def test_other_formats_hold_the_same_table(bundle: Path, images: Path, ending: str) -> None:
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    paths = [images.parent / f"scores.{each}" for each in ("csv", ending)]
    for path in paths:
        assert run("score", "--bundle", bundle, images, "--out", path).exit_code == 0
    read = pd.read_parquet if ending == "parquet" else pd.read_json
    ours, theirs = read(paths[1]), pd.read_csv(paths[0])
    assert list(ours.columns) == list(theirs.columns)
    np.testing.assert_allclose(ours["mahalanobis.score"], theirs["mahalanobis.score"], rtol=1e-9)


def test_parquet_without_pyarrow_names_the_package(bundle, images, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    done = run("score", "--bundle", bundle, images, "--out", images.parent / "x.parquet")
    assert done.exit_code == 2
    assert "pip install 'dpn-plugin[parquet]'" in done.stderr
    assert not (images.parent / "x.parquet").exists()


def test_discoveries_are_decided_over_all_images(bundle: Path, images: Path) -> None:
    done = run("score", "--bundle", bundle, images, "--fdr", 0.5, "--json")
    table = pd.DataFrame(json.loads(done.stdout))
    for name in DETECTORS:
        expected = benjamini_hochberg(table[f"{name}.p_value"].to_numpy(), 0.5)
        assert table[f"{name}.rejected"].tolist() == expected.tolist()


def test_many_images_are_scored_in_batches(bundle: Path, images: Path) -> None:
    from dpn_plugin.deploy import list_files, load_bundle, score_files

    np.savez(images.parent / "a.npz", images=np.zeros((3, 8, 8), np.uint8))
    files = list_files([images, images.parent / "a.npz"])
    steps = list(score_files(load_bundle(bundle, "cpu"), files, batch_size=16))
    assert [done for done, _ in steps] == [16, 32, 40, 41]
    assert [len(table) for _, table in steps] == [16, 16, 8, 3]


def test_a_monitor_reports_the_alarm(bundle: Path, images: Path) -> None:
    pytest.importorskip("mapie")
    strange = images.parent / "strange"
    strange.mkdir()
    noise = np.random.default_rng(0).integers(0, 256, (60, 8, 8)).astype(np.uint8)
    for index, image in enumerate(noise):
        Image.fromarray(image).save(strange / f"{index:03}.png")
    options = ["--bundle", bundle, "--detector", "mahalanobis"]
    quiet = json.loads(run("monitor", *options, images, "--json").stdout)
    assert (quiet["alarm"], quiet["images"]) == (None, 40)
    picture = images.parent / "evidence.png"
    done = run("monitor", *options, images, strange, "--out", picture)
    assert done.exit_code == 0, done.output
    assert "Alarm at image" in done.stdout
    assert "█" in done.stdout
    assert picture.is_file()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["score"], "either --bundle or --run"),
        (["score", "--run", "RUN", "--fdr", "0.1"], "--fdr needs p-values"),
        (["score", "--bundle", "BUNDLE", "--detector", "knn"], "--detector is for --run"),
        (["score", "--bundle", "BUNDLE", "--fdr", "2"], "--fdr must be between 0 and 1, not 2"),
        (["monitor", "--bundle", "BUNDLE", "--order", "size"], "--order must be 'name' or 'time'"),
        (["monitor", "--bundle", "BUNDLE", "--false-alarm", "0"], "false_alarm must be between"),
    ],
)
def test_mistakes_are_named(bundle: Path, trained: Path, images: Path, arguments, message) -> None:
    places = {"RUN": trained, "BUNDLE": bundle}
    done = run(*(places.get(each, each) for each in arguments), images)
    assert done.exit_code == 2
    assert message in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--alpha", "1.5"], "alpha: Input should be less than 1, not 1.5"),
        (["--set", "knn.k=3"], "Options are given for 'knn', which is not among the detectors"),
        (["--alpha", "0.0001"], "needs at least 9999 calibration samples"),
    ],
)
def test_impossible_bundles_are_refused(trained: Path, tmp_path: Path, options, message) -> None:
    named = ["--run", trained, "--detectors", "dpn-mi", "--out", tmp_path / "b", "--device", "cpu"]
    done = run("bundle", *named, *options)
    assert done.exit_code == 2
    assert message in " ".join(done.stderr.split())
    assert not (tmp_path / "b").exists()
