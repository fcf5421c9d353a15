"""The rules of a loss, and which of them apply to one."""

from typing import Any

import torch
from pytorch_ood.api import LossInfo, Representation, Task
from torch import nn
from torch.autograd.gradcheck import GradcheckError

from dpn_plugin.losses import FeatureLoss
from dpn_plugin.plugins import takes
from dpn_plugin.testing.checks import (
    Check,
    CheckFailed,
    Rule,
    checks_of,
    require,
    require_refusal_of_unknown_options,
)
from dpn_plugin.testing.loss_case import BATCHES, LossCase

STABLE = "Compute with log_softmax, logsumexp or softplus; the mean of an empty group is zero"


def loss_checks(name: str, factory: Any) -> list[Check]:
    """
    Return the checks of a loss, chosen by its ``info``.

    :param name: its name in the results
    :param factory: the class of a loss, or a function that makes one
    """
    case = LossCase(factory)
    return checks_of(f"loss {name}", _rules(case), case)


def _rules(case: LossCase) -> list[Rule]:
    try:
        info = case.info()
    except Exception:  # reported by the first rule
        return [is_a_module_with_info]
    if isinstance(info, LossInfo) and isinstance(case.create(), FeatureLoss):
        return [*FEATURE_RULES, *_declared(info, pixels=False)]
    if not isinstance(info, LossInfo) or info.inputs != {Representation.LOGITS}:
        return list(RULES)
    return [*RULES, *LOGITS_RULES, *_declared(info)]


def _declared(info: LossInfo, *, pixels: bool = True) -> list[Rule]:
    counted = counts_ood_samples if info.supervised else ignores_ood_samples
    rules: list[Rule] = [follows_the_option_reduction, counted]
    if pixels and Task.SEGMENTATION in info.tasks:
        rules.append(takes_every_pixel)
    return rules


def is_a_module_with_info(case: LossCase) -> None:
    """The factory returns an nn.Module with a LossInfo."""
    loss = case.create()
    require(
        isinstance(loss, nn.Module),
        f"the factory returned a {type(loss).__name__}",
        "Derive from torch.nn.Module, so that the loss moves to the device of the model",
    )
    info = getattr(loss, "info", None)
    require(
        isinstance(info, LossInfo),
        f"{type(loss).__name__}.info is {info!r}",
        "Give the class `info = LossInfo(tasks=..., inputs=..., supervised=...)`",
    )


def works_on_logits_alone(case: LossCase) -> None:
    """It is called as loss(logits, target)."""
    inputs: frozenset[Representation] = getattr(case.info(), "inputs", frozenset())
    require(
        inputs == {Representation.LOGITS},
        f"info.inputs is {sorted(each.value for each in inputs)}",
        "Training calls loss(logits, target); write the loss as a function of logits",
    )


def refuses_unknown_options(case: LossCase) -> None:
    """A misspelt argument raises TypeError."""
    require_refusal_of_unknown_options(case.create)


def gives_one_finite_number_for_any_batch(case: LossCase) -> None:
    """Batches of in-domain samples, of OOD samples and of both give a finite scalar."""
    for kind, target in BATCHES.items():
        found = case.value(case.create(), case.logits(target), target)
        shape = tuple(found.shape)
        require(shape == (), f"a batch ({kind}) returned shape {shape}", "Reduce to one number")
        require(bool(torch.isfinite(found)), f"a batch ({kind}) returned {float(found)}", STABLE)


def has_finite_gradients(case: LossCase) -> None:
    """Gradients are finite for any batch, also where logits are large."""
    for kind, target in BATCHES.items():
        for scale in (2, 100):
            gradient = case.gradient(target, scale)
            require(
                bool(torch.isfinite(gradient).all()),
                f"a batch ({kind}) with logits around {scale} has gradients that are not finite",
                STABLE,
            )


def has_the_gradient_of_its_value(case: LossCase) -> None:
    """Gradients agree with finite differences in float64."""
    target = BATCHES["mixed"]
    logits = case.logits(target, torch.float64)
    loss = case.create()
    try:
        torch.autograd.gradcheck(lambda z: case.value(loss, z, target), (logits,), atol=1e-4)
    except GradcheckError as error:
        raise CheckFailed(
            "the gradient differs from finite differences. Look for detach(), .item() or"
            " torch.no_grad() on the way from the logits."
        ) from error


def treats_all_negative_targets_alike(case: LossCase) -> None:
    """Any target below zero means OOD, not only -1."""
    target = BATCHES["mixed"]
    other = [label if label >= 0 else -7 for label in target]
    found = [case.value(case.create(), case.logits(target), each) for each in (target, other)]
    require(
        torch.equal(*found),
        f"targets -1 and -7 give {float(found[0]):.4g} and {float(found[1]):.4g}",
        "Test `target < 0`, not `target == -1`",
    )


def does_not_depend_on_the_order_of_samples(case: LossCase) -> None:
    """A batch and the same batch in reverse order give the same value."""
    target = torch.tensor(BATCHES["mixed"])
    logits = case.logits(target.tolist())
    found = case.value(case.create(), logits, target)
    reversed_ = case.value(case.create(), logits.flip(0), target.flip(0))
    require(
        torch.allclose(found, reversed_, rtol=1e-4),
        f"in reverse order the batch gives {float(reversed_):.6g} instead of {float(found):.6g}",
        "Select samples by their target, never by their position in the batch",
    )


def keeps_float64_and_works_in_half_precision(case: LossCase) -> None:
    """float64 stays float64; bfloat16 logits give a finite value."""
    target = BATCHES["mixed"]
    double = case.value(case.create(), case.logits(target, torch.float64), target).dtype
    require(
        double == torch.float64, f"float64 logits gave {double}", "Make constants with new_tensor"
    )
    half = case.value(case.create(), case.logits(target, torch.bfloat16, 20), target)
    require(bool(torch.isfinite(half)), "bfloat16 gave no finite value", STABLE)


def leaves_logits_and_targets_alone(case: LossCase) -> None:
    """Neither argument is changed in place."""
    target = torch.tensor(BATCHES["mixed"])
    logits = case.logits(target.tolist()).detach()
    before = logits.clone(), target.clone()
    case.value(case.create(), logits, target)
    fix = "Replace operations in place (x[...] = , x += , x.clamp_) by new tensors"
    require(torch.equal(logits, before[0]), "the logits were changed", fix)
    require(torch.equal(target, before[1]), "the target was changed", fix)


def counts_ood_samples(case: LossCase) -> None:
    """With info.supervised, OOD samples have an influence on the loss."""
    target = torch.tensor(BATCHES["mixed"])
    gradient = case.gradient(target.tolist())[target < 0].abs().amax(dim=1)
    require(
        bool((gradient > 0).all()),
        "OOD samples (target < 0) have no gradient",
        "Add a term for them, or declare supervised=False",
    )


def ignores_ood_samples(case: LossCase) -> None:
    """Without info.supervised, OOD samples have no influence on the loss."""
    target = torch.tensor(BATCHES["mixed"])
    gradient = case.gradient(target.tolist())
    require(
        not gradient[target < 0].any(),
        "OOD samples (target < 0) have a gradient",
        "Leave them out, or declare supervised=True",
    )


def follows_the_option_reduction(case: LossCase) -> None:
    """reduction="none" gives one value per sample, and "sum" their sum."""
    require(
        takes(case.factory, "reduction"),
        "it has no option `reduction`, which training sets",
        'Take reduction="mean", and "sum" and "none" too',
    )
    target = BATCHES["mixed"]
    logits = case.logits(target)
    each = case.value(case.create(reduction="none"), logits, target)
    total = case.value(case.create(reduction="sum"), logits, target)
    shape = tuple(each.shape)
    require(
        shape == (len(target),),
        f'reduction="none" gave shape {shape} for {len(target)} samples',
        "Keep the order of the samples, and give zero to those that are left out",
    )
    require(
        torch.allclose(each.sum(), total, rtol=1e-4),
        f'reduction="sum" gave {float(total):.4g}, the values sum to {float(each.sum()):.4g}',
        "Reduce the same values in both cases",
    )


def takes_every_pixel(case: LossCase) -> None:
    """With SEGMENTATION in info.tasks, it takes logits B x K x H x W and targets B x H x W."""
    target = torch.tensor([[[0, 1], [-1, 2]], [[3, 3], [0, -1]]])
    logits = case.logits(target.flatten().tolist())
    grid = logits.reshape(2, 2, 2, -1).permute(0, 3, 1, 2)
    flat = case.value(case.create(), logits, target.flatten())
    found = case.value(case.create(), grid, target)
    require(
        torch.allclose(found, flat, rtol=1e-4),
        f"pixels give {float(found):.6g}, the same samples in a row {float(flat):.6g}",
        "Work on dim=1 and keep the others, or take Task.SEGMENTATION out of info.tasks",
    )


#: for every loss
RULES = (is_a_module_with_info, works_on_logits_alone, refuses_unknown_options)

#: for a loss that takes logits
LOGITS_RULES = (
    gives_one_finite_number_for_any_batch,
    has_finite_gradients,
    has_the_gradient_of_its_value,
    treats_all_negative_targets_alike,
    does_not_depend_on_the_order_of_samples,
    keeps_float64_and_works_in_half_precision,
    leaves_logits_and_targets_alone,
)

#: for a :class:`~dpn_plugin.losses.FeatureLoss`, whose features follow from the logits here
FEATURE_RULES = (
    is_a_module_with_info,
    refuses_unknown_options,
    gives_one_finite_number_for_any_batch,
    has_finite_gradients,
    has_the_gradient_of_its_value,
    treats_all_negative_targets_alike,
    does_not_depend_on_the_order_of_samples,
    leaves_logits_and_targets_alone,
)
