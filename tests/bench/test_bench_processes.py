"""Several processes evaluate together: every image goes through one of them, one of them writes."""

from pathlib import Path

import pytest
from tiny_bench import DIGITS, FORKS, Told, bench, record, suite_file, work
from two_processes import in_two_processes, torchrun

from dpn_plugin.bench import Request, make_plan, plan_for_run, run_plan

DETECTORS = ("dpn-mi", "dpn-gaussian-kl", "mahalanobis")


def evaluate(suite: Path, trained: Path | None, out: Path) -> Told:
    told, request = Told(), Request(str(suite), detectors=DETECTORS)
    plan = plan_for_run(request, trained, out) if trained else make_plan(request, out)
    run_plan(plan, out, root=out, monitor=told, device="cpu")
    return told


def one_of_two(rank: int, suite: Path, trained: Path | None, out: Path) -> None:
    evaluate(suite, trained, out)


def together(suite: Path, trained: Path | None, out: Path) -> list:
    return in_two_processes(FORKS, one_of_two, suite, trained, out)


def entries(out: Path) -> dict[str, str]:
    """The hash of every stored file."""
    return {name: digest for name, digest in work(out).items() if name.startswith("store/")}


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return suite_file(tmp_path_factory.mktemp("suite"), DIGITS, {"epochs = 2": "epochs = 1"})


@pytest.fixture(scope="module")
def alone(suite: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("alone")
    bench(suite, out, detectors=DETECTORS)
    return out


def test_merged_outputs_are_those_of_one_process(suite: Path, alone: Path, tmp_path: Path) -> None:
    trained = alone / "runs" / "test_resnet" / "baseline" / "seed-0"
    assert together(suite, trained, tmp_path) == [0, 0]
    assert entries(tmp_path) == entries(alone)
    assert len(entries(alone)) == 28  # seven sets: five to test on, training and held-out data
    assert (tmp_path / "results.csv").read_bytes() == (alone / "results.csv").read_bytes()


def test_what_is_missing_in_the_store_is_made_again_together(
    suite: Path, alone: Path, tmp_path: Path
) -> None:
    trained = alone / "runs" / "test_resnet" / "baseline" / "seed-0"
    assert together(suite, trained, tmp_path) == [0, 0]
    damaged = next((tmp_path / "store").glob("*/logits.npy"))
    damaged.write_bytes(damaged.read_bytes()[:-1])
    assert together(suite, trained, tmp_path) == [0, 0]
    assert entries(tmp_path) == entries(alone)


def test_two_processes_train_and_evaluate_a_suite(suite: Path, tmp_path: Path) -> None:
    assert together(suite, None, tmp_path) == [0, 0]
    assert record(tmp_path)["not_run"] == []
    assert (tmp_path / "results.csv").is_file()


def test_torchrun(suite: Path, alone: Path, tmp_path: Path) -> None:
    trained = alone / "runs" / "test_resnet" / "baseline" / "seed-0"
    words = ["bench", suite, "--only-eval", trained, "--detectors", ",".join(DETECTORS)]
    done = torchrun(*words, "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Results:") == 1
    assert entries(tmp_path) == entries(alone)
