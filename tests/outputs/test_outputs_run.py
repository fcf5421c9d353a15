"""The outputs of a run are computed once, one batch at a time, and read from the store."""

from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_runs import points

from dpn_plugin._distributed import Processes
from dpn_plugin.data import Samples
from dpn_plugin.errors import CannotWrite
from dpn_plugin.outputs import OutputStore, RunOutputs
from dpn_plugin.runs import Predictor, TrainedRun
from dpn_plugin.training import train

#: two batches of 256 and a smaller one
ROWS = 600


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> TrainedRun:
    return train(points(epochs=1), tmp_path_factory.mktemp("run"), device="cpu")


def samples(rows: int = ROWS, seed: int = 0) -> Samples:
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(-1, 3, (rows,), generator=generator)
    return Samples(torch.randn(rows, 2, generator=generator), labels, "drawn", ("a", "b", "c"))


@pytest.fixture
def sets() -> dict[str, Samples]:
    held_out = {"held_out": samples(7, 1), "held_out_outliers": samples(5, 2)}
    return {"test": samples(), "other": samples(3, 3), **held_out}


@pytest.fixture
def outputs(run: TrainedRun, sets: dict[str, Samples], store: OutputStore) -> RunOutputs:
    fingerprints = {name: name for name in sets}
    return RunOutputs(run, store, sets, fingerprints, Processes(torch.device("cpu")))


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The size of every batch that goes through the networks."""
    sizes: list[int] = []
    original = Predictor.outputs

    def counted(self: Predictor, x: torch.Tensor) -> dict[str, torch.Tensor]:
        sizes.append(len(x))
        assert torch.is_inference_mode_enabled()
        return original(self, x)

    monkeypatch.setattr(Predictor, "outputs", counted)
    return sizes


def test_every_batch_is_computed_once_and_labels_and_points_are_kept(
    run: TrainedRun, outputs: RunOutputs, sets: dict[str, Samples], calls: list[int]
) -> None:
    outputs.collect(["test"])
    outputs.collect(["test"])
    assert calls == [256, 256, 88]
    found = outputs.arrays("test")
    assert found.keys() == {"logits", "features", "inputs", "labels"}
    np.testing.assert_array_equal(found["labels"], sets["test"].labels)
    np.testing.assert_array_equal(found["inputs"], sets["test"].inputs)
    with torch.inference_mode():
        logits = Predictor(run)(run.transform(sets["test"].inputs))
    torch.testing.assert_close(torch.from_numpy(found["logits"].copy()), logits)


def test_only_the_sets_that_are_asked_for_are_computed(
    outputs: RunOutputs, calls: list[int]
) -> None:
    outputs.collect(["other"])
    assert calls == [3]
    with pytest.raises(KeyError):
        outputs.arrays("test")


def test_stored_outputs_are_not_computed_again(
    run: TrainedRun, outputs: RunOutputs, sets: dict[str, Samples], calls: list[int]
) -> None:
    outputs.collect(["test"])
    calls.clear()
    fingerprints = {name: name for name in sets}
    again = RunOutputs(run, outputs.store, sets, fingerprints, outputs.processes)
    again.collect(["test"])
    assert calls == []
    np.testing.assert_array_equal(again.arrays("test")["logits"], outputs.arrays("test")["logits"])


def test_other_data_has_another_key(
    run: TrainedRun, outputs: RunOutputs, sets: dict[str, Samples]
) -> None:
    fingerprints = {name: f"changed {name}" for name in sets}
    other = RunOutputs(run, outputs.store, sets, fingerprints, outputs.processes)
    hashes = [{key.hash for key in each.keys.values()} for each in (outputs, other)]
    assert not hashes[0] & hashes[1]


def test_the_caller_can_compute_gradients_between_two_batches(
    outputs: RunOutputs, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(key, batches) -> None:
        for batch in batches:
            assert batch["logits"].is_inference()
            assert not torch.is_inference_mode_enabled()
        raise CannotWrite("enough")

    monkeypatch.setattr(outputs.store, "write", write)
    with pytest.raises(CannotWrite, match="enough"):
        outputs.collect(["test"])


def test_a_pass_ends_with_the_first_batch_that_cannot_be_stored(
    outputs: RunOutputs, calls: list[int]
) -> None:
    outputs.store.root.write_text("not a folder")
    with pytest.raises(CannotWrite, match="Cannot write"):
        outputs.collect(["test"])
    assert calls == []


def test_a_full_disk_between_two_batches_is_reported(
    outputs: RunOutputs, calls: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dpn_plugin.outputs.rows.RowWriter.append", full)
    with pytest.raises(CannotWrite, match=r"Cannot write .*/outputs/\w{64}: No space left"):
        outputs.collect(["test"])
    assert calls == [256]


def test_held_out_samples_of_both_kinds_are_joined(
    outputs: RunOutputs, sets: dict[str, Samples]
) -> None:
    outputs.collect(["held_out", "held_out_outliers"])
    expected = torch.cat([sets["held_out"].labels, sets["held_out_outliers"].labels])
    np.testing.assert_array_equal(outputs.held_out()["labels"], expected)
    batches = list(outputs.batches("held_out", "held_out_outliers")())
    assert torch.equal(torch.cat([y for _, y in batches]), expected)


def test_batches_can_be_divided_among_processes(
    outputs: RunOutputs, sets: dict[str, Samples]
) -> None:
    parts = [list(outputs.batches("test", start=start, step=2)()) for start in range(2)]
    assert [[len(y) for _, y in part] for part in parts] == [[256, 88], [256]]
    assert torch.equal(parts[1][0][1], sets["test"].labels[256:512])


class BrokenPredictor:
    def outputs(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        raise FileNotFoundError("weights are gone")


def test_an_error_of_the_networks_is_not_reported_as_a_failure_to_write(
    outputs: RunOutputs, store: OutputStore, tmp_path: Path
) -> None:
    outputs.load_predictor = BrokenPredictor
    with pytest.raises(FileNotFoundError, match="weights are gone"):
        outputs.collect(["other"])
    assert list(store.root.iterdir()) == []
