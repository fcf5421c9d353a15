"""One clumsy command: how it is run, and what must be true of its end whatever it says."""

import os
import re
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import pytest
from click.testing import Result
from hostile import time_limit
from typer.testing import CliRunner

from dpn_plugin.cli import app

#: how long a command may take, in seconds; generous, because only one that waits forever is wrong
PATIENCE = 180
#: typer prints a wrong option or argument in a box, below the usage of the command
_BOX = re.compile("^[│╭╰].*$", re.MULTILINE)


@dataclass(frozen=True)
class Case:
    """
    A command line and how it must end.

    :param line: what follows ``dpn``, as a shell takes it
    :param says: a part of the message, or of the output if the command succeeds
    :param code: 0 for a result, 2 for a refusal, 1 where the help of the command says so
    :param writes: the file or folder that a command that succeeds may create or change
    :param env: environment variables
    """

    line: str
    says: str
    code: int = 2
    writes: str = ""
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def command(self) -> str:
        """The whole command, as a user types it."""
        return " ".join(
            [*(f"{key}='{value}'" for key, value in self.env.items()), "dpn", self.line]
        )


def refused(line: str, says: str, **env: str) -> Case:
    """Return a case that ends with exit code 2 and a message, and writes nothing."""
    return Case(line, says, env=env)


def done(line: str, says: str = "", writes: str = "new", **env: str) -> Case:
    """Return a case that ends with a result; it may write ``new`` and nothing else."""
    return Case(line, says, 0, writes, env)


class Desk:
    """
    The folder in which a user works, with files that no command may touch.

    :param folder: where it is
    :param pristine: a copy, to repair what a command did
    """

    def __init__(self, folder: Path, pristine: Path) -> None:
        self.folder, self.pristine = folder, pristine
        shutil.copytree(folder, pristine, symlinks=True)
        self.files = self.snapshot()

    def snapshot(self) -> dict[str, str]:
        """Return the hash of every file, by its path; folders are listed, too."""
        return {str(path.relative_to(self.folder)): _hash(path) for path in self._paths()}

    def restore(self) -> None:
        """Remove what was added, and bring back what was changed or removed."""
        now = self.snapshot()
        for name in sorted(now.keys() - self.files.keys()):
            path = self.folder / name
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        for name in sorted(self.files):
            if now.get(name) != self.files[name]:
                self._bring_back(name)

    def _bring_back(self, name: str) -> None:
        ours, path = self.pristine / name, self.folder / name
        if ours.is_dir():
            path.mkdir(exist_ok=True)
        else:
            shutil.copy2(ours, path)

    def _paths(self) -> list[Path]:
        return sorted(self.folder.rglob("*"))


def run_case(case: Case, desk: Desk) -> None:
    """Run a command and check its exit code, its message and the files of the desk."""
    try:
        ended = _run(case)
        _check_end(case, ended)
        _check_files(case, desk.files, desk.snapshot())
    finally:
        desk.restore()


def message(stderr: str) -> str:
    """Return what a refused command says on one line, without the usage and the box of typer."""
    boxed = _BOX.findall(stderr)
    text = " ".join(line.strip("│ ") for line in boxed if line.startswith("│")) or stderr
    return " ".join(text.split())


def _run(case: Case) -> Result:
    # --no-plugins sets this variable for worker processes; it must not reach the next command
    env = {"COLUMNS": "2000", "DPN_PLUGINS": os.environ.get("DPN_PLUGINS"), **case.env}
    with time_limit(PATIENCE):
        return CliRunner(env=env).invoke(app, shlex.split(case.line), prog_name="dpn")


def _check_end(case: Case, ended: Result) -> None:
    if ended.exception is not None and not isinstance(ended.exception, SystemExit):
        raise AssertionError(f"a traceback for: {case.command}") from ended.exception
    shown = f"{case.command}\nexit code {ended.exit_code}: {message(ended.output)}"
    assert ended.exit_code == case.code, shown
    assert "Traceback" not in ended.output, shown
    said = message(ended.stderr) if case.code == 2 else " ".join(ended.output.split())
    assert case.says in said, shown
    if case.code == 2:
        _check_refusal(case, ended, shown)


def _check_refusal(case: Case, ended: Result, shown: str) -> None:
    # a plan that cannot be carried out is shown nevertheless
    assert not ended.stdout or "--dry-run" in case.line, shown
    lines = ended.stderr.strip().splitlines()
    if _BOX.search(ended.stderr):  # the usage, the hint at --help, and the box
        assert len(lines) <= 6, shown
        return
    assert lines[-1].endswith((".", "?")), shown
    said = [line for line in lines if not line.startswith("- ")]  # without the items of a list
    assert len(said) <= 3, shown
    assert sum(bool(re.match(r"(Process \d+: )?Error: ", line)) for line in said) == 1, shown


def _check_files(case: Case, before: dict[str, str], after: dict[str, str]) -> None:
    def own(name: str) -> bool:
        return bool(case.writes) and (name == case.writes or name.startswith(f"{case.writes}/"))

    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    foreign = sorted(name for name in changed if not own(name))
    assert not foreign, f"{case.command} changed {foreign}"
    leftovers = [name for name in after if name.endswith((".lock", ".tmp"))]
    assert not leftovers, f"{case.command} left {leftovers}"


def _hash(path: Path) -> str:
    if path.is_dir():
        return "folder"
    return sha256(path.read_bytes()).hexdigest()


def parametrised(cases: list[Case]) -> pytest.MarkDecorator:
    """Return the decorator that runs a test for each case, named by the end of its command."""
    parameters = [pytest.param(case, id=case.command[-80:]) for case in cases]
    return pytest.mark.parametrize("case", parameters)
