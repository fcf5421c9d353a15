"""Rules about how a detector behaves: what it declares, refuses and leaves alone."""

import torch
from pytorch_ood.api import Detector, DetectorInfo, RequiresFittingException
from torch import Tensor, nn

from dpn_plugin.testing.detector_case import DetectorCase
from dpn_plugin.testing.rules import CheckFailed, require

__all__ = [
    "CONTRACT_RULES",
    "can_set_its_hyperparameters",
    "is_made_from_a_backbone",
    "refuses_to_score_before_fitting",
]


def is_made_from_a_backbone(case: DetectorCase) -> None:
    """A timm model is all that it needs."""
    made = case.made(case.toy.backbone())
    require(
        isinstance(made, Detector),
        f"the factory gave a {type(made).__name__}",
        "Derive from pytorch_ood.api.LogitsDetector, FeaturesDetector or another Detector",
    )


def carries_its_own_info(case: DetectorCase) -> None:
    """info says which tasks it serves and which paper it is from."""
    kind = type(case.made(case.toy.backbone()))
    info = vars(kind).get("info")
    require(
        isinstance(info, DetectorInfo) and bool(info.tasks),
        f"{kind.__name__}.info is {info!r}",
        "Give the class itself `info = DetectorInfo(tasks={Task.CLASSIFICATION}, paper=...)`",
    )


def leaves_inputs_and_model_alone(case: DetectorCase) -> None:
    """Inputs, weights, gradients and training mode are the same after fit and predict."""
    backbone, x = case.toy.backbone(), case.toy.inside.clone()
    before, modes = _state(backbone), _modes(backbone)
    detector = case.made(backbone)
    if detector.requires_fit:
        detector.fit(case.toy.loader())
    detector.predict(x)
    changed = [name for name, each in _state(backbone).items() if not each.equal(before[name])]
    require(torch.equal(x, case.toy.inside), "the inputs were changed", "Work on x.clone()")
    require(not changed, f"{' and '.join(changed[:3])} changed", "Copy weights before shaping them")
    require(modes == _modes(backbone), "the training mode changed", "Restore it before returning")
    gradients = [name for name, each in backbone.named_parameters() if each.grad is not None]
    require(
        not gradients,
        f"gradients were left in {' and '.join(gradients[:3])}",
        "Use torch.autograd.grad, which leaves none, instead of backward()",
    )


def refuses_unknown_options(case: DetectorCase) -> None:
    """A misspelt argument raises TypeError."""
    try:
        case.factory(no_such_option=1)
    except TypeError:
        return
    raise CheckFailed("no_such_option=1 was accepted. Name the arguments instead of **options.")


def refuses_to_score_before_fitting(case: DetectorCase) -> None:
    """predict raises RequiresFittingException until fit was called."""
    mend = "Raise pytorch_ood.api.RequiresFittingException in predict where fit was not called"
    try:
        case.scores(case.made(case.toy.backbone()), case.toy.inside)
    except RequiresFittingException:
        return
    except Exception as error:
        raise CheckFailed(f"predict before fit raised {type(error).__name__}. {mend}.") from error
    raise CheckFailed(f"predict before fit gave scores. {mend}.")


def can_set_its_hyperparameters(case: DetectorCase) -> None:
    """Every value of hyperparameter_space can be set, and is read back."""
    detector = case.new()
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
CONTRACT_RULES = (
    is_made_from_a_backbone,
    carries_its_own_info,
    leaves_inputs_and_model_alone,
    refuses_unknown_options,
)
