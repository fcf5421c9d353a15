"""Small source trees for the tests of the lint checks."""

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

LINT = Path(__file__).parent


def write_tree(root: Path, files: dict[str, str]) -> None:
    """Write ``files``, text by path, below ``root``."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text).lstrip("\n"), encoding="utf-8")


def run_check(name: str, root: Path) -> tuple[int, list[str]]:
    """Run a check as ``tox -e lint`` does; return its exit code and the lines that it prints."""
    done = subprocess.run(
        [sys.executable, str(LINT / name), str(root)], capture_output=True, text=True, timeout=60
    )
    assert not done.stderr
    return done.returncode, done.stdout.splitlines()
