"""Every rule fails for an object that breaks it, and the message says how to fix it."""

from typing import Any

import pytest
import torch
from pytorch_ood.api import DetectorInfo, LogitsDetector, LossInfo, Representation, Task
from torch import nn

from dpn_plugin.data import Samples, SourceSpec
from dpn_plugin.testing import CheckFailed, check_detector, check_loss, parametrize_with_checks
from dpn_plugin.testing.checks import results
from dpn_plugin.testing.datasets import DatasetCase, dataset_checks


class Valid(LogitsDetector):
    info = DetectorInfo(tasks={Task.CLASSIFICATION})

    def __init__(self, model: Any = None) -> None:
        super().__init__()
        self.model = model

    def predict_logits(self, logits: torch.Tensor) -> torch.Tensor:
        return -logits.amax(dim=1)


class NotReduced(Valid):
    def predict_logits(self, logits):
        return -logits


class Infinite(Valid):
    def predict_logits(self, logits):
        return logits.amax(dim=1) / 0


class DependsOnTheBatch(Valid):
    def predict_logits(self, logits):
        return -logits.amax(dim=1) + logits.amax()


class CountsItsCalls(Valid):
    calls = 0

    def predict_logits(self, logits):
        CountsItsCalls.calls += 1
        return -logits.amax(dim=1) + CountsItsCalls.calls


class InvertedSign(Valid):
    def predict_logits(self, logits):
        return logits.amax(dim=1)


class LeavesTrainingMode(Valid):
    def predict(self, x):
        self.model.train()
        found = self.predict_logits(self.model(x))
        return found.detach()


class ScoresInputsDifferently(Valid):
    def predict(self, x):
        with torch.no_grad():
            return 2 * self.predict_logits(self.model(x))


class ScoresBeforeFitting(Valid):
    requires_fit = True

    def fit(self, data_loader):
        return self


class IgnoresHyperparameters(Valid):
    hyperparameter_space = {"t": [1, 2]}  # noqa: RUF012
    t = 3

    def set_hyperparameters(self, **options):
        return self


class TakesAnyOption(Valid):
    def __init__(self, model=None, **options):
        super().__init__(model)


class ClaimsSegmentation(Valid):
    info = DetectorInfo(tasks={Task.SEGMENTATION})

    def predict_logits(self, logits):
        return -logits.flatten(1).amax(dim=1)


@pytest.mark.parametrize(
    ("kind", "rule", "fix"),
    [
        (NotReduced, "gives one finite score per sample", "reduce over classes"),
        (Infinite, "gives one finite score per sample", "logarithms"),
        (DependsOnTheBatch, "gives the same scores for any batching", "in fit, never of the batch"),
        (CountsItsCalls, "gives the same scores again", "keep no state"),
        (InvertedSign, "gives noise larger scores than data", "minus the score"),
        (LeavesTrainingMode, "leaves inputs and model alone", "Copy weights|Restore it"),
        (ScoresInputsDifferently, "scores stored logits like inputs", "Leave predict to"),
        (ScoresBeforeFitting, "refuses to score before fitting", "RequiresFittingException"),
        (IgnoresHyperparameters, "can set its hyperparameters", "set_hyperparameters together"),
        (TakesAnyOption, "refuses unknown options", "instead of"),
        (ClaimsSegmentation, "scores every pixel", "SEGMENTATION out of info"),
        (NotReduced, "carries its own info", "Give the class itself"),
        (lambda model: "text", "is made from a backbone", "Derive from"),
    ],
)
def test_the_message_for_a_broken_detector_says_how_to_fix_it(
    kind: Any, rule: str, fix: str
) -> None:
    with pytest.raises(CheckFailed, match=f"{rule}: .*({fix})"):
        check_detector(kind)


def test_a_valid_detector_passes_every_check_that_applies() -> None:
    found = check_detector(Valid)
    assert {each.outcome for each in found} == {"passed"}
    assert "scores every pixel" not in [each.name for each in found]


class Entropy(nn.Module):
    info = LossInfo(tasks={Task.CLASSIFICATION}, inputs={Representation.LOGITS}, supervised=False)

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = reduction

    def terms(self, logits, target):
        log_p = torch.log_softmax(logits, dim=1)
        right = log_p.gather(1, target.clamp(min=0)[:, None]).flatten()
        return torch.where(target >= 0, -right, 0)

    def forward(self, logits, target):
        terms = self.terms(logits, target)
        if self.reduction == "mean":
            return terms.sum() / max(1, int((target >= 0).sum()))
        return terms if self.reduction == "none" else terms.sum()


class EmptyMean(Entropy):
    def forward(self, logits, target):
        return self.terms(logits, target)[target >= 0].mean()


class Overflowing(Entropy):
    def forward(self, logits, target):
        alpha = logits.exp()
        return super().forward((alpha / alpha.sum(dim=1, keepdim=True)).log(), target)


class Detached(Entropy):
    def forward(self, logits, target):
        return super().forward(logits, target) * logits.detach().pow(2).sum()


class OnlyMinusOne(Entropy):
    def forward(self, logits, target):
        return super().forward(logits, target) + (target == -1).sum() * logits.sum()


class DependsOnTheOrder(Entropy):
    def forward(self, logits, target):
        return super().forward(logits, target) + logits[0].sum()


class CastsToFloat32(Entropy):
    def forward(self, logits, target):
        return super().forward(logits.float(), target)


class InPlace(Entropy):
    def forward(self, logits, target):
        target.clamp_(min=0)
        return super().forward(logits, target)


class ClaimsToUseOutliers(Entropy):
    info = LossInfo(tasks={Task.CLASSIFICATION}, inputs={Representation.LOGITS}, supervised=True)


class IgnoresReduction(Entropy):
    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()


class AveragesPixels(Entropy):
    info = LossInfo(tasks={Task.SEGMENTATION}, inputs={Representation.LOGITS}, supervised=False)

    def forward(self, logits, target):
        if logits.ndim == 4:
            logits, target = logits.mean(dim=(2, 3)), target.amax(dim=(1, 2))
        return super().forward(logits, target)


class TakesFeatures(Entropy):
    info = LossInfo(tasks={Task.CLASSIFICATION}, inputs={Representation.FEATURES}, supervised=True)


class LossWithAnyOption(Entropy):
    def __init__(self, **options):
        super().__init__()


@pytest.mark.parametrize(
    ("kind", "rule", "fix"),
    [
        (EmptyMean, "gives one finite number for any batch", "empty group is zero"),
        (Overflowing, "has finite gradients", "log_softmax"),
        (Detached, "has the gradient of its value", "detach"),
        (OnlyMinusOne, "treats all negative targets alike", "target < 0"),
        (OnlyMinusOne, "ignores ood samples", "supervised=True"),
        (DependsOnTheOrder, "does not depend on the order of samples", "never by their position"),
        (CastsToFloat32, "keeps float64 and works in half precision", "new_tensor"),
        (InPlace, "leaves logits and targets alone", "in place"),
        (ClaimsToUseOutliers, "counts ood samples", "supervised=False"),
        (IgnoresReduction, "follows the option reduction", "order of the samples"),
        (AveragesPixels, "takes every pixel", "SEGMENTATION out of info"),
        (TakesFeatures, "works on logits alone", "function of logits"),
        (LossWithAnyOption, "refuses unknown options", "instead of"),
        (dict, "is a module with info", "nn.Module"),
    ],
)
def test_the_message_for_a_broken_loss_says_how_to_fix_it(kind: Any, rule: str, fix: str) -> None:
    with pytest.raises(CheckFailed, match=f"{rule}: .*{fix}"):
        check_loss(kind)


def test_a_valid_loss_passes() -> None:
    assert {each.outcome for each in check_loss(Entropy)} == {"passed"}


def _samples(labels: list[int], classes: tuple[str, ...] = ()) -> Samples:
    inputs = torch.rand(len(labels), 2)
    return Samples(inputs, torch.tensor(labels, dtype=torch.int64), "points", classes)


@pytest.mark.parametrize(
    ("loader", "rule", "fix"),
    [
        (lambda argument, *, split, root: [1], "gives samples", "Return dpn_plugin.data.Samples"),
        (lambda argument, *, split, root: _samples([0]), "gives the same samples again", "Seed"),
        (
            lambda argument, *, split, root: _samples([0, 1], ("one",)),
            "has a name for every label",
            "as many names",
        ),
        (lambda argument, *, split, root: _samples([0]), "refuses unknown arguments", "UserError"),
        (
            lambda argument, *, split, root: {"points": _samples([0])}[argument],
            "refuses unknown arguments",
            "UserError",
        ),
    ],
)
def test_the_message_for_a_broken_source_says_how_to_fix_it(
    loader: Any, rule: str, fix: str, tmp_path: Any
) -> None:
    case = DatasetCase(SourceSpec.parse("test:points"), loader, tmp_path)
    messages = {each.name: each.message for each in results(dataset_checks(case))}
    assert fix in messages[rule]


def test_an_unknown_kind_gets_a_suggestion() -> None:
    with pytest.raises(ValueError, match="'detectors'"):
        parametrize_with_checks(detector=["dpn-mi"])
