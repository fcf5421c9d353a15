"""Run a model without leaving a trace on it."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain

import torch
from torch import nn

__all__ = ["undisturbed"]


@contextmanager
def undisturbed(models: Iterable[nn.Module], seed: int = 0) -> Iterator[None]:
    """
    Within the block the models are in evaluation mode and random numbers start at ``seed``.
    Afterwards modes, gradients and the caller's stream of random numbers are as they were.

    :param models: those that are going to run
    :param seed: where the random numbers of the block start
    """
    models = list(models)
    modes = [(each, each.training) for each in chain(*(model.modules() for model in models))]
    gradients = [(each, each.grad) for each in chain(*(model.parameters() for model in models))]
    try:
        for model in models:
            model.eval()
        for parameter, _ in gradients:
            parameter.grad = None  # a host's backward() would add to the caller's in place
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            yield
    finally:
        for module, training in modes:
            module.training = training
        for parameter, gradient in gradients:
            parameter.grad = gradient
