"""The paper's figures beside ours."""

from importlib.resources import files
from typing import Any

import pandas as pd

from dpn_plugin.metrics import over_seeds

#: the paper's name: ours; variants have the labels of the paper's suites
_METHODS = {
    "de": "deep-ensemble",
    "dpn(0,-0.5)": "dpn-minus-in0",
    "dpn(0.5,0)": "dpn-minus-out0",
    "dpn-rev(0.1)": "dpn-rev-ood0.1",
}
#: the paper's measure: our detector
_MEASURES = {
    "max_p": "dpn-maxp",
    "entropy": "dpn-entropy",
    "mi": "dpn-mi",
    "alpha0": "dpn-precision",
    "d_ent": "dpn-dent",
}
#: its measure of the table of binary classifiers: the best of all measures, in that metric
BEST = "best"
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
    "ablation_lambda": "ood",
    "ablation_rkl": "ood",
    "ablation_binary": "ood",
    "misclassification": "misclassification",
    "calibration": "calibration",
    "gaussian_kl": "gap",
}
_KEYS = ["task", "dataset", "method", "detector", "metric"]
_COLUMNS = ["table", *_KEYS, "paper_mean", "paper_std"]
_OURS = ["backbone", "mean", "std", "n"]


def paper_figures(task: str) -> pd.DataFrame:
    """
    Return the paper's figures with our names, as fractions (divergences as they are).

    A divergence has two rows, one for each direction: the paper leaves open which one it prints.
    In the table of binary classifiers, DPN- has the detector ``best``: the paper takes the best
    AUROC and the best AUPR of all its measures.

    :param task: ``C10``, ``C100`` or ``TIM``
    """
    with files("dpn_plugin.bench").joinpath("paper_results.csv").open(encoding="utf-8") as file:
        table = pd.read_csv(file)
    table = table[table["task"] == task].copy()
    scale = table["metric"].map(lambda metric: 1.0 if metric == "kl" else 0.01)
    table["paper_mean"], table["paper_std"] = table["mean"] * scale, table["std"] * scale
    table["task"] = table["table"].map(_TABLES)
    table.loc[table["metric"] == "accuracy", "task"] = "classification"
    table["method"] = table["method"].replace(_METHODS)
    table["dataset"] = table["ood"].map(_SETS).fillna("")
    table.loc[table["table"] == "calibration", "dataset"] = _CALIBRATED_WITH[task]
    table["detector"] = [_detector(row) for row in table.itertuples()]
    table["metric"] = [_metrics(row) for row in table.itertuples()]
    return table.explode("metric")[_COLUMNS].reset_index(drop=True)


def against_paper(results: pd.DataFrame, task: str) -> pd.DataFrame:
    """
    Return every figure of the paper that the results also have, with the difference.

    The column ``compared`` says what stands beside the paper's figure where that is not obvious.

    :param results: figures with the columns of ``results.csv``
    :param task: the paper's name of the task
    """
    return compare_with_paper(over_seeds(results), task)


def compare_with_paper(summary: pd.DataFrame, task: str) -> pd.DataFrame:
    """
    Return what :func:`against_paper` does, from figures that are summarized over seeds.

    :param summary: what :func:`dpn_plugin.metrics.over_seeds` returns, of one suite
    :param task: the paper's name of the task
    """
    figures = paper_figures(task).reset_index(names="place")
    is_best = figures["detector"] == BEST
    same = figures[~is_best].merge(summary[[*_KEYS, *_OURS]], on=_KEYS)
    same["compared"] = same["metric"].map(_direction)
    keys = [key for key in _KEYS if key != "detector"]
    best = figures[is_best].drop(columns="detector").merge(_best_detectors(summary), on=keys)
    joined = pd.concat([same, best]).sort_values("place", kind="stable", ignore_index=True)
    joined["difference"] = joined["mean"] - joined["paper_mean"]
    return joined[[*_COLUMNS, *_OURS, "difference", "compared"]]


def _best_detectors(summary: pd.DataFrame) -> pd.DataFrame:
    """Return the best of the paper's measures for every set, method and metric."""
    ours = summary[summary["detector"].isin(_MEASURES.values()) & summary["mean"].notna()]
    groups = ours.groupby(["backbone", *(key for key in _KEYS if key != "detector")], sort=False)
    best = ours.loc[groups["mean"].idxmax(), [*_KEYS, *_OURS]]
    names = groups["detector"].agg(", ".join).rename("names").reset_index()
    best = best.merge(names)
    best["compared"] = best["detector"] + ", the best of " + best["names"]
    return best.drop(columns="names")


def _detector(row: Any) -> str:
    """Return our name of the detector that a figure of the paper belongs to."""
    if row.measure == BEST:
        # the binary classifier has a single score
        return "binary" if row.method == "binary" else BEST
    return _MEASURES.get(row.measure, "")


def _metrics(row: Any) -> list[str]:
    """Return our metrics that a figure of the paper may be."""
    if row.metric == "kl":
        # "from in-domain to OOD" usually means the first; the appendix defines it as the second
        return [f"kl_{row.measure}_ood", f"kl_ood_{row.measure}"]
    return ["aupr_out" if row.metric == "aupr" and row.task == "ood" else row.metric]


def _direction(metric: str) -> str:
    if not metric.startswith("kl_"):
        return ""
    _, of, against = metric.split("_")
    return f"KL({of} || {against}), one of two directions that the paper may mean"
