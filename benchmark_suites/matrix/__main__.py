"""
Train the small backbones, run every detector on each, print and write the table.

``python -m benchmark_suites.matrix`` takes a quarter of an hour on two cores. It exits with 1 if a
detector fails, or if its scores depend on the batch without a known reason.
"""

import argparse
import sys
from pathlib import Path

import dpn_plugin
from benchmark_suites.matrix.cells import Cell, cell, reason_for_unsteadiness
from benchmark_suites.matrix.subjects import BACKBONES, subject
from benchmark_suites.matrix.table import page
from dpn_plugin._files import replacing


def main() -> None:
    """Run the matrix and exit the process."""
    options = _arguments()
    cells: list[Cell] = []
    accuracies = {}
    for name in options.backbones:
        found = subject(name)
        accuracies[name] = found.accuracy
        print(f"{name}: accuracy {100 * found.accuracy:.1f} %", flush=True)
        for detector in dpn_plugin.list_detectors():
            cells.append(cell(detector, found))
            print(f"  {_line(cells[-1])}", flush=True)
    with replacing(options.out) as staged:
        staged.write_text(page(cells, accuracies), encoding="utf-8")
    sys.exit(any(map(_is_wrong, cells)))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backbones", nargs="+", default=list(BACKBONES), choices=list(BACKBONES))
    parser.add_argument("--out", type=Path, default=Path("docs/detector-matrix.md"))
    return parser.parse_args()


def _line(cell: Cell) -> str:
    if cell.reason:
        return f"{cell.detector:20} {'failed' if cell.failed else 'not applicable'}: {cell.reason}"
    note = "" if cell.steady else f", depends on the batch: {reason_for_unsteadiness(cell)}"
    figures = f"AUROC {100 * cell.auroc:5.1f}, {cell.seconds:5.1f} s"
    return f"{cell.detector:20} {cell.reads:8} {figures}{note}"


def _is_wrong(cell: Cell) -> bool:
    return cell.failed or not (cell.steady or reason_for_unsteadiness(cell))


main()
