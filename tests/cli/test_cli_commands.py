"""The command line from outside: what it prints where, how it ends, and what it does not import."""

import json
import os
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
from typer.testing import CliRunner

import dpn_plugin
from dpn_plugin.cli import app
from dpn_plugin.cli.commands import COMMANDS
from dpn_plugin.errors import UserError

ROOT = Path(__file__).parents[2]


def dpn(*arguments: str, code: str = "from dpn_plugin.cli import main; main()"):
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=120,
        env={**os.environ, "COLUMNS": "200", "OMP_NUM_THREADS": "1"},
    )


def run(*arguments: str):
    return CliRunner().invoke(app, list(arguments), prog_name="dpn")


IMPORTS = """
import atexit, sys
from dpn_plugin.cli import main
heavy = {"torch", "timm", "pytorch_ood", "numpy", "pandas", "matplotlib"}
atexit.register(lambda: print(sorted(heavy & {*sys.modules}), file=sys.stderr))
main()
"""


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["list", "detectors"], ["list", "backbones", "--json"], ["plugins"]],
    ids=" ".join,
)
def test_the_first_answers_come_without_torch(arguments: list[str]) -> None:
    done = dpn(*arguments, code=IMPORTS)
    assert done.returncode == 0
    assert done.stdout
    assert done.stderr.splitlines()[-1] == "[]"


def test_python_m_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "dpn_plugin", "--version"], capture_output=True, text=True, cwd=ROOT
    )
    assert done.stdout == f"dpn-plugin {dpn_plugin.__version__}\n"


def test_help_has_every_command_with_the_line_of_its_docstring() -> None:
    shown = run("--help").stdout
    for name, (where, line) in COMMANDS.items():
        module, _, function = where.partition(":")
        assert getattr(import_module(module), function).__doc__.split("\n\n")[0].strip() == line
        assert name in shown
        assert line in shown


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name: str) -> None:
    shown = run(name, "--help").stdout
    assert f"dpn {name}" in shown
    assert COMMANDS[name][1].rstrip(".") in " ".join(shown.split())


def test_list_as_json_holds_what_the_table_holds() -> None:
    records = json.loads(run("list", "detectors", "dpn-*", "--json").stdout)
    assert [each["name"] for each in records] == dpn_plugin.list_detectors("dpn-*")
    table = run("list", "detectors", "dpn-*").stdout
    assert all(each["name"] in table for each in records)


def test_list_backbones_with_a_pattern_adds_those_of_timm() -> None:
    records = json.loads(run("list", "backbones", "vgg16*", "--json").stdout)
    packages = {each["name"]: each["package"] for each in records}
    assert packages["vgg16_cifar"] == "dpn-plugin"
    assert packages["vgg16_bn"] == "timm"


def test_a_pattern_that_matches_nothing_says_so_and_is_no_error() -> None:
    done = run("list", "losses", "nothing-*")
    assert done.exit_code == 0
    assert "No loss matches 'nothing-*'" in done.stderr
    assert json.loads(run("list", "losses", "nothing-*", "--json").stdout) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["list", "detectrs"], "Unknown kind 'detectrs'. Did you mean 'detectors'"),
        (["lst", "detectors"], "Did you mean 'list'?"),
    ],
    ids=["kind", "command"],
)
def test_a_misspelt_word_is_answered_with_the_nearest(arguments: list[str], words: str) -> None:
    done = dpn(*arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert not done.stdout


@pytest.mark.parametrize(
    ("error", "code", "printed"),
    [
        (UserError("The value 3 is too large."), 2, "Error: The value 3 is too large.\n"),
        (TypeError("No option 'x'."), 2, "Error: No option 'x'.\n"),
        (KeyboardInterrupt(), 130, "Interrupted.\n"),
    ],
    ids=["value", "type", "ctrl-c"],
)
def test_what_a_command_raises_ends_in_one_line(
    monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, printed: str
) -> None:
    def failing(kind: str) -> None:
        raise error

    monkeypatch.setattr("dpn_plugin.cli.listing.listing", failing)
    done = run("list", "losses")
    assert (done.exit_code, done.stderr) == (code, printed)


def test_a_bug_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(kind: str) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("dpn_plugin.cli.listing.listing", failing)
    assert isinstance(run("list", "losses").exception, ZeroDivisionError)


def test_a_reader_that_leaves_early_is_no_error() -> None:
    command = f"{sys.executable} -m dpn_plugin list detectors | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.strip() == "detectors"
    assert not done.stderr


def test_the_doctor_knows_every_dependency_and_the_devices() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    record = json.loads(run("doctor", "--json").stdout)
    required = {each.split(">")[0] for each in project["dependencies"]}
    assert set(record["versions"]) == {"dpn-plugin", "python", *required}
    assert record["missing"] == []
    assert record["devices"][0]["device"] == "cpu"


def test_the_doctor_names_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpn_plugin.cli.doctor._REQUIRED", ("torch", "no-such-package"))
    done = run("doctor")
    assert done.exit_code == 1
    assert "pip install no-such-package" in done.stderr


def test_brackets_in_a_cell_are_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    from dpn_plugin.cli.output import print_table

    print_table("title", ("name",), [("[red]plain[/red]",), ("[/]",)])
    assert "[red]plain[/red]" in capsys.readouterr().out
