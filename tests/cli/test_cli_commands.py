"""The commands as a user runs them: their output, their exit codes, and what they do not import."""

import json
import os
import subprocess
import sys
import tomllib
from importlib import import_module
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
from typer.testing import CliRunner

import dpn_plugin
from dpn_plugin.cli import app
from dpn_plugin.cli.commands import BUG_NOTE, COMMANDS, ISSUES
from dpn_plugin.errors import UserError, UserTypeError
from dpn_plugin.runs import Recipe, list_recipes

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
    [
        ["--help"],
        *([name, "--help"] for name in COMMANDS),
        ["list", "detectors"],
        ["list", "backbones", "--json"],
    ],
    ids=" ".join,
)
def test_help_and_listings_do_not_import_torch(arguments: list[str]) -> None:
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


def test_list_recipes_shows_the_main_settings_of_each() -> None:
    table = dpn("list", "recipes").stdout
    for name in list_recipes():
        recipe = Recipe.named(name)
        (line,) = [line for line in table.splitlines() if line.startswith(f"{name} ")]
        assert recipe.optimizer in line
        assert f" {recipe.lr:g} " in line
        assert f" {recipe.epochs} " in line
        assert f" {recipe.batch_size} " in line
    (c10,) = [line for line in table.splitlines() if line.startswith("c10 ")]
    for part in (
        "x 0.5 every 20 epochs",
        "200 + 10",
        "shift 0.15, rotation 15, flip, fill nearest",
    ):
        assert part in c10


def test_list_recipes_as_json_has_all_settings_and_takes_a_pattern() -> None:
    found = json.loads(run("list", "recipes", "c1*", "--json").stdout)
    assert [each.pop("name") for each in found] == ["c10", "c100"]
    assert found[0] == Recipe.named("c10").model_dump(mode="json")
    assert "No recipe matches 'x'" in run("list", "recipes", "x").stderr


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
def test_a_misspelt_word_gets_the_nearest_one_as_a_suggestion(
    arguments: list[str], words: str
) -> None:
    done = dpn(*arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert not done.stdout


@pytest.mark.parametrize(
    ("error", "code", "printed"),
    [
        (UserError("The value 3 is too large."), 2, "Error: The value 3 is too large.\n"),
        (UserTypeError("No option 'x'."), 2, "Error: No option 'x'.\n"),
        (KeyboardInterrupt(), 130, "Interrupted.\n"),
    ],
    ids=["value", "type", "ctrl-c"],
)
def test_a_mistake_of_the_user_ends_in_one_line(
    monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, printed: str
) -> None:
    def failing(kind: str) -> None:
        raise error

    monkeypatch.setattr("dpn_plugin.cli.listing.listing", failing)
    done = run("list", "losses")
    assert (done.exit_code, done.stderr) == (code, printed)


#: through the entry point of `dpn`, with a command that raises what the first argument names
WITH_A_BUG = """
import builtins, sys
from dpn_plugin.cli import listing, main

def failing(kind: str) -> None:
    raise getattr(builtins, error)("wrong inside")

error = sys.argv.pop(1)
listing.listing = failing
main()
"""


@pytest.mark.parametrize("error", ["TypeError", "ValueError", "ZeroDivisionError"])
def test_a_bug_keeps_its_traceback_and_asks_for_a_report(error: str) -> None:
    done = dpn(error, "list", "losses", code=WITH_A_BUG)
    assert done.returncode == 1
    assert not done.stdout
    assert done.stderr.startswith("Traceback (most recent call last):")
    assert "in failing" in done.stderr
    assert done.stderr.endswith(f"\n{error}: wrong inside\n{BUG_NOTE}\n")
    assert "Error: wrong inside" not in done.stderr.splitlines()


def test_a_bug_reaches_a_program_that_calls_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(kind: str) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("dpn_plugin.cli.listing.listing", failing)
    assert isinstance(run("list", "losses").exception, ZeroDivisionError)


def test_bad_usage_is_not_a_bug() -> None:
    done = dpn("list", "losses", "--no-such-option")
    assert done.returncode == 2
    assert "No such option" in done.stderr
    assert "bug" not in done.stderr


def test_the_address_for_reports_is_that_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["urls"]["Issues"] == ISSUES
    assert ISSUES in BUG_NOTE


def test_a_pipe_that_closes_early_is_no_error() -> None:
    command = f"{sys.executable} -m dpn_plugin list detectors | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.strip() == "detectors"
    assert not done.stderr


def test_doctor_shows_every_dependency_and_the_devices() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    record = json.loads(run("doctor", "--json").stdout)
    required = {each.split(">")[0] for each in project["dependencies"]}
    assert set(record["versions"]) == {"dpn-plugin", "python", *required}
    assert record["missing"] == []
    assert record["devices"][0]["device"] == "cpu"


def test_doctor_names_missing_packages_but_not_those_of_extras(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    required = ["torch>=2.6", "no-such-package[x]>=1", "no-such-extra>=2; extra == 'test'"]
    monkeypatch.setattr("importlib.metadata.requires", lambda name: required)
    done = run("doctor")
    assert done.exit_code == 1
    assert done.stderr.splitlines()[-1].endswith("pip install no-such-package")


def test_doctor_works_where_only_the_sources_are(monkeypatch: pytest.MonkeyPatch) -> None:
    def not_installed(name: str) -> list[str]:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.requires", not_installed)
    monkeypatch.setattr("importlib.metadata.version", not_installed)
    done = run("doctor")
    assert done.exit_code == 1
    assert "pip install dpn-plugin" in done.stderr


def test_brackets_in_a_cell_are_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    from dpn_plugin.cli.output import print_table

    print_table("title", ("name",), [("[red]plain[/red]",), ("[/]",)])
    assert "[red]plain[/red]" in capsys.readouterr().out
