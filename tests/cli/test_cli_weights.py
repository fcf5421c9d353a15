"""``--weights`` and ``--pretrained`` on the command line."""

from pathlib import Path

import pytest
import timm
import torch
from typer.testing import CliRunner

from dpn_plugin.cli import app
from dpn_plugin.runs import open_run

DIGITS = ["--in-domain", "sklearn:digits", "--limit", "80", "--device", "cpu"]
TRAIN = ["train", "--backbone", "test_resnet", "--method", "baseline", *DIGITS, "--epochs", "1"]
SUITE = """
title = "tiny"
in_domain = "sklearn:digits?classes=0-6"
methods = ["baseline"]
detectors = ["dpn-mi", "mahalanobis-pp"]
seeds = 1
[far.rest]
source = "sklearn:digits?classes=7-9"
[train]
backbone = "test_resnet"
epochs = 1
image_size = 96
weights = "w.pth"
"""


def run(*arguments: object):
    return CliRunner().invoke(app, list(map(str, arguments)), prog_name="dpn")


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    torch.save(timm.create_model("test_resnet").state_dict(), tmp_path / "w.pth")
    return tmp_path / "w.pth"


def test_training_from_a_file_says_what_was_replaced(weights: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = run(*TRAIN, "--out", out, "--weights", weights, "--image-size", 96)
    assert done.exit_code == 0, done.output
    assert "Warning: " in done.stderr
    assert "has a head for 1000 classes; a new one for 10 classes" in done.stderr
    assert ".py:" not in done.stderr
    config = open_run(out).config
    assert config.weights.path == str(weights)
    assert config.network_size == 96


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--weights", "none.pth"], "none.pth. It must be a .safetensors or .pth file"),
        (["--weights", "w.pth", "--pretrained"], "cannot be given together"),
        (["--weights", "w.pth", "--backbone", "test_vit"], "does not hold weights of 'test_vit'"),
        (["--pretrained"], "are not in the cache and cannot be downloaded"),
    ],
)
def test_bad_weights_are_one_sentence_and_write_nothing(
    arguments: list[str], message: str, weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(weights.parent)
    before = sorted(weights.parent.iterdir())
    done = run(*TRAIN, "--out", "out", *arguments)
    assert done.exit_code == 2, done.output
    assert message in done.stderr.strip().splitlines()[-1]
    (weights.parent / "s.toml").write_text(SUITE.replace('weights = "w.pth"\n', ""))
    done = run("bench", "s.toml", "--out", "out", *arguments)
    assert done.exit_code == 2, done.output
    assert message in " ".join(done.stderr.split())
    (weights.parent / "s.toml").unlink()
    assert sorted(weights.parent.iterdir()) == before


def test_a_suite_names_weights_beside_itself(weights: Path, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(SUITE)
    done = run("bench", tmp_path / "s.toml", "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert "has a head for 1000 classes" in " ".join(done.stderr.split())
    trained = open_run(tmp_path / "out/runs/test_resnet/baseline/seed-0")
    assert trained.transform.size == (96, 96)
    assert trained.transform.crop < 1
    assert "mahalanobis-pp" in (tmp_path / "out/results.csv").read_text()
