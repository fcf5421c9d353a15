"""Distributions in a folder on the path: modules and their ``.dist-info``."""

import json
import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


class Site:
    """A folder of installed distributions, and processes that see it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def install(self, package: str, source: str, entry_points: str | None = None) -> None:
        """Install version 1.2 of ``package``: one module of the same name, one entry point."""
        module = package.replace("-", "_")
        (self.folder / f"{module}.py").write_text(dedent(source))
        info = self.folder / f"{module}-1.2.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.2\n")
        points = entry_points or f"[dpn_plugin]\n{package} = {module}\n"
        (info / "entry_points.txt").write_text(points)

    def run(
        self, *arguments: str, input: str | None = None, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        paths = os.pathsep.join([str(self.folder), str(ROOT)])
        return subprocess.run(
            [sys.executable, *arguments],
            input=input,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", **environment},
            cwd=self.folder,
            timeout=300,
        )

    def python(self, code: str, **environment: str) -> str:
        """Return what ``code`` prints."""
        done = self.run("-c", dedent(code), **environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def dpn_json(self, *arguments: str, **environment: str) -> Any:
        """Return what ``dpn ... --json`` prints, parsed."""
        done = self.run("-m", "dpn_plugin", *arguments, "--json", **environment)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


@pytest.fixture(scope="module")
def shared_site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return Site(tmp_path_factory.mktemp("site"))
