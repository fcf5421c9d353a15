"""A browser, and the page of a real benchmark."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BENCH = (
    "bench digits --methods baseline,oe --detectors dpn-maxp,dpn-mi --epochs 1 --seeds 2 "
    "--device cpu"
)
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


@pytest.fixture(scope="session")
def browser() -> Iterator:
    api = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("needs the browser chromium (Debian: apt-get install chromium)")
    with api.sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        yield launched
        launched.close()


@pytest.fixture(scope="session")
def report(browser: object, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a short ``dpn bench digits``; written only if there is a browser."""
    out = tmp_path_factory.mktemp("digits")
    command = [sys.executable, "-m", "dpn_plugin", *BENCH.split(), "--out", str(out)]
    subprocess.run(command, cwd=ROOT, check=True, timeout=900)
    return out / "report.html"
