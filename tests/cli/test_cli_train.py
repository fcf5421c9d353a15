"""``dpn train`` from outside: sources in one word, progress, bad input, Ctrl-C."""

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
from dpn_plugin.cli.assignments import assignments
from dpn_plugin.cli.progress import LiveBar
from dpn_plugin.cli.sources import parse_source
from dpn_plugin.errors import UserError
from dpn_plugin.training import open_run

NETWORK = ["--backbone", "mlp_synthetic", "--recipe", "synthetic"]
POINTS = [*NETWORK, "--limit", "120", "--device", "cpu"]
DATA = ["--in-domain", "synthetic:gaussians", "--outliers", "synthetic:gaussians-ood"]


def run(*arguments: str):
    return CliRunner().invoke(app, list(map(str, arguments)), prog_name="dpn")


def train(out: Path, *arguments: str, data=DATA, method: str = "dpn-minus"):
    return run("train", *POINTS, "--method", method, *data, "--out", out, *arguments)


def test_a_run_is_trained_summed_up_and_recorded(tmp_path: Path) -> None:
    done = train(tmp_path / "out", "--epochs", 2, "--lr", 0.01, "--seed", 3, "--set", "gamma=0.7")
    assert done.exit_code == 0, done.output
    assert "on held-out data" in done.stdout
    assert str(tmp_path / "out") in done.stdout
    assert "epoch 2: loss" in done.stderr
    assert " in, " in done.stderr
    assert "images/s" in done.stderr
    config = open_run(tmp_path / "out").config
    assert (config.seed, config.recipe.lr, config.recipe.gamma) == (3, 0.01, 0.7)
    assert config.in_domain.limit == config.outliers[0].limit == 120


def test_a_summary_for_programs(tmp_path: Path) -> None:
    done = train(tmp_path, "--epochs", 1, "-o", "lambda_out=0", "--json")
    assert json.loads(done.stdout)["selected"]["classifier"]["epoch"] == 1
    assert open_run(tmp_path).config.options == {"lambda_out": 0}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"method": "dpn-pluss"}, "Unknown method 'dpn-pluss'. Did you mean 'dpn-plus'"),
        ({"data": DATA[:2]}, "Methods that need none: 'baseline', 'deep-ensemble'"),
        ({"data": ["--in-domain", "skearn:digits"]}, "'skearn'. Did you mean 'sklearn'"),
        ({"data": ["--in-domain", "sklearn:digits"], "method": "baseline"}, "the data has"),
        ({"data": ["--in-domain", "digits"]}, "--in-domain.source: "),
        ({"data": ["--in-domain", "synthetic:gaussians?classes"]}, "must read key=value"),
        ({"extra": ["--backbone", "mlp_syntetic"]}, "Did you mean 'mlp_synthetic'"),
        ({"extra": ["--recipe", "sinthetic"]}, "Did you mean 'synthetic'"),
        ({"extra": ["--set", "epoch=3"]}, "Unknown training option 'epoch'. Did you mean 'epochs'"),
        ({"extra": ["--set", "epochs"]}, "--set takes key=value, not 'epochs'"),
        ({"extra": ["-o", "lambda_oot=1"]}, "Did you mean 'lambda_out'"),
        ({"extra": ["--device", "cuda:77"]}, "device 'cuda:77' cannot be used"),
        ({"extra": ["--set", "lr=1e20"]}, "Lower the rate"),
    ],
    ids=lambda each: None if isinstance(each, dict) else each[:24],
)
def test_bad_input_is_one_or_two_sentences_and_exit_code_2(arguments, words, tmp_path) -> None:
    done = train(tmp_path / "out", *arguments.pop("extra", ()), **arguments)
    assert done.exit_code == 2
    line = done.stderr.strip().splitlines()[-1]
    assert line.startswith("Error: ")
    assert words in line
    assert not done.stdout


def test_another_run_in_the_folder_is_kept_unless_forced(tmp_path: Path) -> None:
    assert train(tmp_path, "--epochs", 1).exit_code == 0
    done = train(tmp_path, "--epochs", 2)
    assert done.exit_code == 2
    assert "recipe.epochs: 1 -> 2" in done.stderr
    assert "--force" in done.stderr
    assert train(tmp_path, "--epochs", 2, "--force").exit_code == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("npz:a.npz?classes=0-169", {"classes": {"from": 0, "first": 170}}),
        ("npz:a.npz?classes=170-", {"classes": {"from": 170}}),
        ("npz:a.npz?classes=3,5&limit=7", {"classes": [3, 5], "limit": 7}),
        ("npz:a.npz?classes=T-shirt,3-D", {"classes": ["T-shirt", "3-D"]}),
        ("npz:a.npz?split=test&small=true", {"split": "test", "options": {"small": True}}),
    ],
)
def test_a_source_in_one_word(text: str, expected: dict) -> None:
    from dpn_plugin.data import SourceSpec

    assert parse_source(text, "--in-domain") == SourceSpec.parse({"source": "npz:a.npz"} | expected)


def test_the_limit_of_the_command_is_the_largest_that_a_source_may_have() -> None:
    assert parse_source("a:b?limit=5", "", 10).limit == 5
    assert parse_source("a:b?limit=50", "", 10).limit == 10
    with pytest.raises(UserError, match="last class must not be below the first"):
        parse_source("a:b?classes=5-3", "")


def test_assignments_nest_and_know_types() -> None:
    found = assignments(["a.b=true", "a.c=1", "d=0.5", "e=cosine"], "--set")
    assert found == {"a": {"b": True, "c": 1}, "d": 0.5, "e": "cosine"}


def test_the_live_bar_shows_what_matters() -> None:
    bar = LiveBar()
    bar.started(steps=10, done=2)
    bar.stepped(96, {"loss": 1.5, "loss_in": 1.0, "loss_out": 0.5, "accuracy": 0.75})
    (task,) = bar.progress.tasks
    assert (task.completed, task.total) == (3, 10)
    for words in ("loss 1.5000 (1.0000 in, 0.5000 out)", "accuracy 0.750", "images/s"):
        assert words in task.description


def _interrupted(out: Path, stderr: Path) -> None:
    # a forked child may have inherited that Ctrl-C is ignored, as background jobs do
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.dup2(os.open(stderr, os.O_WRONLY | os.O_CREAT), 2)
    sys.stderr = os.fdopen(2, "w")
    words = ["--method", "dpn-minus", *DATA, "--epochs", "2000", "--out", str(out)]
    app(["train", *POINTS, *words], prog_name="dpn")


def test_ctrl_c_stops_with_one_line_and_130(tmp_path: Path) -> None:
    forks = multiprocessing.get_context("forkserver")
    forks.set_forkserver_preload(["dpn_plugin.training", "pytorch_ood.loss", "dpn_plugin.cli"])
    child = forks.Process(target=_interrupted, args=(tmp_path / "out", tmp_path / "stderr"))
    child.start()
    deadline = time.monotonic() + 100
    while not list((tmp_path / "out").glob("checkpoints/classifier/step-*")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.kill(child.pid, signal.SIGINT)
    child.join(60)
    assert child.exitcode == 130
    *progress, last = (tmp_path / "stderr").read_text().splitlines()
    assert all("steps" in line or line.startswith("epoch ") for line in progress)
    assert last.startswith("Stopped after ")
    assert last.endswith("The same command goes on from there.")
