"""
Check a model of each of timm's modules, print and write the table.

``python -m benchmark_suites.backbones`` exits with 1 if one of them cannot be used.
"""

import argparse
import logging
import sys
import warnings
from pathlib import Path

import timm

import dpn_plugin
from benchmark_suites.backbones.models import model_of, modules
from benchmark_suites.backbones.rows import check
from benchmark_suites.backbones.table import page
from dpn_plugin._files import replacing


def main() -> None:
    """Run the check and exit the process."""
    options = _arguments()
    logging.getLogger("timm").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")  # of timm, about deprecated names
    rows = []
    for module in options.modules:
        rows.append(check(module, model_of(module)))
        print(f"{module:28} {rows[-1].seconds:5.1f} s {rows[-1].reason or 'works'}", flush=True)
    if options.out is not None:
        with replacing(options.out) as staged:
            text = page(rows, len(dpn_plugin.list_detectors()), timm.__version__)
            staged.write_text(text, encoding="utf-8")
    sys.exit(any(row.reason for row in rows))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--modules", nargs="+", default=modules(), choices=modules())
    parser.add_argument("--out", type=Path, default=Path("docs/backbones.md"))
    return parser.parse_args()


main()
