"""Plugins are loaded from installed entry points only."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PLUGIN = """
open({marker!r}, "w")
import dpn_plugin
@dpn_plugin.hookimpl
def dpn_detectors():
    yield dpn_plugin.Entry("evil", "evil:Evil", "evil")
"""
NAMES = ("dpn_plugin_evil", "dpn_evil", "pytorch_ood_evil", "conftest", "plugin", "sitecustom")


@pytest.mark.parametrize("place", ["cwd", "PYTHONPATH"])
def test_a_module_that_is_not_installed_is_not_loaded(place: str, tmp_path: Path, marker: Path):
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in NAMES:
        (folder / f"{name}.py").write_text(PLUGIN.format(marker=str(marker)))
    (folder / "entry_points.txt").write_text("[dpn_plugin]\nevil = dpn_plugin_evil\n")
    (folder / "pyproject.toml").write_text(
        '[project]\nname = "evil"\n[project.entry-points.dpn_plugin]\nevil = "dpn_plugin_evil"\n'
    )
    path = {"PYTHONPATH": str(folder)} if place == "PYTHONPATH" else {}
    done = subprocess.run(
        [
            sys.executable,
            "-P",
            "-c",
            "from dpn_plugin.cli import main; main()",
            "list",
            "detectors",
        ],
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=120,
        env={**os.environ, **path},
    )
    assert done.returncode == 0, done.stderr
    assert "dpn-mi" in done.stdout
    assert "evil" not in done.stdout
    assert not marker.exists()


def test_an_installed_entry_point_is_loaded_unless_plugins_are_off(tmp_path: Path, marker: Path):
    """The same module is loaded once it is a distribution, so the test above can fail."""
    (tmp_path / "dpn_plugin_evil.py").write_text(PLUGIN.format(marker=str(marker)))
    info = tmp_path / "evil-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: evil\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[dpn_plugin]\nevil = dpn_plugin_evil\n")
    code = "from dpn_plugin.cli import main; main()"
    for arguments, loaded in ((["--no-plugins"], False), ([], True)):
        subprocess.run(
            [sys.executable, "-c", code, *arguments, "list", "detectors"],
            capture_output=True,
            timeout=120,
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
        )
        assert marker.exists() == loaded
