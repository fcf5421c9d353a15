"""Which rules a loss is held against."""

from typing import Any

from pytorch_ood.api import LossInfo, Representation, Task

from dpn_plugin.testing import loss_rules
from dpn_plugin.testing.loss_case import LossCase
from dpn_plugin.testing.rules import Check, Rule, bound

__all__ = ["loss_checks"]


def loss_checks(name: str, factory: Any) -> list[Check]:
    """
    :param name: what results call it
    :param factory: the class of a loss, or a function that makes one
    :return: the checks, chosen by ``info``
    """
    case = LossCase(factory)
    return bound(f"loss {name}", _rules(case), case)


def _rules(case: LossCase) -> list[Rule]:
    try:
        info = case.info
    except Exception:  # the first rule tells what is wrong
        return [loss_rules.is_a_module_with_info]
    if not isinstance(info, LossInfo) or info.inputs != {Representation.LOGITS}:
        return list(loss_rules.RULES)
    return [*loss_rules.RULES, *loss_rules.LOGITS_RULES, *_declared(info)]


def _declared(info: LossInfo) -> list[Rule]:
    counted = loss_rules.counts_ood_samples if info.supervised else loss_rules.ignores_ood_samples
    rules: list[Rule] = [loss_rules.reduces_as_told, counted]
    if Task.SEGMENTATION in info.tasks:
        rules.append(loss_rules.takes_every_pixel)
    return rules
