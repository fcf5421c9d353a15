"""Several processes evaluate together: each computes a share, the primary one writes."""

from pathlib import Path

import pytest
from child_processes import run_in_two_processes, run_with_torchrun
from tiny_bench import DIGITS, RecordingMonitor, bench, file_hashes, record, suite_file

from dpn_plugin.evaluation import read_evaluation

DETECTORS = ("dpn-mi", "dpn-gaussian-kl", "mahalanobis")


def evaluate(suite: Path, trained: Path | None, out: Path) -> RecordingMonitor:
    return bench(suite, out, detectors=DETECTORS, only_eval=trained)


def one_of_two(rank: int, suite: Path, trained: Path | None, out: Path) -> None:
    evaluate(suite, trained, out)


def evaluate_in_two_processes(suite: Path, trained: Path | None, out: Path) -> list:
    return run_in_two_processes(one_of_two, suite, trained, out)


def entries(out: Path) -> dict[str, str]:
    """The hash of every stored file."""
    return {name: digest for name, digest in file_hashes(out).items() if name.startswith("store/")}


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return suite_file(tmp_path_factory.mktemp("suite"), DIGITS, {"epochs = 2": "epochs = 1"})


@pytest.fixture(scope="module")
def one_process(suite: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("one-process")
    bench(suite, out, detectors=DETECTORS)
    return out


def test_merged_outputs_are_those_of_one_process(
    suite: Path, one_process: Path, tmp_path: Path
) -> None:
    trained = one_process / "runs" / "test_resnet" / "baseline" / "seed-0"
    assert evaluate_in_two_processes(suite, trained, tmp_path) == [0, 0]
    assert entries(tmp_path) == entries(one_process)
    assert len(entries(one_process)) == 34  # seven sets of outputs, and scores of three detectors
    assert (tmp_path / "results.csv").read_bytes() == (one_process / "results.csv").read_bytes()


def test_damaged_outputs_are_computed_again_by_both_processes(
    suite: Path, one_process: Path, tmp_path: Path
) -> None:
    trained = one_process / "runs" / "test_resnet" / "baseline" / "seed-0"
    assert evaluate_in_two_processes(suite, trained, tmp_path) == [0, 0]
    found = read_evaluation(tmp_path / "runs" / "test_resnet" / "baseline" / "seed-0")
    assert found is not None
    damaged = tmp_path / "store" / found.outputs.in_domain_test / "logits.npy"
    damaged.write_bytes(damaged.read_bytes()[:-1])
    assert evaluate_in_two_processes(suite, trained, tmp_path) == [0, 0]
    assert entries(tmp_path) == entries(one_process)


def test_two_processes_train_and_evaluate_a_suite(suite: Path, tmp_path: Path) -> None:
    assert evaluate_in_two_processes(suite, None, tmp_path) == [0, 0]
    assert record(tmp_path)["not_run"] == []
    assert (tmp_path / "results.csv").is_file()


def test_torchrun(suite: Path, one_process: Path, tmp_path: Path) -> None:
    trained = one_process / "runs" / "test_resnet" / "baseline" / "seed-0"
    words = ["bench", suite, "--only-eval", trained, "--detectors", ",".join(DETECTORS)]
    done = run_with_torchrun(*words, "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Results:") == 1
    assert entries(tmp_path) == entries(one_process)
