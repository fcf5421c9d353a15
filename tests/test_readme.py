"""Every command and every program in the README works."""

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
#: the same work on less data; what a command says stays as it is
SHORTER = {"bench": ["--epochs", "1", "--limit", "60"], "train": ["--limit", "60"]}


def run(words: list[str], folder: Path) -> str:
    done = subprocess.run(
        words, cwd=folder, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("command", [c for c in COMMANDS if c.startswith("dpn ")])
def test_commands_run(command: str, tmp_path: Path) -> None:
    words = shlex.split(command)[1:]
    run([sys.executable, "-m", "dpn_plugin", *words, *SHORTER.get(words[0], [])], tmp_path)


def test_jobs_are_described_in_tox() -> None:
    described = (README.parent / "tox.ini").read_text("utf-8")
    jobs = [shlex.split(command)[2] for command in COMMANDS if command.startswith("tox -e")]
    assert jobs
    assert all(f"[testenv:{job}]\ndescription" in described for job in jobs)


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_run(program: str, tmp_path: Path) -> None:
    run([sys.executable, "-c", program], tmp_path)


def test_the_inversion_is_as_told(tmp_path: Path) -> None:
    printed = run([sys.executable, "-c", PROGRAMS[-1]], tmp_path)
    auroc = {name: float(value) for name, value in map(str.split, printed.splitlines())}
    assert auroc["dpn-mi"] > 0.99
    assert auroc["dpn-dent"] < 0.2


def test_what_it_links_to_is_there() -> None:
    links = re.findall(r"\]\((?!http)([^)#]+)", README.read_text("utf-8"))
    assert len(links) > 5
    assert [link for link in links if not (README.parent / link).exists()] == []
