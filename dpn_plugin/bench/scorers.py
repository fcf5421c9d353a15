"""From the name of a detector to the scores of every test set."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from dpn_plugin.bench.outputs import RunOutputs
from dpn_plugin.bench.unit import BINARY
from dpn_plugin.detectors import GaussianKL, NotApplicable, fit, scores, tune
from dpn_plugin.outputs import score_chunks
from dpn_plugin.plugins import registry

__all__ = ["Scorer", "reads_training_data", "scorer"]

#: from the name of a test set to its scores
Scorer = Callable[[str], Tensor]

#: what an average of predictions can be scored by, as in the paper
_OF_AVERAGES = ("dpn-maxp", "dpn-entropy", "dpn-mi")


def scorer(outputs: RunOutputs, name: str, tuned: bool) -> tuple[Scorer, dict[str, Any]]:
    """
    :param outputs: of the run that is scored
    :param name: of the detector, or :data:`BINARY` for the run's own second network
    :param tuned: search the detector's hyper-parameters on held-out data, if there are outliers
    :return: the scorer, and the hyper-parameters that were chosen
    :raises UserError: if the run cannot be scored so
    """
    if name == BINARY:
        return lambda set_name: _told_apart(outputs, set_name), {}
    if outputs.method.averages:
        return _of_averages(outputs, name), {}
    detector = registry.create_detector(name, outputs.predictor.classifier)
    detector.to(outputs.device)
    chosen = _fitted(detector, outputs, tuned)
    return lambda set_name: scores(
        detector, outputs.arrays(set_name), outputs.batches(set_name)
    ), chosen


def _fitted(detector: Any, outputs: RunOutputs, tuned: bool) -> dict[str, Any]:
    """Fit on training data, and choose on held-out data; the test sets have no part in either."""
    needs, batches = _needs(detector, outputs, tuned), outputs.batches("train")
    if needs == "held-out data":
        fit(detector, outputs.held_out(), outputs.held_out_batches())
    elif needs == "both":
        held_out = outputs.held_out(), outputs.held_out_batches()
        return tune(detector, outputs.arrays("train"), batches, *held_out)
    elif needs == "training data":
        fit(detector, outputs.arrays("train"), batches)
    return {}


def _needs(detector: Any, outputs: RunOutputs, tuned: bool) -> str:
    """:return: what a detector is fitted to; nothing for many"""
    if isinstance(detector, GaussianKL):
        # training samples are all classified correctly; it needs those that are not, and outliers
        return "held-out data"
    if tuned and detector.hyperparameter_space and "held_out_outliers" in outputs.samples:
        return "both"
    return "training data" if detector.requires_fit else ""


def reads_training_data(outputs: RunOutputs, name: str, tuned: bool) -> bool:
    """:return: whether :func:`scorer` reads outputs for the training data"""
    if name == BINARY or outputs.method.averages:
        return False
    try:
        detector = registry.create_detector(name, outputs.predictor.classifier)
    except Exception:  # anybody's detector; the reason is told when it is evaluated
        return False
    return _needs(detector, outputs, tuned) in ("training data", "both")


def _of_averages(outputs: RunOutputs, name: str) -> Scorer:
    if name not in _OF_AVERAGES:
        raise NotApplicable(
            f"{outputs.method.name} averages predictions, which have no {name} score; "
            f"those with one are {', '.join(_OF_AVERAGES)}."
        )
    if name == "dpn-mi":
        return lambda set_name: _array(outputs, set_name, "mutual_information")
    detector = registry.create_detector(name)
    return lambda set_name: score_chunks(
        detector.predict_logits, outputs.arrays(set_name)["logits"]
    )


def _told_apart(outputs: RunOutputs, set_name: str) -> Tensor:
    logits = _array(outputs, set_name, "ood_logits")
    return logits[:, 1] - logits[:, 0]


def _array(outputs: RunOutputs, set_name: str, name: str) -> Tensor:
    return torch.from_numpy(outputs.arrays(set_name)[name].copy())
