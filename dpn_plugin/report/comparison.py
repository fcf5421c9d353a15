"""The paper's figures beside ours."""

from dataclasses import dataclass

from dpn_plugin.report.load import Results
from dpn_plugin.report.names import MINUS, dataset_title, metric
from dpn_plugin.report.tables import Cell

__all__ = ["Compared", "comparison"]


@dataclass(frozen=True)
class Compared:
    """One figure of the paper, ours, and ours minus the paper's as printed."""

    backbone: str
    method: str
    set: str
    metric: str
    detector: str
    paper: Cell
    ours: Cell
    difference: str


def comparison(results: Results) -> list[Compared]:
    """:return: every figure that both have, in the paper's order"""
    found = []
    for row in results.comparison.to_dict("records"):
        kind = metric(row["metric"])
        paper = Cell(row["paper_mean"], row["paper_std"], 0, kind)
        ours = Cell(row["mean"], row["std"], int(row["n"]), kind)
        sign = "+" if row["difference"] >= 0 else MINUS
        found.append(
            Compared(
                row["backbone"],
                row["method"],
                dataset_title(row["dataset"]),
                kind.title,
                row["detector"],
                paper,
                ours,
                f"{sign}{kind.text(abs(row['difference']))}",
            )
        )
    return found
