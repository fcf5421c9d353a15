"""The study's page: its figures are those of the records, its words follow from the verdicts."""

import re
from pathlib import Path

import pandas as pd
import pytest
from sample_bench import SampleBench

from benchmark_suites.study.__main__ import OF_FEATURES, commands, main, why_not
from benchmark_suites.study.page import page
from benchmark_suites.study.questions import QUESTIONS, Answer, Question, answers, described
from dpn_plugin.bench import Request, make_plan
from dpn_plugin.metrics import PairedDifference
from dpn_plugin.report import PairedRow, Scope, load_results

STUDY = Path(__file__).parents[2] / "benchmark_suites/study"


def test_every_figure_of_a_table_is_the_mean_of_its_seeds(bench: Path) -> None:
    text = page([bench])
    raw = pd.read_csv(bench / "results.csv")
    raw = raw[raw["task"].eq("ood") & raw["metric"].eq("auroc") & raw["dataset"].eq("far")]
    found = raw.groupby(["method", "detector"])["value"].agg(["mean", "std"])
    block = text.split("**far (mean of noise, textures)**")[1]
    for method in ("baseline", "oe", "dpn-minus"):
        line = next(each for each in block.splitlines() if each.startswith(f"| `{method}`"))
        cells = [cell.strip().replace("*", "") for cell in line.split("|")[2:-1]]
        own = found.loc[method]
        order = ["dpn-maxp", "dpn-entropy", "dpn-mi"]
        assert cells == [
            f"{100 * own.loc[d, 'mean']:.1f} ± {100 * own.loc[d, 'std']:.1f}" for d in order
        ]


def test_the_page_names_the_winner_and_answers_what_the_results_can(bench: Path) -> None:
    text = page([bench])
    assert "**digits, far**: the best pair is DPN- (mutual information)" in text
    assert "### DPN- (mutual information) or OE (Max.P)?" in text
    assert "kNN on baseline" not in text.split("## How to read this")[0]  # it was not run
    assert not re.search(r"\bnan\b", text)


def test_a_missing_suite_is_said(bench: Path) -> None:
    assert "`x` is not run: no data." in page([bench], ["`x` is not run: no data."])


def _row(dataset: str, low: float, high: float) -> PairedRow:
    paired = PairedDifference((low + high) / 2, low, high, 3)
    pairs = ("dpn-minus", "dpn-mi"), ("oe", "dpn-maxp")
    return PairedRow(Scope("s", "net"), dataset, pairs[0], 0.9, pairs[1], 0.9, paired)


AHEAD, BEHIND, OPEN = _row("a", 0.01, 0.03), _row("b", -0.03, -0.01), _row("c", -0.01, 0.02)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (
            (AHEAD,),
            "DPN- (mutual information). DPN- (mutual information) is ahead on a of s (+2.00).",
        ),
        ((BEHIND,), "OE (Max.P). OE (Max.P) is ahead on b of s (+2.00)."),
        ((AHEAD, BEHIND), "It depends on the data."),
        ((OPEN,), "No difference could be shown: take OE. Undecided: c of s (+0.50)."),
        ((AHEAD, OPEN), "Undecided: c of s (+0.50)."),
    ],
)
def test_words_follow_from_the_verdicts(rows: tuple[PairedRow, ...], expected: str) -> None:
    question = Question(("dpn-minus", "dpn-mi"), ("oe", "dpn-maxp"), "take OE")
    assert expected in Answer(question, rows).text


def test_answers_show_sets_and_not_the_means_over_them(bench: Path) -> None:
    first = answers(load_results([bench]))[0]
    assert [row.dataset for row in first.rows] == ["near", "noise", "textures"]


def test_unknown_methods_are_shown_by_their_names() -> None:
    assert described(("r-edl", "dpn-mi")) == "r-edl (mutual information)"
    assert described(("binary", "binary")) == "the binary network"


def test_further_methods_need_no_change_of_the_script(tmp_path: Path) -> None:
    folder = SampleBench(methods=("baseline", "some-new-method")).write(tmp_path)
    text = page([folder])
    assert "`some-new-method`" in text


@pytest.mark.parametrize("suite", ["digits", "fashion-frozen", "fashion-trained"])
def test_the_suites_are_valid_and_their_methods_answer_all_questions(
    suite: str, tmp_path: Path
) -> None:
    weights = tmp_path / "weights.safetensors"
    weights.touch()
    options = {"weights": weights} if suite == "fashion-frozen" else {}
    plan = make_plan(Request(str(STUDY / f"{suite}.toml"), tmp_path / "out", **options))
    methods = {run.method for run in plan.runs}
    detectors_of_features = OF_FEATURES if suite == "fashion-frozen" else ()
    for question in QUESTIONS:
        for method, detector in (question.one, question.other):
            assert method in methods
            own = detectors_of_features if method == "baseline" else ()
            assert detector in (*plan.detectors, *own, "binary")
    searched = {each.method for each in plan.searches}
    assert searched == (methods if suite == "fashion-frozen" else set())
    assert len({each.settings.trials for each in plan.searches}) <= 1


def test_without_data_the_suites_of_fashion_mnist_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPN_DATA_ROOT", str(tmp_path))
    assert why_not("digits") is None
    assert "FashionMNIST, MNIST, quickdraw.npz not found" in why_not("fashion-trained")


def test_the_script_passes_options_on_and_keeps_the_docs_without_all_suites(
    bench: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    called = []
    monkeypatch.setenv("DPN_DATA_ROOT", str(tmp_path))
    monkeypatch.setattr(
        "benchmark_suites.study.__main__.app", lambda arguments, **_: called.append(arguments)
    )
    (tmp_path / "digits").symlink_to(bench)
    target = tmp_path / "results-of-all.md"
    assert main(["--out", str(tmp_path), "--page", str(target), "--seeds", "2"]) == 0
    assert called == commands("digits", tmp_path, ["--seeds", "2"])
    assert called[0][-2:] == ["--seeds", "2"]
    assert not target.exists()
    assert "`fashion-frozen` is not run" in (tmp_path / "results.md").read_text("utf-8")
