"""``dpn bench`` from outside: plans, results, bad input, Ctrl-C, two at once."""

import json
import multiprocessing
import os
import signal
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dpn_plugin.cli import app

FORKS = multiprocessing.get_context("forkserver")
SMALL = ["--seeds", "1", "--limit", "150", "--device", "cpu", "--workers", "1"]
QUICK = ["--methods", "baseline", "--detectors", "dpn-maxp,dpn-mi", "--epochs", "1"]


def run(*arguments: object):
    return CliRunner().invoke(app, ["bench", *map(str, arguments)], prog_name="dpn")


def bench(out: Path, *arguments: object, suite: object = "synthetic"):
    return run(suite, *SMALL, "--out", out, *arguments)


def test_a_benchmark_leaves_results_and_a_report_and_is_not_done_twice(tmp_path: Path) -> None:
    plan = bench(tmp_path, *QUICK, "--dry-run")
    assert plan.exit_code == 0
    assert "2 of 2 detectors" in plan.stdout
    assert list(tmp_path.iterdir()) == []

    done = bench(tmp_path, *QUICK)
    assert done.exit_code == 0, done.output
    assert "[1/1] mlp_synthetic baseline seed 0" in done.stderr
    assert str(tmp_path / "results.csv") in done.stdout
    assert "Far-OOD AUROC" in done.stdout
    assert (tmp_path / "report.html").stat().st_size > 10_000
    assert json.loads((tmp_path / "bench.json").read_text("utf-8"))["command"].startswith("dpn")

    before = (tmp_path / "report.html").stat().st_mtime_ns
    plan = bench(tmp_path, *QUICK, "--dry-run")
    assert plan.stdout.count("reuse") == 2
    assert bench(tmp_path, *QUICK).exit_code == 0
    assert (tmp_path / "report.html").stat().st_mtime_ns == before

    again = bench(tmp_path, *QUICK, "--epochs", 2)
    assert again.exit_code == 2
    assert "recipe.epochs: 1 -> 2" in again.stderr


def test_open_shows_the_report_in_the_browser(tmp_path: Path, monkeypatch) -> None:
    browser, opened = tmp_path / "browser", tmp_path / "opened"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}\n', "utf-8")
    browser.chmod(0o755)
    monkeypatch.setenv("BROWSER", str(browser))
    monkeypatch.setattr("webbrowser._tryorder", None)  # it reads BROWSER once
    out = tmp_path / "out"
    assert bench(out, *QUICK).exit_code == 0
    assert not opened.exists()
    done = bench(out, *QUICK, "--open")
    assert done.exit_code == 0, done.output
    assert opened.read_text("utf-8").strip() == (out / "report.html").resolve().as_uri()
    monkeypatch.setattr("webbrowser._tryorder", [])
    done = bench(out, *QUICK, "--open")
    assert done.exit_code == 0
    assert "BROWSER can name one" in done.stderr


IMAGES = """
title = "Digits"
[in_domain]
source = "sklearn:digits"
classes = { first = 5 }
[far.others]
source = "sklearn:digits"
classes = { from = 5 }
[train]
backbone = "test_resnet"
stem = "default"
"""


def test_the_plan_and_the_log_say_what_resizing_costs(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(IMAGES, "utf-8")
    out, suite = tmp_path / "out", tmp_path / "mine.toml"
    plan = bench(out, *QUICK, "--dry-run", suite=suite)
    assert plan.exit_code == 0, plan.output
    line = next(line for line in plan.stdout.splitlines() if line.startswith("Resized: "))
    assert "images of 8 x 8 pixels are resized to 96 x 96: 9,216 pixels per image" in line
    assert "144 times" in line
    assert 'stem = "small" in [train]' in line
    done = bench(out, *QUICK, suite=suite)
    assert done.exit_code == 0, done.output
    assert line.removeprefix("Resized: ") in " ".join(done.stderr.split())


NO_OUTLIERS = """
title = "Points"
[in_domain]
source = "synthetic:gaussians"
[far.around]
source = "synthetic:gaussians-ood"
[train]
backbone = "mlp_synthetic"
recipe = "synthetic"
"""


def test_methods_without_outliers_are_said_to_be_left_out(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(NO_OUTLIERS, "utf-8")
    plan = bench(
        tmp_path / "out", "--methods", "oe,baseline", "--dry-run", suite=tmp_path / "mine.toml"
    )
    assert "Left out: oe; the suite has no outliers to train with." in plan.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--methods", "basline"], "Unknown method 'basline'. Did you mean 'baseline'"),
        (["--detectors", "dpn-m"], "Unknown detector 'dpn-m'. Did you mean"),
        (["--backbone", "mlp_syntetic"], "'mlp_synthetic'"),
        (["--device", "cuda:77"], "device 'cuda:77' cannot be used"),
        (["--only-eval", "nowhere"], "holds no trained run"),
        (["--out", "/dev/null/out"], "Cannot write"),
        (["--backbone", "test_resnet", *QUICK], "Nothing could be run."),
    ],
)
def test_bad_options_are_one_or_two_sentences_and_exit_code_2(arguments, message, tmp_path) -> None:
    done = bench(tmp_path, *arguments)
    assert done.exit_code == 2
    assert message in done.stderr.strip().splitlines()[-1]
    assert done.stderr.strip().splitlines()[-1].startswith("Error: ")


@pytest.mark.parametrize(
    ("suite", "message"),
    [
        ("syntetic", "Unknown suite 'syntetic'. Did you mean 'synthetic'"),
        ("nothing.toml", "There is no suite file 'nothing.toml'"),
        ("fashion", "torchvision:FashionMNIST was not found in"),
        ("openood-cifar10", "scripts/download/download.py fetches them"),
        ("tim", "was not found"),
    ],
)
def test_missing_suites_and_data_are_named(suite: str, message: str, tmp_path: Path) -> None:
    done = bench(tmp_path / "out", "--data-root", tmp_path / "data", suite=suite)
    assert done.exit_code == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def _long_bench(out: Path, stderr: Path) -> None:
    # a forked child may have inherited that Ctrl-C is ignored, as background jobs do
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.dup2(os.open(stderr, os.O_WRONLY | os.O_CREAT), 2)
    sys.stderr = os.fdopen(2, "w")
    arguments = ["bench", "synthetic", *SMALL, "--epochs", "5000", "--out", str(out)]
    app(arguments, prog_name="dpn")


def test_two_at_once_and_ctrl_c(tmp_path: Path) -> None:
    FORKS.set_forkserver_preload(["dpn_plugin.bench", "dpn_plugin.cli.bench", "pytorch_ood.loss"])
    child = FORKS.Process(target=_long_bench, args=(tmp_path / "out", tmp_path / "stderr"))
    child.start()
    deadline = time.monotonic() + 100
    while not list((tmp_path / "out").rglob("step-*")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    second = bench(tmp_path / "out", "--epochs", 5000)
    os.kill(child.pid, signal.SIGINT)
    child.join(60)
    assert second.exit_code == 2
    assert f"Another dpn bench is at work in {tmp_path / 'out'}" in second.stderr
    assert child.exitcode == 130
    said = [line for line in (tmp_path / "stderr").read_text().splitlines() if line]
    assert said[0].startswith("[1/11] ")
    assert len(said) == 2
    assert said[1].endswith("The same command goes on from there.")
