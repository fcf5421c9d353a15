"""The measures as outlier scores of stored outputs."""

from collections.abc import Callable, Mapping

from torch import Tensor

from dpn_plugin import functional
from dpn_plugin.metrics import ood_metrics
from dpn_plugin.report.evaluations import Evaluation

__all__ = ["best_score"]

Score = Callable[[Mapping[str, Tensor]], Tensor]


def _of_logits(measure: Callable[[Tensor], Tensor], sign: int = 1) -> Score:
    return lambda arrays: sign * measure(arrays["logits"].double())


def _told_apart(arrays: Mapping[str, Tensor]) -> Tensor:
    return (arrays["ood_logits"][:, 1] - arrays["ood_logits"][:, 0]).double()


# title: larger means more uncertain
_OF_MEANS: dict[str, Score] = {
    "1 - Max.P": _of_logits(functional.one_minus_max_p),
    "entropy": _of_logits(functional.entropy),
}
_OF_AVERAGES: dict[str, Score] = {
    **_OF_MEANS,
    "mutual information": lambda arrays: arrays["mutual_information"].double(),
}
_OF_DIRICHLETS: dict[str, Score] = {
    **_OF_MEANS,
    "mutual information": _of_logits(functional.mutual_information),
    "-log α₀": _of_logits(functional.log_precision, -1),
    "D.Ent": _of_logits(functional.differential_entropy),
}


def best_score(evaluation: Evaluation) -> tuple[str, Score]:
    """:return: the measure that tells in-domain from all OOD samples best, by AUROC"""
    if "ood_logits" in evaluation.test:
        return "log-odds of OOD", _told_apart
    measures = _OF_DIRICHLETS if evaluation.is_dirichlet else _OF_AVERAGES

    def auroc(name: str) -> float:
        score = measures[name]
        return ood_metrics(score(evaluation.test), score(evaluation.ood))["auroc"]

    best = max(measures, key=auroc)
    return best, measures[best]
