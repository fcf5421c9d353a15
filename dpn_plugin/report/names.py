"""Titles and number formats; methods and detectors are shown by the names that users type."""

import math
import re
import zlib
from dataclasses import dataclass

#: shown in place of a missing value
DASH = "\N{EN DASH}"
MINUS = "\N{MINUS SIGN}"

_TASKS = {
    "ood": "OOD detection",
    "full_spectrum": "Full-spectrum OOD detection",
    "shift": "Covariate shift",
    "misclassification": "Misclassification detection",
    "classification": "Classification",
    "calibration": "Calibration",
    "gap": "Representation gap",
}


@dataclass(frozen=True)
class Metric:
    """
    The title of a metric, and how its values are compared and printed.

    :param title: as shown to readers
    :param larger_is_better: whether the largest value is the best one
    :param percent: whether values are fractions that are printed in per cent
    :param decimals: the digits behind the point, as printed
    """

    title: str
    larger_is_better: bool = True
    percent: bool = True
    decimals: int = 1

    def text(self, value: float) -> str:
        """Return the value as printed, a dash for NaN."""
        if math.isnan(value):
            return DASH
        return f"{100 * value if self.percent else value:.{self.decimals}f}"


_METRICS = {
    "auroc": Metric("AUROC"),
    "aupr": Metric("AUPR"),
    "aupr_out": Metric("AUPR-out"),
    "aupr_in": Metric("AUPR-in"),
    "fpr95": Metric("FPR95", larger_is_better=False),
    "accuracy": Metric("Accuracy"),
    "rejected95": Metric("Rejected", larger_is_better=False),
    "rms_error": Metric("RMS calibration error", larger_is_better=False),
    "ece": Metric("ECE", larger_is_better=False),
    "kl_correct_ood": Metric("KL(correct ‖ OOD)", percent=False, decimals=2),
    "kl_ood_correct": Metric("KL(OOD ‖ correct)", percent=False, decimals=2),
    "kl_misclassified_ood": Metric("KL(misclassified ‖ OOD)", percent=False, decimals=2),
    "kl_ood_misclassified": Metric("KL(OOD ‖ misclassified)", percent=False, decimals=2),
}


def metric(name: str) -> Metric:
    """Return the metric of this name; an unknown one has its name as title."""
    return _METRICS.get(name, Metric(name, percent=False, decimals=2))


def task_title(task: str) -> str:
    """Return the title of a task of ``results.csv``."""
    return _TASKS.get(task, task)


def dataset_title(dataset: str) -> str:
    """Return the title of a value in the column ``dataset`` of ``results.csv``."""
    titles = {"near": "Near (mean)", "far": "Far (mean)", "": "In-domain"}
    return titles.get(dataset, dataset)


#: the names of Max.P, in the order of preference
MAX_P = ("dpn-maxp", "max-softmax", "msp")

#: file systems allow 255 bytes; a suffix and the name of a temporary file are added
_LONGEST = 150


def slug(*names: str) -> str:
    """Return the names joined as one file name or anchor that needs no escaping."""
    joined = "-".join(filter(None, names))
    safe = re.sub(r"[^A-Za-z0-9_.-]+", "-", joined).lstrip("-.")[:_LONGEST]
    # names that differ only in what was replaced or cut off must not share a file
    return safe if safe == joined else f"{safe}-{zlib.crc32(joined.encode()):08x}"
