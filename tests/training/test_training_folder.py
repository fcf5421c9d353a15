"""A run's folder is written once everything is checked, and it belongs to one configuration."""

import json
from pathlib import Path

import numpy as np
import pytest
from tiny_runs import CallAtStep, digits, points, weight_hashes

from dpn_plugin.errors import UserError
from dpn_plugin.runs import open_run
from dpn_plugin.training import train


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (points(backbone="resnet19"), "Unknown backbone 'resnet19'. Did you mean .*'resnet18'"),
        (points("dpn-minsu"), "Unknown method 'dpn-minsu'. Did you mean 'dpn-minus'"),
        (
            points("oe", outliers=None),
            "'oe' needs outliers .* need none are, for example, 'baseline'",
        ),
        (points(in_domain="sklearn:digit"), "'digit'. Did you mean 'digits'"),
        (points(in_domain="npz:no.npz"), "npz:no.npz was not found"),
        (points(in_domain="synthetic:gaussians-ood"), "no label or a negative one"),
        (points(backbone="test_resnet"), "takes inputs of .* the data has shape"),
        (points(optimizer="adm"), "Unknown optimizer 'adm'. Did you mean .*'adam'"),
        (digits(backbone="mlp_synthetic"), "mlp_synthetic"),
        (digits(backbone="vgg16_cifar", stem="small"), "not offered for 'vgg16_cifar'"),
        (digits(outliers="synthetic:gaussians"), "points"),
    ],
    ids=lambda each: None if isinstance(each, str) else each.backbone + " " + each.method,
)
def test_a_wrong_configuration_is_refused_and_writes_nothing(
    config, message: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=message):
        train(config, tmp_path / "out", device="cpu")
    assert not (tmp_path / "out").exists()


def test_labels_below_zero_are_refused(tmp_path: Path) -> None:
    images = np.zeros((20, 8, 8), np.uint8)
    np.savez(tmp_path / "a.npz", images=images, labels=np.repeat([-1, 0, 1, 2], 5))
    with pytest.raises(UserError, match="5 of its 20 samples have no label or a negative one"):
        train(digits(in_domain="npz:a.npz"), tmp_path / "out", base=tmp_path, device="cpu")
    assert not (tmp_path / "out").exists()


def test_images_that_are_not_square_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", images=np.zeros((20, 8, 9), np.uint8), labels=np.arange(20) % 2)
    with pytest.raises(UserError, match="must be square, not 8 x 9; set image_size"):
        train(digits("baseline", in_domain="npz:a.npz"), tmp_path / "out", base=tmp_path)
    assert not (tmp_path / "out").exists()


def test_a_finished_run_is_not_trained_again(tmp_path: Path) -> None:
    train(points(), tmp_path, device="cpu")

    def fail() -> None:
        raise AssertionError("a step was made")

    again = train(points(), tmp_path, device="cpu", monitor=CallAtStep(1, fail))
    assert again.record == open_run(tmp_path).record


def test_another_configuration_is_refused_with_the_differences(tmp_path: Path) -> None:
    train(points(epochs=1), tmp_path, device="cpu")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(UserError, match=r"another run \(recipe.epochs: 1 -> 2; seed: 0 -> 3\)"):
        train(points(epochs=2, seed=3), tmp_path, device="cpu")
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_force_replaces_the_run_and_no_other_files(tmp_path: Path) -> None:
    train(points("deep-ensemble", epochs=1, options={"members": 2}), tmp_path, device="cpu")
    other = tmp_path / "other.safetensors"
    other.write_text("not of a run")
    run = train(points(epochs=1), tmp_path, device="cpu", force=True)
    assert run.config.method == "dpn-minus"
    assert {*weight_hashes(tmp_path)} == {
        "classifier.safetensors", "held_out.safetensors", other.name
    }  # fmt: skip
    assert other.read_text() == "not of a run"


def test_force_with_a_wrong_configuration_removes_nothing(tmp_path: Path) -> None:
    train(points(epochs=1), tmp_path, device="cpu")
    before = weight_hashes(tmp_path)
    with pytest.raises(UserError):
        train(points("oe", outliers=None), tmp_path, device="cpu", force=True)
    assert weight_hashes(tmp_path) == before
    open_run(tmp_path)


def test_data_that_changed_under_the_same_name_is_refused(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)

    def write() -> None:
        images = rng.integers(0, 255, (40, 8, 8), dtype=np.uint8)
        np.savez(tmp_path / "a.npz", images=images, labels=np.repeat([0, 1], 20))

    def interrupt() -> None:
        raise InterruptedError

    write()
    config = digits("baseline", in_domain="npz:a.npz")
    with pytest.raises(InterruptedError):
        train(
            config, tmp_path / "out", base=tmp_path, device="cpu", monitor=CallAtStep(1, interrupt)
        )
    write()
    with pytest.raises(UserError, match=r"not what the run .* started with"):
        train(config, tmp_path / "out", base=tmp_path, device="cpu")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "run.json is damaged: Expecting property name"),
        ("[]", "run.json is damaged: it is not a JSON object"),
        ("{}", "run.json has no format; this version reads format"),
    ],
)
def test_a_damaged_record_is_refused_unless_forced(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(UserError, match=f"{message}.* Use another folder, or --force"):
        train(points(epochs=1), tmp_path, device="cpu")
    train(points(epochs=1), tmp_path, device="cpu", force=True)
    open_run(tmp_path)


@pytest.mark.parametrize("name", ["held_out.safetensors", "history.csv", "curves.png"])
def test_a_damaged_file_is_written_again_without_training(name: str, tmp_path: Path) -> None:
    train(points(epochs=1), tmp_path, device="cpu")
    before = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(before[:-9])
    trained = (tmp_path / "classifier.safetensors").stat().st_mtime_ns
    train(points(epochs=1), tmp_path, device="cpu")
    assert (tmp_path / name).read_bytes() == before
    assert (tmp_path / "classifier.safetensors").stat().st_mtime_ns == trained


def test_a_changed_record_is_not_used(tmp_path: Path) -> None:
    train(points(epochs=1), tmp_path, device="cpu")
    record = tmp_path / "run.json"
    record.write_text(record.read_text("utf-8").replace('"finished": true', '"finished": 1'))
    with pytest.raises(UserError, match=r"is damaged: its content .* hash\. Use another folder"):
        train(points(epochs=1), tmp_path, device="cpu")
    with pytest.raises(UserError, match=r"holds no trained run: .*content does not match its hash"):
        open_run(tmp_path)


def test_the_record_holds_versions_samples_and_fingerprints(tmp_path: Path) -> None:
    train(points(epochs=1), tmp_path, device="cpu")
    record = json.loads((tmp_path / "run.json").read_text())
    assert record["versions"]["torch"]
    assert record["samples"] == {
        "train": 134, "held_out": 16, "outliers": 72, "held_out_outliers": 8
    }  # fmt: skip
    assert all(len(value) == 64 for value in record["data"].values())


def test_an_unknown_device_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="device 'quantum' cannot be used"):
        train(points(), tmp_path / "out", device="quantum")
    assert not (tmp_path / "out").exists()
