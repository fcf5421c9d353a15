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
from dpn_plugin.cli.parsing import assignments
from dpn_plugin.cli.progress import LiveBar
from dpn_plugin.runs import open_run
from dpn_plugin.training import StepMetrics

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


def test_the_log_says_what_resizing_costs(tmp_path: Path) -> None:
    arguments = ["--backbone", "test_resnet", "--method", "baseline", "--stem", "default"]
    arguments += ["--in-domain", "sklearn:digits?limit=60", "--epochs", "1", "--device", "cpu"]
    done = run("train", *arguments, "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    said = " ".join(done.stderr.split())
    assert "images of 8 x 8 pixels are resized to 96 x 96: 9,216 pixels per image" in said
    again = run("train", *arguments, "--out", tmp_path / "out")
    assert "resized" not in again.stderr  # it is trained already


def test_a_summary_for_programs(tmp_path: Path) -> None:
    done = train(tmp_path, "--epochs", 1, "-o", "lambda_out=0", "--json")
    assert json.loads(done.stdout)["selected"]["classifier"]["epoch"] == 1
    assert open_run(tmp_path).config.options == {"lambda_out": 0}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "dpn-pluss"}, "Unknown method 'dpn-pluss'. Did you mean 'dpn-plus'"),
        ({"data": DATA[:2]}, "Methods that need none are, for example, 'baseline'"),
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
def test_bad_input_is_one_or_two_sentences_and_exit_code_2(arguments, message, tmp_path) -> None:
    done = train(tmp_path / "out", *arguments.pop("extra", ()), **arguments)
    assert done.exit_code == 2
    line = done.stderr.strip().splitlines()[-1]
    assert line.startswith("Error: ")
    assert message in line
    assert not done.stdout


def test_another_run_in_the_folder_is_kept_unless_forced(tmp_path: Path) -> None:
    assert train(tmp_path, "--epochs", 1).exit_code == 0
    done = train(tmp_path, "--epochs", 2)
    assert done.exit_code == 2
    assert "recipe.epochs: 1 -> 2" in done.stderr
    assert "--force" in done.stderr
    assert train(tmp_path, "--epochs", 2, "--force").exit_code == 0


def test_assignments_nest_and_know_types() -> None:
    found = assignments(["a.b=true", "a.c=1", "d=0.5", "e=cosine"], "--set")
    assert found == {"a": {"b": True, "c": 1}, "d": 0.5, "e": "cosine"}


def test_the_live_bar_shows_what_matters() -> None:
    bar = LiveBar()
    bar.started(steps=10, done=2)
    bar.stepped(96, StepMetrics(loss=1.5, loss_in=1.0, loss_out=0.5, accuracy=0.75))
    (task,) = bar.progress.tasks
    assert (task.completed, task.total) == (3, 10)
    for text in ("loss 1.5000 (1.0000 in, 0.5000 out)", "accuracy 0.750", "images/s"):
        assert text in task.description


def _interrupted(out: Path, stderr: Path) -> None:
    # a forked child may have inherited that Ctrl-C is ignored, as background jobs do
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.dup2(os.open(stderr, os.O_WRONLY | os.O_CREAT), 2)
    sys.stderr = os.fdopen(2, "w")
    arguments = ["--method", "dpn-minus", *DATA, "--epochs", "2000", "--out", str(out)]
    app(["train", *POINTS, *arguments], prog_name="dpn")


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


def test_a_training_that_learned_nothing_says_so_at_its_end(tmp_path: Path) -> None:
    done = train(tmp_path, "--epochs", 2, "--lr", 1e-9)
    assert done.exit_code == 0
    assert "Warning: The loss of classifier did not fall" in done.stderr
    again = json.loads(train(tmp_path, "--epochs", 2, "--lr", 1e-9, "--json").stdout)
    assert "did not fall" in again["warnings"][0]
    assert json.loads(train(tmp_path / "good", "--epochs", 30, "--json").stdout)["warnings"] == []
