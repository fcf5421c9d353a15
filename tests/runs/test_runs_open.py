"""A finished run is opened from its folder, and its files are verified."""

import shutil
from pathlib import Path

import pytest
import torch
from tiny_runs import points

from dpn_plugin._files import file_hash
from dpn_plugin.data import Samples
from dpn_plugin.errors import UserError
from dpn_plugin.runs import (
    HELD_OUT_FILE,
    RUN_FILE,
    Network,
    Predictor,
    TrainedRun,
    create_network,
    open_run,
    predict_logits,
    read_held_out,
    read_run_record,
    write_run_record,
    write_weights,
)
from dpn_plugin.training import train


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(points(epochs=1), tmp_path_factory.mktemp("run"), device="cpu").folder


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> TrainedRun:
    return open_run(shutil.copytree(trained, tmp_path / "run"))


def test_a_run_knows_its_configuration_classes_and_weights(run: TrainedRun) -> None:
    assert run.config == points(epochs=1)
    assert run.method.name == "dpn-minus"
    assert run.num_classes == 3
    assert run.weights_hash == file_hash(run.folder / "classifier.safetensors")
    assert run.transform.size is None


def test_a_run_can_be_opened_by_a_string(run: TrainedRun) -> None:
    assert open_run(str(run.folder)) == run


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"holds no trained run: it has no run\.json"):
        open_run(tmp_path)


def test_a_damaged_record_is_refused(run: TrainedRun) -> None:
    (run.folder / RUN_FILE).write_text("{")
    with pytest.raises(UserError, match=r"holds no trained run: .*run\.json is damaged: Expecting"):
        open_run(run.folder)


def test_a_run_that_is_not_finished_is_refused(run: TrainedRun) -> None:
    record = read_run_record(run.folder)
    record.finished = False
    write_run_record(run.folder, record)
    with pytest.raises(UserError, match="is not finished; the same dpn train continues it"):
        open_run(run.folder)


def test_networks_are_loaded_in_evaluation_mode(run: TrainedRun) -> None:
    backbone = run.load_network(run.method.networks[0])
    assert not backbone.training
    assert backbone(torch.randn(4, 2)).shape == (4, 3)


def test_an_unknown_network_is_refused(run: TrainedRun) -> None:
    with pytest.raises(UserError, match=r"run\.json lists no network 'binary'"):
        run.load_network(Network("binary", "ce"))


def test_exchanged_weights_are_not_used(run: TrainedRun) -> None:
    file = run.folder / "classifier.safetensors"
    file.write_bytes(file.read_bytes()[:-4] + b"\0\0\0\1")
    with pytest.raises(UserError, match="damaged or was exchanged"):
        Predictor(run)


def test_missing_weights_are_reported(run: TrainedRun) -> None:
    (run.folder / "classifier.safetensors").unlink()
    with pytest.raises(UserError, match=r"classifier\.safetensors are missing; train the run"):
        Predictor(run)


def test_an_ood_classifier_has_two_classes() -> None:
    network = Network("binary", "ce", is_ood_classifier=True)
    assert create_network(points(), network, (2,), 3)(torch.randn(4, 2)).shape == (4, 2)


def test_held_out_logits_are_those_of_the_networks(run: TrainedRun) -> None:
    held_out = read_held_out(run)
    assert held_out["logits"].shape == (24, 3)
    assert int((held_out["labels"] < 0).sum()) == 8


def test_logits_are_predicted_for_all_samples(run: TrainedRun) -> None:
    samples = Samples(torch.randn(300, 2), torch.zeros(300, dtype=torch.int64), "points")
    predictor = Predictor(run)
    found = predict_logits(predictor, run, samples, torch.device("cpu"))
    with torch.no_grad():
        torch.testing.assert_close(found, predictor(run.transform(samples.inputs)))


def test_damaged_held_out_logits_are_not_used(run: TrainedRun) -> None:
    path = run.folder / HELD_OUT_FILE
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(UserError, match="is missing or damaged; the same dpn train or dpn bench"):
        read_held_out(run)
    path.unlink()
    with pytest.raises(UserError, match="is missing or damaged; the same dpn train or dpn bench"):
        read_held_out(run)


def test_held_out_files_without_logits_are_not_used(run: TrainedRun) -> None:
    sha256 = write_weights(run.folder / HELD_OUT_FILE, {"scores": torch.zeros(1)})
    run.record.files[HELD_OUT_FILE] = sha256
    with pytest.raises(UserError, match=r"must hold logits and labels, not \['scores'\]"):
        read_held_out(run)


def test_the_representation_of_a_run_is_one_line(run: TrainedRun) -> None:
    expected = f"TrainedRun('mlp_synthetic', 'dpn-minus', seed=0, folder={str(run.folder)!r})"
    assert repr(run) == str(run) == expected
