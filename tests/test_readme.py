"""Every command and every Python example in the README works."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", README.read_text("utf-8"), re.MULTILINE | re.DOTALL)
PROGRAMS = [body for language, body in BLOCKS if language == "python"]
COMMANDS = [line for language, body in BLOCKS if not language for line in body.splitlines()]
#: options that are added to a command, so that it does the same work on less data
SHORTER = {"bench": ["--epochs", "1", "--limit", "60"], "train": ["--limit", "60"]}


def run(command: list[str], folder: Path) -> str:
    """Run a command that must succeed, and return what it prints."""
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("command", [c for c in COMMANDS if c.startswith("dpn ")])
def test_commands_run(command: str, tmp_path: Path) -> None:
    arguments = shlex.split(command)[1:]
    run([sys.executable, "-m", "dpn_plugin", *arguments, *SHORTER.get(arguments[0], [])], tmp_path)


def test_tox_environments_have_descriptions() -> None:
    described = (README.parent / "tox.ini").read_text("utf-8")
    jobs = re.findall(r"tox (?:run )?-e (\S+)", "\n".join(COMMANDS))
    assert {"quickstart", "tests"} < set(jobs)
    assert all(f"[testenv:{job}]\ndescription" in described for job in jobs)


def test_ci_runs_the_test_command() -> None:
    commands = [command for command in COMMANDS if command.endswith("-e tests")]
    assert len(commands) == 1
    assert commands[0].rpartition("&& ")[2] in (README.parent / ".ci" / "run").read_text("utf-8")


@pytest.mark.parametrize("program", PROGRAMS)
def test_python_examples_run(program: str, tmp_path: Path) -> None:
    run([sys.executable, "-c", program], tmp_path)


def test_inversion_example_prints_the_documented_auroc(tmp_path: Path) -> None:
    printed = run([sys.executable, "-c", PROGRAMS[-1]], tmp_path)
    auroc = {name: float(value) for name, value in map(str.split, printed.splitlines())}
    assert auroc["dpn-mi"] > 0.99
    assert auroc["dpn-dent"] < 0.2


def test_linked_files_exist() -> None:
    links = re.findall(r"\]\((?!http)([^)#]+)", README.read_text("utf-8"))
    assert len(links) > 5
    assert [link for link in links if not (README.parent / link).exists()] == []
