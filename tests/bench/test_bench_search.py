"""``[search]``: an equal budget for every method, decided by held-out data alone."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.metrics import roc_auc_score
from tiny_bench import POINTS, bench, results, suite_file, write_times

from dpn_plugin import functional
from dpn_plugin.bench import (
    LocalExecutor,
    PoolExecutor,
    Request,
    SearchRecord,
    make_plan,
    read_searches,
)
from dpn_plugin.bench.search import SearchTable, trials
from dpn_plugin.bench.search.space import draw_values
from dpn_plugin.errors import UserError
from dpn_plugin.evaluation import held_out_figures
from dpn_plugin.report import update_report
from dpn_plugin.runs import read_run_record, write_run_record
from dpn_plugin.runs.methods import BASELINE, BINARY, DPN_MINUS

SEARCH = """
[search]
trials = 3
seed = 5
[search.train]
lr = { low = 1e-4, high = 1e-2, log = true }
[search.methods.dpn-minus]
lambda_out = { low = -0.6, high = 0.0 }
gamma = [0.5, 1.0, 2.0]
"""
SUITE = POINTS + SEARCH


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("searched")
    bench(suite_file(out, SUITE), out)
    return out


def by_method(out: Path) -> dict[str, SearchRecord]:
    return {each.method: each for each in read_searches(out)}


def test_every_method_gets_the_same_number_of_trials_within_its_ranges(searched: Path) -> None:
    found = by_method(searched)
    assert set(found) == {"baseline", "dpn-minus"}
    for record in found.values():
        assert (len(record.trials), record.finished) == (3, True)
        assert record.trials[0].values == {}  # the settings of the suite
        assert all(1e-4 <= each.values["lr"] <= 1e-2 for each in record.trials[1:])
    own = found["dpn-minus"].trials[1:]
    assert all(-0.6 <= each.values["lambda_out"] <= 0 for each in own)
    assert all(each.values["gamma"] in (0.5, 1.0, 2.0) for each in own)
    assert set(found["baseline"].trials[1].values) == {"lr"}


def test_the_runs_are_trained_with_what_was_chosen(searched: Path) -> None:
    for method, record in by_method(searched).items():
        chosen = record.chosen
        assert record.value(chosen) == max(map(record.value, record.trials))
        config = read_run_record(searched / f"runs/mlp_synthetic/{method}/seed-0").config
        assert config.options == {k: v for k, v in chosen.values.items() if k == "lambda_out"}
        if "lr" in chosen.values:
            assert config.recipe.lr == chosen.values["lr"]


def test_other_test_sets_change_nothing_in_a_search(searched: Path, tmp_path: Path) -> None:
    """Held-out data decides: suites that differ in all of their test data choose the same."""
    changes = {
        'source = "synthetic:gaussians"\nsplit = "test"': 'source = "synthetic:gaussians"\n'
        'split = "test"\nlimit = 31',
        'source = "synthetic:gaussians-ood"\nsplit = "test"': 'source = "synthetic:gaussians-ood"\n'
        'split = "test"\nlimit = 17',
    }
    bench(suite_file(tmp_path, SUITE, changes), tmp_path)
    before = json.loads((searched / "bench.json").read_text())["fingerprints"]
    after = json.loads((tmp_path / "bench.json").read_text())["fingerprints"]
    assert not set(before.values()) & set(after.values())
    for method, record in by_method(tmp_path).items():
        known = by_method(searched)[method]
        assert without_seconds(record) == without_seconds(known)


def without_seconds(record: SearchRecord) -> list[dict]:
    return [each.model_dump(exclude={"seconds"}) for each in record.trials]


def test_the_data_of_a_search_is_that_of_training_and_held_out(searched: Path) -> None:
    known = json.loads((searched / "bench.json").read_text())["fingerprints"]
    for record in by_method(searched).values():
        assert set(record.data) <= {"train", "held_out", "outliers", "held_out_outliers"}
        assert not set(record.data.values()) & set(known.values())


def test_a_second_start_does_nothing(searched: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = write_times(searched)
    monkeypatch.setattr(trials, "train", None)
    monitor = bench(searched / "mine.toml", searched)
    assert monitor.steps == 0
    assert write_times(searched) == before


def test_an_interrupted_search_goes_on_and_ends_alike(
    searched: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls, train = [], trials.train

    def interrupted(*args, **options):
        calls.append(args)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return train(*args, **options)

    monkeypatch.setattr(trials, "train", interrupted)
    path = suite_file(tmp_path, SUITE)
    with pytest.raises(KeyboardInterrupt):
        bench(path, tmp_path)
    bench(path, tmp_path)
    assert len(calls) == 3 + 4  # two trials were recorded, four were left
    for method, record in by_method(tmp_path).items():
        assert without_seconds(record) == without_seconds(by_method(searched)[method])
    assert not list(tmp_path.glob("search/*/*/"))  # no networks of trials are left
    assert results(tmp_path).equals(results(searched))


def test_several_jobs_start_after_the_search_with_the_same_result(
    searched: Path, tmp_path: Path
) -> None:
    bench(suite_file(tmp_path, SUITE), tmp_path, executor=PoolExecutor(2))
    assert results(tmp_path).equals(results(searched))


@pytest.mark.parametrize("damage", ["changed", "truncated", "emptied", "removed"])
def test_a_damaged_record_is_searched_again_and_the_runs_stay(
    damage: str, searched: Path, tmp_path: Path
) -> None:
    out = shutil.copytree(searched, tmp_path / "copy")
    path = out / "search/mlp_synthetic/dpn-minus.json"
    text = path.read_text()
    changed = re.sub('"accuracy": 0', '"accuracy": 1', text, count=1)
    assert changed != text
    if damage == "removed":
        path.unlink()
    else:
        path.write_text({"changed": changed, "truncated": text[:300], "emptied": ""}[damage])
    bench(out / "mine.toml", out)
    assert without_seconds(by_method(out)["dpn-minus"]) == without_seconds(
        by_method(searched)["dpn-minus"]
    )
    assert results(out).equals(results(searched))


def test_another_choice_is_refused_where_runs_of_the_first_one_are(
    searched: Path, tmp_path: Path
) -> None:
    out = shutil.copytree(searched, tmp_path / "copy")
    path = out / "runs/mlp_synthetic/dpn-minus/seed-0"
    record = read_run_record(path)
    record.config = record.config.model_copy(update={"options": {"lambda_out": -0.123}})
    write_run_record(path, record)
    with pytest.raises(UserError, match=r"holds a run of another plan .*lambda_out"):
        bench(out / "mine.toml", out)
    (out / "search/mlp_synthetic/dpn-minus.json").unlink()
    with pytest.raises(UserError, match=r"holds a run of another plan .*lambda_out"):
        bench(out / "mine.toml", out)


def test_a_trial_that_loses_accuracy_ranks_below_all_that_do_not() -> None:
    settings = {
        "trials": 3, "sampler": "random", "seed": 0, "tolerance": 0.01, "space": {},
        "identity": "", "code": {},
    }  # fmt: skip
    figures = [(0.90, 0.80), (0.85, 0.99), (0.895, 0.81), (None, None)]
    found = [{"values": {}, "accuracy": a, "auroc": b} for a, b in figures]
    record = SearchRecord.model_validate(
        {"backbone": "b", "method": "m", "settings": settings, "trials": found}
    )
    order = sorted(range(4), key=lambda i: -record.value(record.trials[i]))
    assert order == [2, 0, 1, 3]
    assert record.chosen == record.trials[2]
    assert "at most 1 points less held-out accuracy" in record.objective


def test_without_outliers_the_held_out_accuracy_decides(searched: Path) -> None:
    record = by_method(searched)["baseline"]
    assert all(each.auroc is None for each in record.trials)
    assert [record.value(each) for each in record.trials] == [t.accuracy for t in record.trials]
    assert record.objective == "held-out accuracy"


def test_held_out_figures_are_those_of_scikit_learn() -> None:
    generator = torch.Generator().manual_seed(0)
    logits = [torch.randn(n, 4, generator=generator) * 2 for n in (60, 50)]
    labels = torch.randint(4, (60,), generator=generator)
    inside = {"logits": logits[0].numpy(), "labels": labels.numpy()}
    outside = {"logits": logits[1].numpy() - 0.3, "labels": np.full(50, -1)}
    found = held_out_figures(DPN_MINUS, inside, outside)
    assert found["accuracy"] == pytest.approx(float((logits[0].argmax(1) == labels).float().mean()))
    both = torch.cat([logits[0], logits[1] - 0.3]).double()
    scores = {
        "dpn-maxp": functional.one_minus_max_p(both),
        "dpn-entropy": functional.entropy(both),
        "dpn-mi": functional.mutual_information(both),
        "dpn-precision": -functional.log_precision(both),
        "dpn-dent": -functional.log_neg_differential_entropy(both),
    }
    target = np.repeat([0, 1], [60, 50])
    expected = {name: roc_auc_score(target, each.numpy()) for name, each in scores.items()}
    assert found["auroc"] == pytest.approx(max(expected.values()), abs=1e-6)
    assert found["measure"] == max(expected, key=expected.__getitem__)
    assert set(held_out_figures(BASELINE, inside)) == {"accuracy"}
    ood_logits = {"ood_logits": np.zeros((60, 2), "float32")}
    binary = held_out_figures(
        BINARY, inside | ood_logits, outside | {"ood_logits": np.ones((50, 2), "float32") * [0, 1]}
    )
    assert (binary["auroc"], binary["measure"]) == (1.0, "binary")


def test_random_values_cover_their_ranges() -> None:
    space = SearchTable.model_validate(
        {"train": {"lr": {"low": 1e-4, "high": 1.0, "log": True}, "epochs": [1, 2, 3, 4]}}
    ).train
    for seed in range(5):
        drawn = [draw_values(space, seed, number, 4) for number in range(4)]
        assert sorted(int(np.log10(each["lr"] / 1e-4)) for each in drawn) == [0, 1, 2, 3]
        assert sorted(each["epochs"] for each in drawn) == [1, 2, 3, 4]
    assert draw_values(space, 0, 1, 4) != draw_values(space, 1, 1, 4)


def test_a_grid_tries_every_combination_once_and_then_stops(tmp_path: Path) -> None:
    text = POINTS + '[search]\ntrials = 9\nsampler = "grid"\n[search.train]\nlr = [1e-3, 1e-2]\n'
    text += "[search.methods.dpn-minus]\ngamma = [0.5, 1.0]\n"
    bench(suite_file(tmp_path, text), tmp_path)
    found = by_method(tmp_path)
    assert [each.values for each in found["baseline"].trials].count({}) == 1
    assert len(found["baseline"].trials) == 3  # the suite's and two more
    tried = {tuple(each.values.items()) for each in found["dpn-minus"].trials[1:]}
    assert len(tried) == 4


def test_optuna_proposes_after_the_trials_so_far(tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    text = SUITE.replace("trials = 3", 'trials = 4\nsampler = "tpe"')
    bench(suite_file(tmp_path, text), tmp_path, methods=("dpn-minus",))
    (record,) = read_searches(tmp_path)
    own = record.trials[1:]
    assert len({each.values["lr"] for each in own}) == 3
    assert all(1e-4 <= each.values["lr"] <= 1e-2 for each in own)


def test_without_optuna_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    text = SUITE.replace("trials = 3", 'trials = 2\nsampler = "tpe"')
    with pytest.raises(UserError, match=r"dpn-plugin\[search\]"):
        bench(suite_file(tmp_path, text), tmp_path, methods=("baseline",))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("[search.methods.dpn-minus]", "[search.methods.dpn-minis]"), "Did you mean 'dpn-minus'"),
        (("lambda_out = {", "lamda_out = {"), r"dpn-minus\.lamda_out"),
        (("lr = { low = 1e-4", "lr = { low = 1"), "low must be below high"),
        (("lr = { low = 1e-4", "lr = { low = 0"), "log needs numbers above 0"),
        (("lr = {", "lrr = {"), "Did you mean 'lr'"),
        (("gamma = [0.5, 1.0, 2.0]", "hold_out = [0.1, 0.2]"), "trials could not be compared"),
        (("gamma = [0.5, 1.0, 2.0]", "gamma = [0.5, -1.0]"), r"dpn-minus\.gamma = -1"),
        (("trials = 3", "trials = 0"), "greater than or equal to 1"),
        (("trials = 3", 'trials = 3\nsampler = "grid"'), "takes lists of values"),
        (("trials = 3", "trails = 3"), "trails"),
    ],
)
def test_mistakes_are_found_before_anything_is_trained(
    change: tuple[str, str], message: str, tmp_path: Path
) -> None:
    path = suite_file(tmp_path, SUITE, dict([change]))
    with pytest.raises(UserError, match=message):
        make_plan(Request(suite=str(path), out=tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_a_dry_run_says_what_will_be_searched(
    searched: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from dpn_plugin.cli.bench_tables import print_plan

    request = Request(suite=str(suite_file(tmp_path, SUITE)), out=tmp_path)
    print_plan(make_plan(request), LocalExecutor())
    shown = " ".join(capsys.readouterr().out.split())
    assert "Search first, in one process: mlp_synthetic dpn-minus, 3 trials (random)" in shown
    assert "lr 0.0001 to 0.01 (log); lambda_out -0.6 to 0; gamma 0.5, 1.0, 2.0" in shown
    assert not (tmp_path / "search").exists()
    request = Request(suite=str(searched / "mine.toml"), out=searched)
    print_plan(make_plan(request), LocalExecutor())
    assert "Searched before: mlp_synthetic dpn-minus" in " ".join(capsys.readouterr().out.split())


def test_a_run_of_a_search_can_be_evaluated_elsewhere(searched: Path, tmp_path: Path) -> None:
    run = searched / "runs/mlp_synthetic/dpn-minus/seed-0"
    bench(searched / "mine.toml", tmp_path, only_eval=run)
    assert len(results(tmp_path)) > 0
    assert not (tmp_path / "search").exists()


def test_the_report_shows_budget_ranges_and_choice(searched: Path) -> None:
    page = update_report(searched).read_text("utf-8")
    assert "3 (random, seed 5)" in page
    assert "lr 0.0001 to 0.01 (log); lambda_out -0.6 to 0; gamma 0.5, 1.0, 2.0" in page
    assert "AUROC on held-out outliers, with at most 1 points less held-out accuracy" in page
    assert "Maximised for baseline: held-out accuracy." in page
    table = pd.read_csv(searched / "tables/search.csv")
    assert list(table["method"]) == ["baseline"] * 3 + ["dpn-minus"] * 3
    assert table.groupby("method")["chosen"].sum().eq(1).all()
    text = (searched / "tables/search.md").read_text("utf-8")
    assert text.count("\n") == 4


def test_a_changed_search_makes_the_report_stale(searched: Path, tmp_path: Path) -> None:
    out = shutil.copytree(searched, tmp_path / "copy")
    page = update_report(out)
    before = page.stat().st_mtime_ns
    update_report(out)
    assert page.stat().st_mtime_ns == before
    (out / "search/mlp_synthetic/baseline.json").unlink()
    update_report(out)
    assert "Maximised for baseline" not in page.read_text("utf-8")
