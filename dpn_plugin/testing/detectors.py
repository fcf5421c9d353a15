"""Which rules a detector is held against."""

from typing import Any

from pytorch_ood.api import Detector, LogitsDetector, Task

from dpn_plugin.detectors import reads, wired
from dpn_plugin.testing import detector_contract as contract
from dpn_plugin.testing.detector_case import DetectorCase
from dpn_plugin.testing.detector_scores import SCORE_RULES, STORED_RULES, scores_every_pixel
from dpn_plugin.testing.rules import Check, Rule, bound
from dpn_plugin.testing.toy import toy

__all__ = ["detector_checks"]


def detector_checks(name: str, factory: Any) -> list[Check]:
    """
    :param name: what results call it
    :param factory: the class of a detector, or a function that makes one
    :return: the checks, chosen by base class, ``info.tasks``, ``requires_fit`` and
        ``hyperparameter_space``
    """
    return bound(f"detector {name}", _rules(factory), DetectorCase(factory))


def _rules(factory: Any) -> list[Rule]:
    try:
        detector = wired(factory, toy().backbone())
    except Exception:  # the first rule tells what is wrong
        detector = None
    if not isinstance(detector, Detector):
        return [contract.is_made_from_a_backbone]
    return [*contract.CONTRACT_RULES, *SCORE_RULES, *_declared(detector)]


def _declared(detector: Detector) -> list[Rule]:
    rules: list[Rule] = []
    kind = reads(detector)
    if kind == "logits" or (kind == "features" and hasattr(detector, "encoder")):
        rules.append(STORED_RULES[kind])
    if detector.requires_fit:
        rules.append(contract.refuses_to_score_before_fitting)
    if detector.hyperparameter_space:
        rules.append(contract.can_set_its_hyperparameters)
    if isinstance(detector, LogitsDetector) and Task.SEGMENTATION in _tasks(detector):
        rules.append(scores_every_pixel)
    return rules


def _tasks(detector: Detector) -> frozenset[Task]:
    return getattr(detector.info, "tasks", frozenset())
