"""Signs that a training failed although it ended without an error."""

import math
from collections.abc import Sequence

from torch import Tensor

from dpn_plugin import functional
from dpn_plugin.runs.held_out import read_held_out
from dpn_plugin.runs.record import EpochRecord
from dpn_plugin.runs.trained_run import TrainedRun

#: the share by which a loss falls at least, if anything is learned
LEAST_FALL = 0.01
#: accuracies within this many standard errors of guessing count as guessing
STANDARD_ERRORS = 2
#: standard deviations over samples below which outputs do not depend on the input
MAX_P_SPREAD, LOGIT_SPREAD = 1e-4, 1e-2


def diagnose(run: TrainedRun) -> list[str]:
    """
    Return a sentence for every sign that a run learned nothing; empty if there is none.

    :param run: a finished run
    :raises UserError: if its held-out logits are missing or damaged
    """
    histories = {name: network.history for name, network in run.record.networks.items()}
    found = [problem for name, each in histories.items() for problem in loss_problems(each, name)]
    held_out = read_held_out(run)
    return found + output_problems(held_out["logits"], held_out["labels"])


def loss_problems(history: Sequence[EpochRecord], name: str) -> list[str]:
    """
    Return a sentence if the loss did not fall by 1 %.

    The held-out loss decides, because the training loss of few steps varies by chance, and that of
    EDL grows with the weight of one of its terms. Where the held-out loss rises and the training
    loss falls, a network learns its training data by heart: that is no failure of the training.

    :param history: the epochs of a network; of a single one nothing can be said
    :param name: the name of the network
    """
    if len(history) < 2:
        return []
    first, last = history[0], history[-1]
    held_out = [epoch.held_out_loss for epoch in history]
    learned_by_heart = _fell(max(held_out), held_out[0]) and _fell(first.loss, last.loss)
    if _fell(held_out[0], min(held_out)) or learned_by_heart:
        return []
    return [
        f"The loss of {name} did not fall: on held-out data it was {held_out[0]:.4g} after epoch "
        f"{first.epoch} and {held_out[-1]:.4g} after epoch {last.epoch}. Another learning rate "
        "(--lr) may help."
    ]


def output_problems(logits: Tensor, labels: Tensor) -> list[str]:
    """
    Return sentences if held-out samples are classified as by guessing, or get the same scores.

    :param logits: of held-out samples, shape :math:`N \\times K`
    :param labels: their labels, shape :math:`N`; below 0 for outliers
    """
    return [*_accuracy_problems(logits[labels >= 0], labels[labels >= 0]), *_same_scores(logits)]


def _fell(first: float, last: float) -> bool:
    return last < first - LEAST_FALL * abs(first)  # the losses of the paper may be negative


def _accuracy_problems(logits: Tensor, labels: Tensor) -> list[str]:
    if not len(labels):
        return []
    accuracy = float((logits.argmax(dim=1) == labels).double().mean())
    # always naming the most frequent class is right this often
    chance = max(1 / logits.shape[1], float(labels.bincount().max()) / len(labels))
    error = math.sqrt(chance * (1 - chance) / len(labels))
    if accuracy > chance + STANDARD_ERRORS * error:
        return []
    return [
        f"The accuracy on held-out data is that of guessing: {accuracy:.4f} of {len(labels)} "
        f"samples, and {chance:.4f} by always naming the most frequent of {logits.shape[1]} "
        "classes. Scores of this run say nothing about OOD detection; train longer or with more "
        "data."
    ]


def _same_scores(logits: Tensor) -> list[str]:
    if len(logits) < 2:
        return []
    spread = float(functional.max_p(logits.double()).std())
    # Max.P alone is not enough: it is 1 for all samples of an easy data set
    if spread >= MAX_P_SPREAD or float(logits.double().std(dim=0).max()) >= LOGIT_SPREAD:
        return []
    return [
        f"The scores hardly vary: over {len(logits)} held-out samples, Max.P has a standard "
        f"deviation of {spread:.1e}. The outputs of the network do not depend on its input."
    ]
