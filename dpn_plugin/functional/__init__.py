"""Pure functions of tensors: Dirichlet measures and divergences, the Gaussian divergence."""

from dpn_plugin.functional.divergence import dirichlet_kl
from dpn_plugin.functional.gaussian import gaussian_kl
from dpn_plugin.functional.logits import check_logits
from dpn_plugin.functional.measures import (
    DirichletMeasures,
    differential_entropy,
    dirichlet_measures,
    entropy,
    log_neg_differential_entropy,
    log_precision,
    max_p,
    mutual_information,
    one_minus_max_p,
)

__all__ = [
    "DirichletMeasures",
    "check_logits",
    "differential_entropy",
    "dirichlet_kl",
    "dirichlet_measures",
    "entropy",
    "gaussian_kl",
    "log_neg_differential_entropy",
    "log_precision",
    "max_p",
    "mutual_information",
    "one_minus_max_p",
]
