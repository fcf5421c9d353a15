"""Networks of equal configuration are trained once by every executor."""

from pathlib import Path

import pytest
from safetensors.torch import load_file
from tiny_bench import POINTS, bench, file_hashes, suite_file
from typer.testing import CliRunner

from dpn_plugin._files import file_hash
from dpn_plugin.bench import PoolExecutor, Request, count_trainings, make_plan
from dpn_plugin.bench.sharing import next_ready
from dpn_plugin.cli import app
from dpn_plugin.runs import open_run, read_run_record

METHODS = ("baseline", "deep-ensemble", "binary", "oe")
RUNS = Path("runs/mlp_synthetic")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("shared")
    bench(suite_file(out, POINTS), out, methods=METHODS)
    return out


def weights(out: Path, method: str, network: str) -> str:
    return file_hash(out / RUNS / method / "seed-0" / f"{network}.safetensors")


def test_the_plan_of_c10_trains_30_of_39_networks(tmp_path: Path) -> None:
    plan = make_plan(Request("c10", tmp_path / "out"))
    assert len(plan.runs) == 30
    assert count_trainings(plan.runs) == (39, 30)
    owners = {
        run.method: {plan.runs[index].title for index in run.shared.values()}
        for run in plan.runs
        if run.config.seed == 1 and run.shared
    }
    assert owners.keys() == {"mcdp", "deep-ensemble", "binary"}
    assert all(titles == {"vgg16_cifar baseline seed 1"} for titles in owners.values())


def test_a_shared_network_has_the_weights_that_a_training_would_give(
    shared: Path, tmp_path: Path
) -> None:
    baseline = weights(shared, "baseline", "classifier")
    assert weights(shared, "deep-ensemble", "member-0") == baseline
    assert weights(shared, "binary", "classifier") == baseline
    assert weights(shared, "deep-ensemble", "member-1") != baseline
    bench(suite_file(tmp_path, POINTS), tmp_path, methods=("binary",))
    assert weights(tmp_path, "binary", "classifier") == baseline
    assert weights(tmp_path, "binary", "binary") == weights(shared, "binary", "binary")


def test_the_record_says_where_a_network_comes_from(shared: Path) -> None:
    networks = open_run(shared / RUNS / "binary/seed-0").record.networks
    assert networks["classifier"].shared_from == "mlp_synthetic/baseline/seed-0"
    assert networks["classifier"].seconds == 0
    assert networks["classifier"].history
    assert networks["binary"].shared_from == ""


def test_a_run_of_an_earlier_benchmark_shares_its_network(shared: Path, tmp_path: Path) -> None:
    suite = suite_file(tmp_path, POINTS)
    first = bench(suite, tmp_path, methods=("deep-ensemble",))
    second = bench(suite, tmp_path, methods=("baseline",))
    assert first.steps > 0
    assert second.steps == 0
    assert weights(tmp_path, "baseline", "classifier") == weights(shared, "baseline", "classifier")


def test_a_damaged_network_is_not_shared(tmp_path: Path) -> None:
    suite = suite_file(tmp_path, POINTS)
    bench(suite, tmp_path, methods=("deep-ensemble",))
    path = tmp_path / RUNS / "deep-ensemble/seed-0/member-0.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    assert bench(suite, tmp_path, methods=("baseline",)).steps > 0


def test_a_pool_trains_as_many_networks_as_one_process(shared: Path, tmp_path: Path) -> None:
    bench(suite_file(tmp_path, POINTS), tmp_path, methods=METHODS, executor=PoolExecutor(2))
    assert file_hashes(tmp_path) == file_hashes(shared)
    copied = [
        network.shared_from
        for folder in sorted((tmp_path / RUNS).glob("*/*"))
        for network in read_run_record(folder).networks.values()
    ]
    assert sum(map(bool, copied)) == 2


def test_a_run_waits_for_the_one_whose_network_it_copies(shared: Path) -> None:
    request = Request(str(shared / "mine.toml"), shared / "other", methods=METHODS)
    runs = make_plan(request).runs  # 1 and 2 copy from 0
    assert next_ready([0, 1, 2, 3], [], runs) == 0
    assert next_ready([1, 2, 3], [0], runs) == 2
    assert next_ready([1, 2], [0], runs) == -1
    assert next_ready([1, 2], [3], runs) == 0


def test_training_starts_from_the_weights_of_another_method(tmp_path: Path) -> None:
    table = '[methods.edl]\ninit_from = "baseline"\ntrain = { lr = 1e-9 }\n'
    text = POINTS.replace('methods = ["baseline", "dpn-minus"]\n', "") + table
    bench(suite_file(tmp_path, text), tmp_path, methods=("baseline", "edl"))
    run = open_run(tmp_path / RUNS / "edl/seed-0")
    assert list(run.record.networks) == ["initial", "classifier"]
    # another rate: this is not the network of the baseline, but one that edl starts from
    initial, trained = (
        load_file(run.folder / f"{name}.safetensors") for name in ("initial", "classifier")
    )
    assert all((initial[name] - trained[name]).abs().max() < 1e-5 for name in initial)


def test_the_dry_run_lists_the_shared_trainings(tmp_path: Path, shared: Path) -> None:
    options = ["--methods", ",".join(METHODS), "--out", str(tmp_path / "out"), "--dry-run"]
    result = CliRunner().invoke(app, ["bench", str(shared / "mine.toml"), *options])
    assert result.exit_code == 0, result.output
    assert "7 networks, 5 trainings" in result.output
    rows = " ".join(result.output.split())
    assert "deep-ensemble 0 train 2 of 3" in rows
    assert "binary 0 train 1 of 2" in rows
