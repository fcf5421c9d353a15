"""How figures are called and printed; names of methods and detectors stay what users type."""

import math
import re
import zlib
from dataclasses import dataclass

__all__ = ["DASH", "MINUS", "Metric", "dataset_title", "metric", "slug", "task_title"]

#: what stands where there is no figure
DASH = "\N{EN DASH}"
MINUS = "\N{MINUS SIGN}"

_TASKS = {
    "ood": "OOD detection",
    "misclassification": "Misclassification detection",
    "classification": "Classification",
    "calibration": "Calibration",
    "gap": "Representation gap",
}


@dataclass(frozen=True)
class Metric:
    """
    :param title: what people call it
    :param larger_is_better: the direction of "best"
    :param percent: whether the fraction is printed per cent
    """

    title: str
    larger_is_better: bool = True
    percent: bool = True

    def text(self, value: float) -> str:
        """:return: the figure as printed, a dash where there is none"""
        if math.isnan(value):
            return DASH
        return f"{100 * value:.1f}" if self.percent else f"{value:.2f}"


_METRICS = {
    "auroc": Metric("AUROC"),
    "aupr": Metric("AUPR"),
    "aupr_out": Metric("AUPR-out"),
    "aupr_in": Metric("AUPR-in"),
    "fpr95": Metric("FPR95", larger_is_better=False),
    "accuracy": Metric("Accuracy"),
    "rms_error": Metric("RMS calibration error", larger_is_better=False),
    "ece": Metric("ECE", larger_is_better=False),
    "kl_correct_ood": Metric("KL(correct ‖ OOD)", percent=False),
    "kl_ood_correct": Metric("KL(OOD ‖ correct)", percent=False),
    "kl_misclassified_ood": Metric("KL(misclassified ‖ OOD)", percent=False),
    "kl_ood_misclassified": Metric("KL(OOD ‖ misclassified)", percent=False),
}


def metric(name: str) -> Metric:
    """:return: the metric of this name; one that is not known is shown as it is"""
    return _METRICS.get(name, Metric(name, percent=False))


def task_title(task: str) -> str:
    """:return: what people call a task of ``results.csv``"""
    return _TASKS.get(task, task)


def dataset_title(dataset: str) -> str:
    """:return: what people call the data of a row"""
    means = {"near": "Near (mean)", "far": "Far (mean)", "": "In-domain"}
    return means.get(dataset, dataset)


#: file systems take 255 bytes; an ending and the name of a temporary file come on top
_LONGEST = 150


def slug(*names: str) -> str:
    """:return: the names as one name of a file or anchor, with nothing that needs escaping"""
    joined = "-".join(filter(None, names))
    safe = re.sub(r"[^A-Za-z0-9_.-]+", "-", joined).lstrip("-.")[:_LONGEST]
    # names that differ only in what was replaced or cut off must not share a file
    return safe if safe == joined else f"{safe}-{zlib.crc32(joined.encode()):08x}"
