"""Paths are taken as strings wherever they are taken as paths."""

import os
from pathlib import Path

import pytest
from tiny_runs import points

from dpn_plugin.bench import Request, load_suite, make_plan, read_bench_record
from dpn_plugin.data import load
from dpn_plugin.errors import UserError
from dpn_plugin.evaluation import read_evaluation
from dpn_plugin.outputs import OutputStore
from dpn_plugin.report import simplex_figure, update_report, write_report
from dpn_plugin.runs import open_run, read_run_record
from dpn_plugin.training import train

SUITE = Path(__file__).parents[1] / "benchmark_suites" / "synthetic.toml"


def test_runs_are_trained_and_opened(tmp_path: Path) -> None:
    folder = os.fspath(tmp_path / "run")
    run = train(points(epochs=1), folder, root="data", base=".", device="cpu")
    assert open_run(folder) == run
    assert read_run_record(folder) == run.record
    assert read_evaluation(folder) is None


def test_suites_are_planned(tmp_path: Path) -> None:
    assert load_suite(SUITE) == load_suite(os.fspath(SUITE))
    request = Request("synthetic", os.fspath(tmp_path), data_root="data", seeds=1)
    assert make_plan(request) == make_plan(Request("synthetic", tmp_path, seeds=1))


def test_benchmarks_and_reports_are_found_missing_by_a_sentence(tmp_path: Path) -> None:
    for function in (read_bench_record, update_report, write_report):
        with pytest.raises(UserError, match=r"bench\.json|results\.csv"):
            function(os.fspath(tmp_path))


def test_figures_and_stores_are_written(tmp_path: Path) -> None:
    simplex_figure([0.1, 0.1, 0.1]).write(os.fspath(tmp_path / "simplex.png"))
    assert (tmp_path / "simplex.png").stat().st_size > 0
    assert OutputStore(os.fspath(tmp_path / "store")) is not None
    assert len(load("synthetic:gaussians", root=os.fspath(tmp_path), in_domain=True))
