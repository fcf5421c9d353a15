"""The representation gap with the weights of the paper, and with an anchored precision."""

import math
from functools import partial

from dpn_plugin.losses.checks import check_integer
from dpn_plugin.losses.representation_gap import RepresentationGapLoss

#: weight of the anchor of the anchored losses
ANCHOR = 0.02

#: target concentrations of one class, times K for the precision: in-domain, OOD of DPN+ and DPN-
CONCENTRATION_IN, CONCENTRATION_PLUS, CONCENTRATION_MINUS = 100.0, 1.0, 0.1


def dpn_plus(
    num_classes: int,
    *,
    lambda_in: float = 1.5,
    lambda_out: float | None = None,
    gamma: float = 0.5,
    reduction: str = "mean",
    anchor: float = 0.0,
    log_precision_in: float | None = None,
    log_precision_out: float | None = None,
) -> RepresentationGapLoss:
    r"""
    Return DPN+, which trains OOD samples towards equal concentrations above one.

    :param num_classes: number of classes :math:`K`, which the logits must have
    :param lambda_in: the paper's 1.5
    :param lambda_out: the paper's :math:`1/K + 0.5` unless given
    :param gamma: weight of the OOD samples
    :param reduction: one of ``mean``, ``sum`` or ``none``
    :param anchor: weight of the anchor; zero in the paper
    :param log_precision_in: target of the anchor for in-domain samples, :math:`\ln 100 K` unless
        given
    :param log_precision_out: the same for OOD samples, :math:`\ln K` unless given
    """
    classes = check_integer("num_classes", num_classes, least=2)
    return RepresentationGapLoss(
        lambda_in,
        1 / classes + 0.5 if lambda_out is None else lambda_out,
        gamma,
        reduction,
        classes,
        anchor,
        _target(log_precision_in, CONCENTRATION_IN, classes, anchor),
        _target(log_precision_out, CONCENTRATION_PLUS, classes, anchor),
    )


def dpn_minus(
    num_classes: int,
    *,
    lambda_in: float = 0.5,
    lambda_out: float | None = None,
    gamma: float = 0.5,
    reduction: str = "mean",
    anchor: float = 0.0,
    log_precision_in: float | None = None,
    log_precision_out: float | None = None,
) -> RepresentationGapLoss:
    r"""
    Return DPN-, which trains OOD samples towards low precision, the density at all corners.

    :param num_classes: number of classes :math:`K`, which the logits must have
    :param lambda_in: the paper's 0.5
    :param lambda_out: the paper's :math:`1/K - 0.5` unless given
    :param gamma: weight of the OOD samples
    :param reduction: one of ``mean``, ``sum`` or ``none``
    :param anchor: weight of the anchor; zero in the paper
    :param log_precision_in: target of the anchor for in-domain samples, :math:`\ln 100 K` unless
        given
    :param log_precision_out: the same for OOD samples, :math:`\ln 0.1 K` unless given
    """
    classes = check_integer("num_classes", num_classes, least=2)
    return RepresentationGapLoss(
        lambda_in,
        1 / classes - 0.5 if lambda_out is None else lambda_out,
        gamma,
        reduction,
        classes,
        anchor,
        _target(log_precision_in, CONCENTRATION_IN, classes, anchor),
        _target(log_precision_out, CONCENTRATION_MINUS, classes, anchor),
    )


#: :func:`dpn_plus` and :func:`dpn_minus` with an anchored precision; the arguments are the same
dpn_plus_anchored = partial(dpn_plus, anchor=ANCHOR)
dpn_minus_anchored = partial(dpn_minus, anchor=ANCHOR)


def _target(value: float | None, concentration: float, classes: int, anchor: float) -> float | None:
    """Return the log-precision of ``classes`` equal concentrations, unless a value is given."""
    if value is None and anchor:
        return math.log(concentration * classes)
    return value
