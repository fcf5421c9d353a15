"""Several processes evaluate together: every image goes through one of them, one of them writes."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from tiny_bench import DIGITS, FORKS, Told, bench, record, suite_file, work

from dpn_plugin.bench import Request, make_plan, plan_for_run, run_plan

DETECTORS = ("dpn-mi", "dpn-gaussian-kl", "mahalanobis")


def one_of_two(rank: int, port: int, suite: Path, trained: Path | None, out: Path) -> None:
    torch.set_num_threads(1)
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", **place}
    evaluate(suite, trained, out)


def evaluate(suite: Path, trained: Path | None, out: Path) -> Told:
    told, request = Told(), Request(str(suite), detectors=DETECTORS)
    plan = plan_for_run(request, trained, out) if trained else make_plan(request, out)
    run_plan(plan, out, root=out, monitor=told, device="cpu")
    return told


def in_two_processes(*arguments: object) -> list[int | None]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    children = [
        FORKS.Process(target=one_of_two, args=(rank, port, *arguments)) for rank in range(2)
    ]
    for child in children:
        child.start()
    for child in children:
        child.join(180)
    return [child.exitcode for child in children]


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
    assert in_two_processes(suite, trained, tmp_path) == [0, 0]
    assert entries(tmp_path) == entries(alone)
    assert len(entries(alone)) == 28  # seven sets: five to test on, training and held-out data
    assert (tmp_path / "results.csv").read_bytes() == (alone / "results.csv").read_bytes()


def test_what_is_missing_in_the_store_is_made_again_together(
    suite: Path, alone: Path, tmp_path: Path
) -> None:
    trained = alone / "runs" / "test_resnet" / "baseline" / "seed-0"
    assert in_two_processes(suite, trained, tmp_path) == [0, 0]
    damaged = next((tmp_path / "store").glob("*/logits.npy"))
    damaged.write_bytes(damaged.read_bytes()[:-1])
    assert in_two_processes(suite, trained, tmp_path) == [0, 0]
    assert entries(tmp_path) == entries(alone)


def test_two_processes_train_and_evaluate_a_suite(suite: Path, tmp_path: Path) -> None:
    assert in_two_processes(suite, None, tmp_path) == [0, 0]
    assert record(tmp_path)["not_run"] == []
    assert (tmp_path / "results.csv").is_file()


def test_torchrun(suite: Path, alone: Path, tmp_path: Path) -> None:
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    trained = alone / "runs" / "test_resnet" / "baseline" / "seed-0"
    words = ["bench", suite, "--only-eval", trained, "--detectors", ",".join(DETECTORS)]
    done = subprocess.run(
        [*torchrun, "--nproc-per-node", "2", "-m", "dpn_plugin", *words, "--out", tmp_path],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Results:") == 1
    assert entries(tmp_path) == entries(alone)
