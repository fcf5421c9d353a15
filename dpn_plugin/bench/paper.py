"""The paper's figures beside ours."""

from importlib.resources import files
from typing import Any

import pandas as pd

from dpn_plugin.metrics import over_seeds

#: the paper's name: ours
_METHODS = {"de": "deep-ensemble"}
_MEASURES = {
    "max_p": "dpn-maxp",
    "entropy": "dpn-entropy",
    "mi": "dpn-mi",
    "alpha0": "dpn-precision",
    "d_ent": "dpn-dent",
    "best": "binary",
}
_SETS = {
    "Tiny": "tinyimagenet",
    "STL-10": "stl10",
    "LSUN": "lsun",
    "Places365": "places365",
    "Textures": "textures",
    "CIFAR-10": "cifar10",
    "CIFAR-100": "cifar100",
}
#: the OOD set of its calibration table
_CALIBRATED_WITH = {"C10": "stl10", "C100": "stl10", "TIM": "cifar100"}
#: its table: our task
_TABLES = {
    "ood_detection": "ood",
    "ablation_binary": "ood",
    "misclassification": "misclassification",
    "calibration": "calibration",
    "gaussian_kl": "gap",
}
_KEYS = ["task", "dataset", "method", "detector", "metric"]
_COLUMNS = ["table", *_KEYS, "paper_mean", "paper_std"]


def paper_figures(task: str) -> pd.DataFrame:
    """
    Return the paper's figures with our names, as fractions (divergences as they are).

    A divergence has two rows, one for each direction: the paper leaves open which one it prints.
    Its ablations are left out, except the binary classifier: they repeat other tables or have
    methods of their own.

    :param task: ``C10``, ``C100`` or ``TIM``
    """
    with files("dpn_plugin.bench").joinpath("paper_results.csv").open(encoding="utf-8") as file:
        table = pd.read_csv(file)
    repeated = (table["measure"] == "best") & (table["method"] != "binary")
    table = table[(table["task"] == task) & table["table"].isin(_TABLES) & ~repeated].copy()
    scale = table["metric"].map(lambda metric: 1.0 if metric == "kl" else 0.01)
    table["paper_mean"], table["paper_std"] = table["mean"] * scale, table["std"] * scale
    table["task"] = table["table"].map(_TABLES)
    table.loc[table["metric"] == "accuracy", "task"] = "classification"
    table["method"] = table["method"].replace(_METHODS)
    table["dataset"] = table["ood"].map(_SETS).fillna("")
    table.loc[table["table"] == "calibration", "dataset"] = _CALIBRATED_WITH[task]
    table["detector"] = table["measure"].map(_MEASURES).fillna("")
    table["metric"] = [_metrics(row) for row in table.itertuples()]
    return table.explode("metric")[_COLUMNS].reset_index(drop=True)


def against_paper(results: pd.DataFrame, task: str) -> pd.DataFrame:
    """
    Return every figure of the paper that the results also have, with the difference.

    :param results: figures with the columns of ``results.csv``
    :param task: the paper's name of the task
    """
    ours = over_seeds(results)[[*_KEYS, "backbone", "mean", "std", "n"]]
    joined = paper_figures(task).merge(ours, on=_KEYS)
    joined["difference"] = joined["mean"] - joined["paper_mean"]
    return joined


def _metrics(row: Any) -> list[str]:
    """Return our metrics that a figure of the paper may be."""
    if row.metric == "kl":
        # "from in-domain to OOD" usually means the first; the appendix defines it as the second
        return [f"kl_{row.measure}_ood", f"kl_ood_{row.measure}"]
    return ["aupr_out" if row.metric == "aupr" and row.task == "ood" else row.metric]
