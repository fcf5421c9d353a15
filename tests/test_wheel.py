"""The files and the metadata of the wheel."""

import subprocess
import sys
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    (path,) = folder.glob("dpn_plugin-*.whl")
    return ZipFile(path)


def in_tree(package: str) -> set[str]:
    files = (path for path in (ROOT / package).rglob("*") if path.is_file())
    return {str(path.relative_to(ROOT)) for path in files if "__pycache__" not in path.parts}


@pytest.mark.parametrize("package", ["dpn_plugin", "benchmark_suites"])
def test_it_contains_every_file_of_the_package(wheel: ZipFile, package: str) -> None:
    assert {name for name in wheel.namelist() if name.startswith(f"{package}/")} == in_tree(package)


def test_it_contains_only_the_packages_the_autoload_module_and_the_metadata(wheel: ZipFile) -> None:
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {
        "dpn_plugin",
        "dpn_plugin_autoload.py",
        "benchmark_suites",
    }


def test_its_metadata_names_the_command_the_license_and_the_python(wheel: ZipFile) -> None:
    info = next(name.split("/")[0] for name in wheel.namelist() if ".dist-info/" in name)
    points = wheel.read(f"{info}/entry_points.txt").decode()
    assert "[console_scripts]\ndpn = dpn_plugin.cli:main" in points
    assert "[torch.backends]\ndpn_plugin = dpn_plugin_autoload:autoload" in points
    metadata = Parser().parsestr(wheel.read(f"{info}/METADATA").decode())
    assert metadata["Name"] == "dpn-plugin"
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"
    assert "Apache License" in wheel.read(f"{info}/licenses/LICENSE").decode()
