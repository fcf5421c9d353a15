"""The figures on held-out data by which hyper-parameters of methods are chosen."""

from dpn_plugin.errors import UserError
from dpn_plugin.evaluation.rows import is_correct
from dpn_plugin.evaluation.scorers import BINARY, FOR_AVERAGES, Arrays, measure_scores
from dpn_plugin.metrics import ood_metrics
from dpn_plugin.runs import Method

OF_DIRICHLETS = ("dpn-maxp", "dpn-entropy", "dpn-mi", "dpn-precision", "dpn-dent")


def held_out_figures(
    method: Method, inside: Arrays, outside: Arrays | None = None
) -> dict[str, float | str]:
    """
    Return ``accuracy`` and, with outliers, ``auroc`` and the ``measure`` that gives it.

    The measure is the best one of those that need no fitting. That rule is the same for all
    methods; the score of the OOD classifier is used where there is one.

    :param method: of the run
    :param inside: outputs for held-out in-domain samples
    :param outside: outputs for held-out outliers
    :raises UserError: if no measure has finite scores
    """
    found: dict[str, float | str] = {"accuracy": float(is_correct(inside).double().mean())}
    if outside is None:
        return found
    aurocs = held_out_aurocs(method, inside, outside)
    best = max(aurocs, key=aurocs.__getitem__)
    return {**found, "auroc": aurocs[best], "measure": best}


def held_out_aurocs(method: Method, inside: Arrays, outside: Arrays) -> dict[str, float]:
    """Return the AUROC of held-out samples for every measure of a method."""
    names = (BINARY,) if method.has_ood_classifier else measures_of(method)
    found, problem = {}, None
    for name in names:
        try:
            scores = measure_scores(inside, name), measure_scores(outside, name)
            found[name] = ood_metrics(*scores)["auroc"]
        except UserError as error:  # scores that are not finite, of a failed training
            problem = error
    if not found and problem is not None:
        raise problem
    return found


def measures_of(method: Method) -> tuple[str, ...]:
    """Return the measures that a method's outputs have without a fitted detector."""
    return FOR_AVERAGES if method.averages else OF_DIRICHLETS
