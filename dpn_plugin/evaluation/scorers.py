"""From the name of a detector to the scores of every test set."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dpn_plugin.detectors import (
    GaussianKL,
    NotApplicable,
    checked_scores,
    create_detector,
    fit,
    parse_combination,
    scores,
    tune,
)
from dpn_plugin.evaluation.prepared import PreparedScores
from dpn_plugin.metrics import FisherCombination
from dpn_plugin.outputs import CALIBRATION, RunOutputs, score_chunks
from dpn_plugin.runs import Method

#: the score of a network that separates in-domain from OOD samples, in place of a detector
BINARY = "binary"

#: the score that a loss has trained beside the classifier, e.g. a confidence
OWN_SCORE = "own-score"

#: what averaged predictions can be scored by, as in the paper
FOR_AVERAGES = ("dpn-maxp", "dpn-entropy", "dpn-mi")


Arrays = Mapping[str, np.ndarray]


def scorer_names(method: Method, detectors: Sequence[str]) -> list[str]:
    """Return what a run is scored with: the detectors, its own score, or its OOD classifier."""
    if method.has_ood_classifier:
        return [BINARY]
    return [*detectors, OWN_SCORE] if method.has_own_score else list(detectors)


def measure_scores(outputs: Arrays, name: str) -> Tensor:
    """
    Return the scores that stored outputs give without a network.

    :param outputs: of N samples
    :param name: ``"binary"``, ``"own-score"``, or a detector of logits that needs no fitting;
        ``"dpn-mi"`` of averaged predictions is the mutual information of prediction and member
    :return: shape N; a larger score is more OOD
    """
    if name == BINARY:
        logits = torch.from_numpy(outputs["ood_logits"].copy())
        return logits[:, 1] - logits[:, 0]
    if name == OWN_SCORE:
        return torch.from_numpy(outputs["own_score"].copy())
    if name == "dpn-mi" and "mutual_information" in outputs:
        return torch.from_numpy(outputs["mutual_information"].copy())
    return score_chunks(create_detector(name).predict_logits, outputs["logits"])


class Scorer:
    """
    Scores the test sets of one run.

    :cvar required_sets: the sets, besides the test sets, whose outputs :meth:`fit` reads
    """

    required_sets: Sequence[str] = ()

    def __init__(self, outputs: RunOutputs) -> None:
        self.outputs = outputs

    def fit(self) -> dict[str, Any]:
        """Fit to outputs that are no test data; return the hyper-parameters that were chosen."""
        return {}

    def score(self, set_name: str) -> Tensor:
        """Return the scores of a test set; a larger one is more OOD."""
        raise NotImplementedError

    def score_calibration(self) -> Tensor:
        """Return the scores of calibration samples that the fitted scorer does not depend on."""
        return self.score(CALIBRATION)


class DetectorScorer(Scorer):
    """
    Scores with a detector that is wired to the run's classifier.

    :param outputs: of the run that is scored
    :param name: of the detector
    :param tuned: search the detector's hyper-parameters on held-out data, if there are outliers
    """

    def __init__(self, outputs: RunOutputs, name: str, tuned: bool) -> None:
        super().__init__(outputs)
        self.detector = create_detector(name, outputs.load_predictor().classifier)
        self.detector.to(outputs.processes.device)
        held_out = outputs.held_out_names
        self.tuned = tuned and self._is_tunable()
        self.prepared: PreparedScores | None = None
        if isinstance(self.detector, GaussianKL):
            # training samples are all classified correctly; it needs some that are not, and OOD
            self.required_sets = held_out
        elif self.tuned:
            self.required_sets = ["train", *held_out]
        elif self.detector.requires_fit:
            self.required_sets = ["train"]

    def fit(self) -> dict[str, Any]:
        """Fit to training data, or to held-out data; see :class:`Scorer`."""
        if self.prepared is not None and not self.prepared.is_to_be_tried_alone:
            return {}
        outputs = self.outputs
        held_out_batches = outputs.batches(*outputs.held_out_names)
        if isinstance(self.detector, GaussianKL):
            fit(self.detector, outputs.held_out(), held_out_batches)
        elif self.tuned:
            train = outputs.arrays("train"), outputs.batches("train")
            return tune(self.detector, *train, outputs.held_out(), held_out_batches)
        elif self.required_sets:
            fit(self.detector, outputs.arrays("train"), outputs.batches("train"))
        return {}

    def score(self, set_name: str) -> Tensor:
        """Return the scores of a test set."""
        if self.prepared is not None and not self.prepared.is_to_be_tried_alone:
            return checked_scores(self.detector, self.prepared.of(set_name))
        arrays, batches = self.outputs.arrays(set_name), self.outputs.batches(set_name)
        return scores(self.detector, arrays, batches)

    def _is_tunable(self) -> bool:
        return bool(
            self.detector.hyperparameter_space
            and not isinstance(self.detector, GaussianKL)
            and "held_out_outliers" in self.outputs.samples
        )


class FisherScorer(Scorer):
    """
    Scores with Fisher's statistic of several detectors' p-values.

    :param outputs: of the run that is scored
    :param members: names of the detectors
    :param tuned: search their hyper-parameters on held-out data, if there are outliers
    :raises NotApplicable: if there are no calibration samples, or a member is not applicable
    """

    def __init__(self, outputs: RunOutputs, members: Sequence[str], tuned: bool) -> None:
        super().__init__(outputs)
        if CALIBRATION not in outputs.samples:
            raise NotApplicable(
                "p-values need calibration samples, and this run has none: set calibration = 0.1 "
                "in [train], or give the suite a source [calibration]."
            )
        self.members = {name: create_scorer(outputs, name, tuned) for name in members}
        own = [name for scorer in self.members.values() for name in scorer.required_sets]
        self.required_sets = list(dict.fromkeys([*own, CALIBRATION]))

    def fit(self) -> dict[str, Any]:
        """Fit the members, then compute what their p-values are relative to."""
        chosen = {name: scorer.fit() for name, scorer in self.members.items()}
        self.combination = FisherCombination(self._member_scores(CALIBRATION))
        return {name: found for name, found in chosen.items() if found}

    def score(self, set_name: str) -> Tensor:
        """Return the scores of a test set."""
        return self.combination.scores(self._member_scores(set_name))

    def score_calibration(self) -> Tensor:
        """Return the scores of the half of the calibration samples that gave no p-values."""
        return self.combination.calibration

    def _member_scores(self, set_name: str) -> Tensor:
        return torch.stack([s.score(set_name).double() for s in self.members.values()], dim=1)


class AverageScorer(Scorer):
    """
    Scores averaged predictions, of an ensemble or of passes with dropout.

    :param outputs: of the run that is scored
    :param name: of the detector
    :raises NotApplicable: if averaged predictions have no such score
    """

    def __init__(self, outputs: RunOutputs, name: str) -> None:
        super().__init__(outputs)
        if name not in FOR_AVERAGES:
            raise NotApplicable(
                f"{outputs.run.method.name} averages predictions, and only "
                f"{', '.join(FOR_AVERAGES)} score those."
            )
        self.name = name

    def score(self, set_name: str) -> Tensor:
        """Return the scores of a test set."""
        return measure_scores(self.outputs.arrays(set_name), self.name)


class StoredScorer(Scorer):
    """
    Scores with what the run's networks compute: the log-odds of a second one, or an own score.

    :param outputs: of the run that is scored
    :param name: ``"binary"`` or ``"own-score"``
    """

    def __init__(self, outputs: RunOutputs, name: str) -> None:
        super().__init__(outputs)
        self.name = name

    def score(self, set_name: str) -> Tensor:
        """Return the scores of a test set."""
        return measure_scores(self.outputs.arrays(set_name), self.name)


def create_scorer(outputs: RunOutputs, name: str, tuned: bool) -> Scorer:
    """
    Create the scorer of this name for a run.

    :param outputs: of the run that is scored
    :param name: of a detector, of a combination of some, ``"binary"`` for the run's own OOD
        classifier, or ``"own-score"``
    :param tuned: search the detector's hyper-parameters on held-out data
    :raises UserError: if the run cannot be scored with it
    """
    combination = parse_combination(name)
    if combination is not None:
        return FisherScorer(outputs, combination.members, tuned)
    if name in (BINARY, OWN_SCORE):
        return StoredScorer(outputs, name)
    if outputs.run.method.averages:
        return AverageScorer(outputs, name)
    return DetectorScorer(outputs, name, tuned)
