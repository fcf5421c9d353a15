"""One row per backbone, method, detector and OOD set, best first."""

from dataclasses import dataclass

from dpn_plugin.report.load import Results
from dpn_plugin.report.names import dataset_title, metric
from dpn_plugin.report.tables import Cell

__all__ = ["METRICS", "Standing", "standings"]

#: the columns with figures
METRICS = ("auroc", "aupr_out", "aupr_in", "fpr95")
_IDENTITY = ["suite", "backbone", "method", "detector", "dataset"]


@dataclass(frozen=True)
class Standing:
    """A row of the leaderboard; ``cells`` follow :data:`METRICS`."""

    suite: str
    backbone: str
    method: str
    detector: str
    dataset: str
    cells: tuple[Cell | None, ...]

    @property
    def dataset_title(self) -> str:
        """What people call the data set."""
        return dataset_title(self.dataset)

    @property
    def seeds(self) -> int:
        """How many seeds stand behind the figures."""
        return max((cell.n for cell in self.cells if cell is not None), default=0)


def standings(results: Results) -> list[Standing]:
    """:return: all rows of OOD detection, the highest AUROC first"""
    rows = results.summary[results.summary["task"].eq("ood")]
    found = []
    for identity, group in rows.groupby(_IDENTITY, sort=False):
        cells = {
            row["metric"]: Cell(row["mean"], row["std"], int(row["n"]), metric(row["metric"]))
            for row in group.to_dict("records")
        }
        names = dict(zip(_IDENTITY, map(str, identity), strict=True))
        found.append(Standing(**names, cells=tuple(cells.get(name) for name in METRICS)))
    return sorted(found, key=_rank)


def _rank(standing: Standing) -> float:
    auroc = standing.cells[0]
    # NaN does not sort
    return 1.0 if auroc is None or auroc.mean != auroc.mean else -auroc.mean
