"""The scores that stored outputs give without a network: the paper's measures."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from dpn_plugin import functional
from dpn_plugin.report.stored_runs import Outputs


@dataclass(frozen=True)
class Measure:
    """
    A score of stored outputs.

    :param title: as shown in figures
    :param score: gives one number per sample; larger is more uncertain
    """

    title: str
    score: Callable[[Outputs], Tensor]


def measures(outputs: Outputs) -> dict[str, Measure]:
    """Return the measures of a run by the names of their detectors in ``results.csv``."""
    if outputs.ood_logits is not None:
        return {"binary": Measure("log-odds of OOD", _ood_log_odds)}
    return _OF_DIRICHLETS if outputs.is_dirichlet else _OF_AVERAGES


def _of_logits(measure: Callable[[Tensor], Tensor], sign: int = 1) -> Callable[[Outputs], Tensor]:
    return lambda outputs: sign * measure(outputs.logits.double())


def _averaged_mutual_information(outputs: Outputs) -> Tensor:
    assert outputs.mutual_information is not None
    return outputs.mutual_information.double()


def _ood_log_odds(outputs: Outputs) -> Tensor:
    assert outputs.ood_logits is not None
    return (outputs.ood_logits[:, 1] - outputs.ood_logits[:, 0]).double()


_OF_MEANS = {
    "dpn-maxp": Measure("1 - Max.P", _of_logits(functional.one_minus_max_p)),
    "dpn-entropy": Measure("entropy", _of_logits(functional.entropy)),
}
_OF_AVERAGES = {
    **_OF_MEANS,
    "dpn-mi": Measure("mutual information", _averaged_mutual_information),
}
_OF_DIRICHLETS = {
    **_OF_MEANS,
    "dpn-mi": Measure("mutual information", _of_logits(functional.mutual_information)),
    "dpn-precision": Measure("-log α₀", _of_logits(functional.log_precision, -1)),
    "dpn-dent": Measure("-log(-D.Ent)", _of_logits(functional.log_neg_differential_entropy, -1)),
}
