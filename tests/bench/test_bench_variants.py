"""Methods with other options: how suites and commands name them, and what they are called."""

from pathlib import Path

import pytest
from tiny_bench import POINTS, bench, record, results, suite_file

from dpn_plugin.bench import Request, join_options, load_suite, make_plan
from dpn_plugin.bench.variants import PAPER_METHODS, MethodsTable, find_variant
from dpn_plugin.errors import UserError
from dpn_plugin.runs import open_run

DEFINED = """
[methods]
run = ["baseline", "no-out", "dpn-minus:gamma=2"]
[methods.no-out]
base = "dpn-minus"
options = { lambda_out = 0.0 }
train = { lr = 1e-3 }
"""


def plan(folder: Path, methods: str, **request):
    text = POINTS.replace('methods = ["baseline", "dpn-minus"]\n', "") + methods
    return make_plan(Request(str(suite_file(folder, text)), folder / "out", **request))


def labels(folder: Path, methods: str, **request) -> list[str]:
    return [run.method for run in plan(folder, methods, **request).runs]


def test_a_suite_defines_methods_and_lists_what_is_run(tmp_path: Path) -> None:
    runs = {run.method: run.config for run in plan(tmp_path, DEFINED).runs}
    assert list(runs) == ["baseline", "no-out", "dpn-minus:gamma=2"]
    assert (runs["no-out"].method, runs["no-out"].options) == ("dpn-minus", {"lambda_out": 0.0})
    assert runs["no-out"].recipe.lr == 1e-3
    assert runs["dpn-minus:gamma=2"].recipe.lr == runs["baseline"].recipe.lr == 5e-3


def test_without_a_list_the_methods_of_a_suite_follow_those_of_the_paper() -> None:
    table = MethodsTable.model_validate({"mine": {"base": "oe"}, "edl": {"init_from": "baseline"}})
    assert table.run == [*PAPER_METHODS, "mine"]


def test_options_given_by_command_are_added_to_those_of_the_suite() -> None:
    table = MethodsTable.model_validate(
        {"mine": {"base": "dpn-minus", "options": {"lambda_out": 0.0, "gamma": 1.0}}}
    )
    found = find_variant("mine:gamma=2,lambda_in=0.25", table)
    assert found.label == "mine:gamma=2,lambda_in=0.25"
    assert found.method == "dpn-minus"
    assert found.options == {"lambda_out": 0.0, "gamma": 2, "lambda_in": 0.25}


def test_options_stay_with_the_method_before_them() -> None:
    text = "oe,dpn-minus:lambda_in=0,lambda_out=-0.5,baseline,deep-ensemble:members=5"
    assert join_options(text.split(",")) == (
        "oe",
        "dpn-minus:lambda_in=0,lambda_out=-0.5",
        "baseline",
        "deep-ensemble:members=5",
    )


def test_every_variant_has_its_own_rows_folder_and_label(tmp_path: Path) -> None:
    suite, out = suite_file(tmp_path, POINTS), tmp_path / "out"
    variant = "dpn-minus:lambda_out=0"
    bench(suite, out, methods=("dpn-minus", variant), detectors=("dpn-mi",))
    found = results(out)
    values = found[found["metric"].eq("auroc")].groupby("method")["value"].first()
    assert set(found["method"]) == {"dpn-minus", variant}
    assert values["dpn-minus"] != values[variant]
    run = open_run(out / "runs/mlp_synthetic/dpn-minus,lambda_out=0/seed-0")
    assert run.config.options == {"lambda_out": 0}
    assert record(out)["methods"] == ["dpn-minus", variant]
    again = bench(suite, out, methods=(variant,), again=(variant,), detectors=("dpn-mi",))
    assert again.steps > 0
    assert again.runs == [f"mlp_synthetic {variant} seed 0"]


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        ('methods = ["dpn-minos"]', "Unknown method 'dpn-minos'.*'dpn-minus'"),
        ("[methods.mine]\nbase = 'dpn-minos'", "methods.mine.*'dpn-minos'.*'dpn-minus'"),
        ("[methods.mine]\noptions = {gamma = 1.0}", "methods.mine.*needs base"),
        ("[methods.mine]\nbasis = 'oe'", "basis.*base"),
        ('methods = ["dpn-minus:lambda_out"]', "options are key=value.*'lambda_out' is not"),
        ('methods = ["dpn-minus:lambda_oat=0"]', "'dpn-minus:lambda_oat=0'.*'lambda_out'"),
        ('methods = ["dpn-minus:gamma=-1"]', "'dpn-minus:gamma=-1': gamma must be.*above 0"),
        ("[methods.'../x']\nbase = 'oe'", "name must start with a letter"),
        ("[methods.mine]\nbase = 'oe'\ntrain = { lrr = 1 }", "methods.mine.*lrr.*'lr'"),
        ("[methods.edl]\ninit_from = 'deep-ensemble'", "trains 3 networks"),
        ("[methods.edl]\ninit_from = 'oe'", "trained with outliers"),
        ("methods = []", "methods.*at least 1"),
    ],
)
def test_a_mistake_is_named_before_anything_is_trained(
    tmp_path: Path, methods: str, message: str
) -> None:
    # a bare key belongs before the first table of the file
    top, table = (methods + "\n", "") if methods.startswith("methods") else ("", methods)
    text = top + POINTS.replace('methods = ["baseline", "dpn-minus"]\n', "") + table
    with pytest.raises(UserError, match=f"(?s){message}"):
        make_plan(Request(str(suite_file(tmp_path, text)), tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_the_ablations_of_the_paper_are_methods_of_its_suite() -> None:
    _, suite, _ = load_suite("c100")
    found = {name: find_variant(name, suite.methods) for name in suite.methods.run}
    assert found["dpn-minus-in0"].options == {"lambda_in": 0.0, "lambda_out": -0.5}
    assert found["dpn-minus-out0"].options == {"lambda_in": 0.5, "lambda_out": 0.0}
    assert found["dpn-rev-ood0.1"].options == {"ood_concentration": 0.1}
    assert found["edl"].init_from == "baseline"
