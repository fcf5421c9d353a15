"""Input that means harm, and what must follow: a result or one clear sentence."""

import json
import pickle
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from click.testing import Result
from typer.testing import CliRunner

from dpn_plugin.cli import app
from dpn_plugin.errors import UserError

#: names that try to leave a folder, to be markup, a formula, a command, or too much
NAMES = (
    "../../x",
    "/proc/x",
    "..",
    "<script>alert(1)</script>",
    '" onload="alert(1)',
    r"\input{/etc/passwd}",
    "$\\frac{$",
    "=cmd|' /C calc'!A0",
    "[/red]",
    "\x1b[31mred",
    "ünï\N{ZERO WIDTH JOINER}çødé\N{RIGHT-TO-LEFT OVERRIDE}",
    "{{ 7 * 7 }}",
    "x" * 300,
    " ",
)


class Payload:
    """Unpickled, it makes a file."""

    def __init__(self, marker: Path) -> None:
        self.marker = str(marker)

    def __reduce__(self) -> Any:
        return open, (self.marker, "w")


def pickled(marker: Path) -> bytes:
    """:return: a pickle that creates ``marker`` when it is read"""
    return pickle.dumps(Payload(marker), protocol=2)


def dpn(*arguments: object, seconds: int = 60) -> Result:
    """Run a command, and see to it that it ends in time, well or with a message and 2."""
    with time_limit(seconds):
        done = CliRunner(env={"COLUMNS": "200"}).invoke(
            app, list(map(str, arguments)), prog_name="dpn"
        )
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise AssertionError(f"a traceback for {arguments}") from done.exception
    assert done.exit_code in (0, 2), done.output
    assert "Traceback" not in done.output
    assert done.output.strip() or done.exit_code == 0, "no message"
    return done


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """A hang becomes a failure."""

    def ring(*_: object) -> None:
        raise AssertionError(f"not done after {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def outcome(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    """:return: what the function gives in time, or the words with which it refuses"""
    try:
        with time_limit(60):
            return function(*arguments, **keywords)
    except UserError as error:
        if not str(error):
            raise
        return str(error)


def files(folder: Path) -> set[str]:
    """:return: every file and folder below ``folder``"""
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def changed_json(path: Path, **changes: Any) -> None:
    """Change keys of a JSON file that a hash seals, and seal it again as an attacker would."""
    from dpn_plugin.sealed import sealed

    content = json.loads(path.read_text("utf-8")) | changes
    content.pop("sha256", None)
    path.write_text(sealed(content), "utf-8")
