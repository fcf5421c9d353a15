"""Dropout at test time."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn
from torch.nn.modules.dropout import _DropoutNd

from dpn_plugin.errors import UserError


@contextmanager
def mc_dropout(model: nn.Module) -> Iterator[None]:
    """
    Activate dropout, and nothing else, within a ``with`` block.

    Every pass draws a new mask; batch norm and stochastic depth stay in evaluation mode. Afterwards
    the mode of every module is restored.

    :param model: a :class:`Backbone`, a timm model or any other
    :raises UserError: if the model has no dropout
    """
    with_dropout = [module for module in model.modules() if _has_dropout(module)]
    if not with_dropout:
        raise UserError(
            "Monte Carlo dropout needs a model with dropout and this one has none:"
            " build it with drop_rate, e.g. drop_rate=0.5 (dpn train: --set drop_rate=0.5)."
        )
    before = {module: module.training for module in model.modules()}
    try:
        model.eval()
        for module in with_dropout:
            module.training = True  # not train(), which would also switch the modules inside
        yield
    finally:
        for module, training in before.items():
            module.training = training


def _has_dropout(module: nn.Module) -> bool:
    if isinstance(module, _DropoutNd):
        return module.p > 0
    # timm's ResNets and others call functional.dropout with their own drop_rate and training flag
    rate = getattr(module, "drop_rate", 0.0)
    return isinstance(rate, float | int) and rate > 0
