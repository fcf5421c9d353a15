"""Dropout at test time."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn
from torch.nn.modules.dropout import _DropoutNd

from dpn_plugin.errors import UserError

__all__ = ["mc_dropout"]


@contextmanager
def mc_dropout(model: nn.Module) -> Iterator[None]:
    """
    Within the block only dropout is in training mode: every pass draws anew, batch norm stays
    frozen, stochastic depth stays off. Afterwards every module is as it was.

    :param model: a :class:`~dpn_plugin.backbones.Backbone`, a timm model or any other
    :raises UserError: if the model has no dropout
    """
    dropping = [module for module in model.modules() if _drops(module)]
    if not dropping:
        raise UserError(
            "Monte Carlo dropout needs a model with dropout and this one has none:"
            " build it with drop_rate, e.g. drop_rate=0.5."
        )
    before = {module: module.training for module in model.modules()}
    try:
        model.eval()
        for module in dropping:
            module.training = True  # not train(): the modules inside stay frozen
        yield
    finally:
        for module, training in before.items():
            module.training = training


def _drops(module: nn.Module) -> bool:
    if isinstance(module, _DropoutNd):
        return module.p > 0
    # timm's ResNets and others call functional.dropout with their own drop_rate and training flag
    rate = getattr(module, "drop_rate", 0.0)
    return isinstance(rate, float | int) and rate > 0
