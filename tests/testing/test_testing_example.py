"""The example plugin of the documentation: build, install, list, check, benchmark, remove."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs" / "examples" / "plugin"


def run(*command: object, folder: Path, **environment: str) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200", **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


class Environment:
    """
    A virtual environment that also finds the packages of this one, so that torch is not installed
    twice; the example is installed only there.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        run(sys.executable, "-m", "venv", folder / "venv", folder=folder)
        self.python = folder / "venv" / "bin" / "python"
        purelib = run(
            self.python,
            "-c",
            "import sysconfig; print(sysconfig.get_path('purelib'))",
            folder=folder,
        )
        shared = f"{ROOT}\n{sysconfig.get_path('purelib')}\n"
        (Path(purelib.strip()) / "shared.pth").write_text(shared)

    def pip(self, *arguments: object) -> None:
        run(self.python, "-m", "pip", "-q", *arguments, folder=self.folder)

    def dpn(self, *arguments: str, **environment: str) -> str:
        return run(self.python, "-m", "dpn_plugin", *arguments, folder=self.folder, **environment)

    def names(self, kind: str, *options: str, **environment: str) -> set[str]:
        listed = json.loads(self.dpn(*options, "list", kind, "--json", **environment))
        return {each["name"] for each in listed if each["package"] == "dpn-example-plugin"}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    folder = tmp_path_factory.mktemp("example")
    source = shutil.copytree(EXAMPLE, folder / "source")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, folder=source)
    (wheel,) = folder.glob("dpn_example_plugin-*.whl")
    environment = Environment(folder)
    environment.pip("install", "--no-deps", "--no-index", wheel)
    return environment


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("detectors", "logit-margin nearest-mean"),
        ("losses", "focal"),
        ("methods", "focal"),
        ("datasets", "stripes"),
        ("suites", "stripes"),
    ],
)
def test_once_installed_it_is_listed(installed: Environment, kind: str, name: str) -> None:
    assert installed.names(kind) == set(name.split())


def test_an_allow_list_and_no_plugins_leave_it_out(installed: Environment) -> None:
    assert installed.names("detectors", DPN_PLUGINS="example") == {
        "logit-margin",
        "nearest-mean",
    }
    assert installed.names("detectors", DPN_PLUGINS="another") == set()
    assert installed.names("detectors", "--no-plugins") == set()


def test_dpn_plugins_shows_its_package_version_hooks_and_entries(installed: Environment) -> None:
    record = json.loads(installed.dpn("plugins", "--json"))
    (found,) = [each for each in record["plugins"] if each["plugin"] == "example"]
    assert (found["package"], found["version"]) == ("dpn-example-plugin", "1.0.0")
    assert len(found["hooks"]) == len(found["entries"]) == 5
    assert record["failures"] == []


def test_its_own_tests_pass(installed: Environment) -> None:
    shown = run(installed.python, "-m", "pytest", "-q", "tests", folder=installed.folder / "source")
    assert "failed" not in shown
    assert "55 passed, 1 skipped" in shown


def test_dpn_check_finds_it_by_its_distribution(installed: Environment) -> None:
    found = json.loads(installed.dpn("check", "dpn-example-plugin", "--json"))
    assert {each["outcome"] for each in found} == {"passed", "skipped"}
    assert "plugin example" in {each["subject"] for each in found}


def test_its_suite_compares_its_method_and_detector_with_ours(installed: Environment) -> None:
    installed.dpn("bench", "stripes", "--epochs", "1", "--limit", "60", "--out", "out")
    table: Any = pd.read_csv(installed.folder / "out" / "results.csv")
    assert set(table["method"]) == {"baseline", "focal"}
    assert {"logit-margin", "nearest-mean", "dpn-mi"} <= set(table["detector"].dropna())
    assert {"squares", "digits"} <= set(table["dataset"].dropna())


def test_once_removed_it_is_gone(installed: Environment) -> None:
    installed.pip("uninstall", "-y", "dpn-example-plugin")
    try:
        assert installed.names("detectors") == set()
        assert "logit-margin" not in installed.dpn("list", "detectors")
    finally:
        installed.pip("install", "--no-deps", "--no-index", *installed.folder.glob("*.whl"))
