"""The paper's figures beside ours."""

from importlib.resources import files

import pandas as pd

from dpn_plugin.metrics import over_seeds

__all__ = ["against_paper", "paper_figures"]

#: the paper's name: ours
_METHODS = {"de": "deep-ensemble"}
_MEASURES = {
    "max_p": "dpn-maxp",
    "entropy": "dpn-entropy",
    "mi": "dpn-mi",
    "alpha0": "dpn-precision",
    "d_ent": "dpn-dent",
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
_COLUMNS = ["table", "dataset", "method", "detector", "metric", "paper_mean", "paper_std"]


def paper_figures(task: str) -> pd.DataFrame:
    """
    :param task: ``C10``, ``C100`` or ``TIM``
    :return: the paper's figures in our names and as fractions (divergences as they are); rows of
        its ablations, which have methods of their own, are left out
    """
    with files("dpn_plugin.bench").joinpath("paper_results.csv").open(encoding="utf-8") as file:
        table = pd.read_csv(file)
    table = table[(table["task"] == task) & ~table["table"].str.startswith("ablation_")].copy()
    scale = table["metric"].map(lambda metric: 1.0 if metric == "kl" else 0.01)
    table["paper_mean"], table["paper_std"] = table["mean"] * scale, table["std"] * scale
    table["method"] = table["method"].replace(_METHODS)
    table["dataset"] = table["ood"].map(_SETS).fillna("")
    table["detector"] = table["measure"].map(_MEASURES).fillna("")
    table["metric"] = [_metric(row) for row in table.itertuples()]
    return table[_COLUMNS].reset_index(drop=True)


def against_paper(results: pd.DataFrame, task: str) -> pd.DataFrame:
    """
    :param results: figures with the columns of ``results.csv``
    :param task: the paper's name of the task
    :return: every figure of the paper that the results hold too, with the difference
    """
    ours = over_seeds(results)
    ours["table"] = ours["task"].map(
        {
            "ood": "ood_detection",
            "misclassification": "misclassification",
            "classification": "misclassification",
            "calibration": "calibration",
            "gap": "gaussian_kl",
        }
    )
    keys = ["table", "dataset", "method", "detector", "metric"]
    joined = paper_figures(task).merge(ours[[*keys, "backbone", "mean", "std", "n"]], on=keys)
    joined["difference"] = joined["mean"] - joined["paper_mean"]
    return joined


def _metric(row: object) -> str:
    metric, table, measure = (getattr(row, name) for name in ("metric", "table", "measure"))
    if metric == "kl":
        # the direction that the paper's text names: from in-domain to OOD
        return f"kl_{measure}_ood"
    return "aupr_out" if metric == "aupr" and table == "ood_detection" else metric
