"""
pytorch-ood's detectors and losses, read from its source, because importing it takes seconds.

It is a separate plugin, so that an unexpected change in that source affects no other entries.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

from dpn_plugin.plugins.hookspecs import Entry, hookimpl
from dpn_plugin.plugins.host_source import (
    classes,
    exported_classes,
    host_folders,
    kebab_case,
    parsed,
    summary,
)
from dpn_plugin.plugins.pytorch_ood_losses import dpn_losses, dpn_methods

__all__ = ["dpn_detectors", "dpn_losses", "dpn_methods"]

# Names that are used in papers and other benchmarks.
_SHORT_NAMES = {
    "EnergyBased": ("energy", "ebo"),
    "KLMatching": ("klm",),
    "KNN": ("deep-knn",),
    "MCD": ("mc-dropout",),
    "Mahalanobis": ("mds",),
    "MaxLogit": ("mls",),
    "MaxSoftmax": ("msp",),
    "MultiMahalanobis": ("mds-ensemble",),
    "NACUE": ("nac",),
    "RMD": ("rmds", "relative-mahalanobis"),
    "TemperatureScaling": ("temp-scaling",),
    "WeightedEBO": ("webo",),
}


@hookimpl
def dpn_detectors() -> Iterator[Entry]:
    """
    Yield an entry for every class of ``pytorch_ood.detector`` that derives from ``Detector``.

    There are none if pytorch-ood is not installed.
    """
    for folder in host_folders():
        for name, node in _detectors(folder).items():
            factory = f"pytorch_ood.detector:{name}"
            yield Entry(kebab_case(name), factory, summary(node), _aliases(name))


def _aliases(name: str) -> tuple[str, ...]:
    # The name of the class is found too, because names are compared without case.
    squashed = () if kebab_case(name) == name.lower() else (name.lower(),)
    return squashed + _SHORT_NAMES.get(name, ())


def _detectors(package: Path) -> dict[str, ast.ClassDef]:
    exported = dict(exported_classes(package / "detector"))
    known = exported | {node.name: node for node in classes(parsed(package / "api.py"))}
    return {name: node for name, node in exported.items() if _is_detector(node, known)}


def _is_detector(node: ast.ClassDef, known: dict[str, ast.ClassDef]) -> bool:
    bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
    return "Detector" in bases or any(
        base in known and base != node.name and _is_detector(known[base], known) for base in bases
    )
