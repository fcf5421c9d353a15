"""What a plan costs: the arithmetic by hand, and counts against what a benchmark writes."""

from pathlib import Path

import pytest
import torch
from tiny_bench import DIGITS, POINTS, bench, suite_file
from typer.testing import CliRunner

from dpn_plugin.bench import (
    LocalExecutor,
    PoolExecutor,
    Request,
    estimate_plan,
    load_suite_data,
    make_plan,
    why_too_large,
)
from dpn_plugin.bench.estimate.costs import (
    RECORD_BYTES,
    Cost,
    PlanCost,
    Speed,
    Work,
    detector_passes,
    makespan,
    run_cost,
    store_bytes,
    stored_seconds,
)
from dpn_plugin.cli import app

SPEED = Speed(step=(0.5, 0.8), forward=0.01, save=2.0, weights=1000, memory=700)


def test_training_is_steps_selection_and_checkpoints() -> None:
    work = Work(steps=(10, 20), step_images=(32, 48), saves=3, held_out=300, weight_files=2)
    cost = run_cost(work, SPEED)
    assert cost.seconds == pytest.approx(10 * 0.5 + 20 * 0.8 + 300 * 0.01 + 3 * 2.0)
    assert cost.images == cost.forwards == 10 * 32 + 20 * 48 + 300
    assert cost.disk == 2 * 1000 + RECORD_BYTES


def test_outputs_are_computed_once_and_images_read_again_for_detectors() -> None:
    work = Work(
        collected=1000, networks=5, fitted=600, scored=400, fit_passes=2.0, score_passes=3.5,
        stored_seconds=1.5, store=123, fit_memory=900,
    )  # fmt: skip
    cost = run_cost(work, SPEED, base_memory=50)
    assert cost.images == 1000 + 600 + 400
    assert cost.forwards == 5000 + 1200 + 1400
    assert cost.seconds == pytest.approx(7600 * 0.01 + 1.5)
    assert cost.disk == 123 + RECORD_BYTES
    assert cost.memory == 50 + 900


def test_detectors_that_read_images_share_one_pass() -> None:
    assert detector_passes(["odin", "nacue"], ["nacue"]) == (1 + 1.0, 1 + 2.0 + 1.0)
    assert detector_passes(["a plugin's"], []) == (0, 1 + 1.0)
    assert detector_passes([], []) == (0, 0)
    assert stored_seconds(["energy-based", "open-max"], 1000) == pytest.approx(0.024 + 0.6)


def test_stored_outputs_have_the_size_of_their_arrays() -> None:
    assert store_bytes({"a": 100, "b": 50}, [40, 2048, 8]) == 150 * 2096 + 2 * (900 + 3 * 128)


def test_runs_at_a_time_end_when_the_last_one_does() -> None:
    assert makespan([3.0, 1.0, 1.0, 1.0], 1) == 6.0
    assert makespan([3.0, 1.0, 1.0, 1.0], 2) == 3.0
    assert makespan([3.0, 1.0, 1.0], 3, {2: [0]}) == 4.0
    assert makespan([], 2) == 0.0


def test_the_total_adds_up_and_the_largest_runs_decide_the_memory() -> None:
    runs = [Cost(1, 2, 3.0, 4, 500), Cost(10, 20, 30.0, 40, 700), Cost(0, 0, 1.0, 0, 100)]
    cost = PlanCost(runs, shared=Cost(5, 5, 5.0, 5))
    assert cost.total == Cost(16, 27, 39.0, 49, 700)
    assert cost.memory_with(2) == 1200
    assert cost.seconds_with(2) == 5.0 + 30.0


def test_the_example_on_paper_in_the_documentation() -> None:
    train, held_out, test = 1_153_050, 128_117, 130_908
    fitted = ["gram", "multi-mahalanobis", "nacue"]
    others = ["grad-norm", "grad-uncertainty", "mahalanobis-odin", "odin", "rank-feat"]
    passes = detector_passes([*fitted, *others], fitted)
    assert passes == pytest.approx((2.3, 7.6))
    sets = {"train": train, "held_out": held_out, "tests": test}
    work = Work(
        collected=sum(sets.values()), fitted=train, scored=test, fit_passes=passes[0],
        score_passes=passes[1], store=store_bytes(sets, [4000, 4096, 8]), weight_files=1,
    )  # fmt: skip
    one = run_cost(work, Speed((0.0, 0.0), 1 / 1500, 0.0, 160_000_000, 0))
    assert one.images == 2_696_033
    assert one.forwards == pytest.approx(5_058_991, abs=1)
    assert one.seconds / 3600 == pytest.approx(0.94, abs=0.005)
    everything = PlanCost([one] * 40)
    assert everything.total.seconds / 3600 == pytest.approx(37, abs=0.5)
    assert everything.seconds_with(8) / 3600 == pytest.approx(4.7, abs=0.05)
    assert everything.total.disk / 1e9 == pytest.approx(464, abs=0.5)


def test_what_does_not_fit_is_said(tmp_path: Path) -> None:
    much = PlanCost([Cost(disk=10**18, memory=10**18)])
    disk, memory = why_too_large(much, tmp_path / "not" / "there", 1)
    assert "1000000000.00 GB" in disk
    assert "--out" in disk
    assert memory.startswith("A run needs about 1000000000.0 GB of memory")
    assert why_too_large(PlanCost([Cost(disk=10, memory=10)]), tmp_path, 1) == []


@pytest.fixture(params=[POINTS, DIGITS], ids=["points", "digits"])
def suite(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return suite_file(tmp_path, request.param)


def test_images_and_disk_are_those_of_the_benchmark(suite: Path, tmp_path: Path) -> None:
    plan = make_plan(Request(str(suite), tmp_path / "out", device="cpu"))
    cost = estimate_plan(plan, load_suite_data(plan), timed=False)
    assert cost.total.seconds < 1  # nothing is timed: only what a table says of detectors
    monitor = bench(suite, tmp_path / "out")
    store = [p for p in (tmp_path / "out" / "store").rglob("*") if p.is_file()]
    weights = list((tmp_path / "out" / "runs").rglob("*.safetensors"))
    written = sum(path.stat().st_size for path in (*store, *weights))
    expected = cost.total.disk - len(plan.runs) * RECORD_BYTES
    assert expected == pytest.approx(written, rel=0.1)
    assert monitor.steps > 0
    again = estimate_plan(plan, load_suite_data(plan), timed=False)
    assert again.total.images == 0  # all of it is there now


def test_a_few_batches_give_a_time(tmp_path: Path) -> None:
    suite = suite_file(tmp_path, POINTS)
    plan = make_plan(Request(str(suite), tmp_path / "out", device="cpu"))
    before = torch.get_rng_state()
    cost = estimate_plan(plan, load_suite_data(plan))
    assert torch.equal(torch.get_rng_state(), before)
    assert all(0 < each.seconds < 600 for each in cost.runs)
    assert not (tmp_path / "out").exists()


def test_a_dry_run_prints_the_cost_of_every_run(tmp_path: Path) -> None:
    suite = suite_file(tmp_path, POINTS)
    arguments = ["bench", str(suite), "--out", str(tmp_path / "out"), "--dry-run"]
    timed = CliRunner().invoke(app, [*arguments, "--jobs", "2"])
    assert "Estimated cost" in timed.output
    assert "2 runs at a time:" in timed.output
    untimed = CliRunner().invoke(app, [*arguments, "--no-timing"])
    assert untimed.exit_code == 0
    assert "runs at a time" not in untimed.output
    assert not (tmp_path / "out").exists()


def test_executors_say_how_many_runs_they_carry_out() -> None:
    assert LocalExecutor().slots() == 1
    assert PoolExecutor(3).slots() == 3
