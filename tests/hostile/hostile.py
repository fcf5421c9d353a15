"""Malicious or damaged input must give a result or one clear message."""

import json
import pickle
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from click.testing import Result
from typer.testing import CliRunner

from dpn_plugin._records import json_hash
from dpn_plugin.cli import app
from dpn_plugin.errors import UserError

#: names that lead out of a folder, or are markup, formulas, commands or too long
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
    """An object that creates a file when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = str(marker)

    def __reduce__(self) -> Any:
        return open, (self.marker, "w")


def pickled(marker: Path) -> bytes:
    """Return a pickle that creates ``marker`` when it is read."""
    return pickle.dumps(Payload(marker), protocol=2)


def dpn(*arguments: object, seconds: int = 60) -> Result:
    """Run a command; it must end in time, with success or with a message and exit code 2."""
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
    """Fail if the block takes longer."""

    def on_alarm(*_: object) -> None:
        raise AssertionError(f"not done after {seconds} s")

    before = signal.signal(signal.SIGALRM, on_alarm)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def outcome(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    """Return the result of a function, or the message of its UserError; fail if it hangs."""
    try:
        with time_limit(60):
            return function(*arguments, **keywords)
    except UserError as error:
        if not str(error):
            raise
        return str(error)


def files(folder: Path) -> set[str]:
    """Return every file and folder below ``folder``."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def forge_record(path: Path, **changes: Any) -> None:
    """Change keys of a record and compute its hash again, as an attacker would."""
    content = json.loads(path.read_text("utf-8")) | changes
    content.pop("sha256", None)
    text = json.dumps({"sha256": json_hash(content), **content})
    path.write_text(text, "utf-8")
