"""Pure functions of tensors: Dirichlet measures and divergences, the Gaussian divergence."""

from dpn_plugin.functional.divergence import dirichlet_kl
from dpn_plugin.functional.flexible_dirichlet import FlexibleDirichlet
from dpn_plugin.functional.gaussian import cholesky, gaussian_kl
from dpn_plugin.functional.likelihood import dirichlet_nll, expected_cross_entropy
from dpn_plugin.functional.logits import check_logits, computed_dtype
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
from dpn_plugin.functional.special import log_minus_digamma, log_others, trigamma_remainder
from dpn_plugin.functional.variance import log_total_variance

__all__ = [
    "DirichletMeasures",
    "FlexibleDirichlet",
    "check_logits",
    "cholesky",
    "computed_dtype",
    "differential_entropy",
    "dirichlet_kl",
    "dirichlet_measures",
    "dirichlet_nll",
    "entropy",
    "expected_cross_entropy",
    "gaussian_kl",
    "log_minus_digamma",
    "log_neg_differential_entropy",
    "log_others",
    "log_precision",
    "log_total_variance",
    "max_p",
    "mutual_information",
    "one_minus_max_p",
    "trigamma_remainder",
]
