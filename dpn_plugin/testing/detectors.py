"""The rules of a detector, and which of them apply to one."""

from typing import Any

import torch
from pytorch_ood.api import Detector, DetectorInfo, LogitsDetector, RequiresFittingException, Task
from torch import Tensor, nn

from dpn_plugin.detectors import reads, wired
from dpn_plugin.testing.checks import (
    Check,
    CheckFailed,
    Rule,
    checks_of,
    require,
    require_refusal_of_unknown_options,
)
from dpn_plugin.testing.detector_case import DetectorCase, toy
from dpn_plugin.testing.detector_scores import SCORE_RULES, STORED_RULES, scores_every_pixel


def detector_checks(name: str, factory: Any) -> list[Check]:
    """
    Return the checks of a detector, chosen by its base class, ``info.tasks``, ``requires_fit`` and
    ``hyperparameter_space``.

    :param name: its name in the results
    :param factory: the class of a detector, or a function that makes one
    """
    return checks_of(f"detector {name}", _rules(factory), DetectorCase(factory))


def _rules(factory: Any) -> list[Rule]:
    try:
        detector = wired(factory, toy().backbone())
    except Exception:  # reported by the first rule
        detector = None
    if not isinstance(detector, Detector):
        return [is_made_from_a_backbone]
    return [*BEHAVIOUR_RULES, *SCORE_RULES, *_declared(detector)]


def _declared(detector: Detector) -> list[Rule]:
    rules: list[Rule] = []
    kind = reads(detector)
    if kind == "logits" or (kind == "features" and hasattr(detector, "encoder")):
        rules.append(STORED_RULES[kind])
    if detector.requires_fit:
        rules.append(refuses_to_score_before_fitting)
    if detector.hyperparameter_space:
        rules.append(can_set_its_hyperparameters)
    if isinstance(detector, LogitsDetector) and Task.SEGMENTATION in _tasks(detector):
        rules.append(scores_every_pixel)
    return rules


def _tasks(detector: Detector) -> frozenset[Task]:
    return getattr(detector.info, "tasks", frozenset())


def is_made_from_a_backbone(case: DetectorCase) -> None:
    """A detector can be made from a timm model alone."""
    created = case.create(case.toy.backbone())
    require(
        isinstance(created, Detector),
        f"the factory returned a {type(created).__name__}",
        "Derive from pytorch_ood.api.LogitsDetector, FeaturesDetector or another Detector",
    )


def carries_its_own_info(case: DetectorCase) -> None:
    """The class has an info with its tasks and its paper."""
    kind = type(case.create(case.toy.backbone()))
    info = vars(kind).get("info")
    require(
        isinstance(info, DetectorInfo) and bool(info.tasks),
        f"{kind.__name__}.info is {info!r}",
        "Give the class itself `info = DetectorInfo(tasks={Task.CLASSIFICATION}, paper=...)`",
    )


def leaves_inputs_and_model_alone(case: DetectorCase) -> None:
    """Fit and predict do not change inputs, weights, gradients or training mode."""
    backbone, x = case.toy.backbone(), case.toy.inside.clone()
    before, modes = _state(backbone), _modes(backbone)
    detector = case.create(backbone)
    if detector.requires_fit:
        detector.fit(case.toy.loader())
    detector.predict(x)
    changed = [name for name, each in _state(backbone).items() if not each.equal(before[name])]
    require(torch.equal(x, case.toy.inside), "the inputs were changed", "Work on x.clone()")
    require(
        not changed, f"{' and '.join(changed[:3])} changed", "Copy weights before changing them"
    )
    require(modes == _modes(backbone), "the training mode changed", "Restore it before returning")
    gradients = [name for name, each in backbone.named_parameters() if each.grad is not None]
    require(
        not gradients,
        f"gradients were left in {' and '.join(gradients[:3])}",
        "Use torch.autograd.grad, which leaves none, instead of backward()",
    )


def refuses_unknown_options(case: DetectorCase) -> None:
    """A misspelt argument raises TypeError."""
    require_refusal_of_unknown_options(case.factory)


def refuses_to_score_before_fitting(case: DetectorCase) -> None:
    """predict raises RequiresFittingException until fit was called."""
    fix = "Raise pytorch_ood.api.RequiresFittingException in predict where fit was not called"
    try:
        case.scores(case.create(case.toy.backbone()), case.toy.inside)
    except RequiresFittingException:
        return
    except Exception as error:
        raise CheckFailed(f"predict before fit raised {type(error).__name__}. {fix}.") from error
    raise CheckFailed(f"predict before fit returned scores. {fix}.")


def can_set_its_hyperparameters(case: DetectorCase) -> None:
    """Every value of hyperparameter_space can be set and read back."""
    detector = case.create_fitted()
    for name, values in detector.hyperparameter_space.items():
        for value in values:
            detector.set_hyperparameters(**{name: value})
            found = detector.get_hyperparameters()[name]
            require(
                found == value,
                f"after set_hyperparameters({name}={value!r}) it is {found!r}",
                f"Keep it as self.{name}, or override get_ and set_hyperparameters together",
            )


def _state(model: nn.Module) -> dict[str, Tensor]:
    return {name: each.detach().clone() for name, each in model.state_dict().items()}


def _modes(model: nn.Module) -> list[bool]:
    return [each.training for each in model.modules()]


#: for every detector
BEHAVIOUR_RULES = (
    is_made_from_a_backbone,
    carries_its_own_info,
    leaves_inputs_and_model_alone,
    refuses_unknown_options,
)
