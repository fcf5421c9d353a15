"""A virtual environment with our wheel and a plugin, which sees the other packages of this one."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs" / "examples" / "plugin"
#: what a search for packages must not find: this package in the environment of the tests
OURS = ("dpn_plugin", "dpn_example", "benchmark_suites", "_editable_impl", "__pycache__")


class WheelEnvironment:
    """
    A new environment, without our package at first.

    :param folder: an empty folder
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._run(sys.executable, "-m", "venv", folder / "venv")
        self.python = folder / "venv" / "bin" / "python"
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        self.packages = folder / "venv" / "lib" / version / "site-packages"
        # Links, because the metadata of our own installation must not be visible.
        (folder / "view").mkdir()
        for path in Path(sysconfig.get_path("purelib")).iterdir():
            if not path.name.startswith(OURS) and path.suffix != ".pth":
                (folder / "view" / path.name).symlink_to(path)
        (self.packages / "view.pth").write_text(f"{folder / 'view'}\n")
        self.wheels = [self._wheel(ROOT), self._wheel(EXAMPLE)]

    def install(self) -> None:
        """Install our wheel and that of the example plugin."""
        self._pip("install", "--no-deps", "--no-index", *self.wheels)

    def uninstall(self) -> None:
        """Uninstall both."""
        self._pip("uninstall", "--yes", "dpn-plugin", "dpn-example-plugin")

    def files(self) -> set[str]:
        """Return the files of the environment, without those that Python compiles."""
        found = (path for path in (self.folder / "venv").rglob("*") if path.suffix != ".pyc")
        return {str(path) for path in found if path.name != "__pycache__"}

    def add_plugin(self, package: str, source: str) -> None:
        """Install version 1.2 of a plugin that consists of one module of the same name."""
        module = package.replace("-", "_")
        (self.packages / f"{module}.py").write_text(dedent(source))
        info = self.packages / f"{module}-1.2.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.2\n")
        (info / "entry_points.txt").write_text(f"[dpn_plugin]\n{package} = {module}\n")

    def run(self, *arguments: object, **environment: str) -> str:
        """Return what a new interpreter prints on stdout."""
        return self._run(self.python, *arguments, **environment)

    def code(self, code: str, **environment: str) -> str:
        """Return what ``code`` prints in a new interpreter."""
        return self.run("-c", dedent(code), **environment)

    def _pip(self, *arguments: object) -> None:
        self.run("-m", "pip", "-q", "--disable-pip-version-check", *arguments)

    def _wheel(self, source: Path) -> Path:
        out = self.folder / source.name
        self._run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", out, cwd=source)
        (wheel,) = out.glob("*.whl")
        return wheel

    def _run(self, *command: object, cwd: Path | None = None, **environment: str) -> str:
        unset = ("PYTHONPATH", "DPN_AUTOLOAD", "DPN_PLUGINS", "TORCH_DEVICE_BACKEND_AUTOLOAD")
        kept = {name: value for name, value in os.environ.items() if name not in unset}
        done = subprocess.run(
            [str(part) for part in command],
            cwd=cwd or self.folder,
            env={**kept, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore", **environment},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout
