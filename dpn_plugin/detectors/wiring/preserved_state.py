"""The state of a detector's models: evaluation mode is required, and nothing else changes it."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import update_wrapper
from itertools import chain
from typing import Any

import torch
from pytorch_ood.api import Detector
from torch import Tensor, nn

from dpn_plugin.backbones import Backbone
from dpn_plugin.errors import UserError


@contextmanager
def preserved_state(models: Iterable[nn.Module], seed: int = 0) -> Iterator[None]:
    """
    Within the block, put models into evaluation mode and seed the random number generator.

    Afterwards modes, gradients and the state of the generator are restored.

    :param models: the models that run in the block
    :param seed: the seed of the block
    """
    models = list(models)
    modes = [(each, each.training) for each in chain(*(model.modules() for model in models))]
    gradients = [(each, each.grad) for each in chain(*(model.parameters() for model in models))]
    try:
        for model in models:
            model.eval()
        for parameter, _ in gradients:
            parameter.grad = None  # a host's backward() would add to the caller's gradient in place
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            yield
    finally:
        for module, training in modes:
            module.training = training
        for parameter, gradient in gradients:
            parameter.grad = gradient


class RandomStream:
    """
    Random numbers of one detector, which others that run between its batches do not disturb.

    :param seed: the seed with which it starts
    """

    def __init__(self, seed: int = 0) -> None:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.state = _random_state()

    @contextmanager
    def active(self) -> Iterator[None]:
        """Within the block, torch's generators continue this stream."""
        before = _random_state()
        _set_random_state(self.state)
        try:
            yield
        finally:
            self.state = _random_state()
            _set_random_state(before)


def _random_state() -> tuple[Tensor, list[Tensor]]:
    on_gpus = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
    return torch.get_rng_state(), on_gpus


def _set_random_state(state: tuple[Tensor, list[Tensor]]) -> None:
    torch.set_rng_state(state[0])
    if state[1]:
        torch.cuda.set_rng_state_all(state[1])


def models_of(detector: Detector) -> list[nn.Module]:
    """Return the modules of a detector, also those of bound methods, lists and other detectors."""
    return list(dict.fromkeys(_modules(vars(detector))))


def device_of(detector: Detector) -> torch.device:
    """Return the device of a detector's model."""
    parameters = (each for model in models_of(detector) for each in model.parameters())
    return getattr(next(parameters, None), "device", torch.device("cpu"))


class EvaluationOnly:
    """
    A method of a detector that refuses to run while a model is in training mode.

    It can be copied and pickled together with its detector, which a closure cannot.

    :param what: the detector in the error message
    :param method: the bound method
    :param models: the models that must be in evaluation mode
    """

    def __init__(self, what: str, method: Callable[..., Any], models: list[nn.Module]) -> None:
        update_wrapper(self, method)
        self.what = what
        self.method = method
        self.models = models

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the method."""
        # one flag per model and not one per layer: this runs for every batch
        if any(model.training for model in self.models):
            raise UserError(
                f"{self.what} was called with a model in training mode, where dropout and batch "
                "norm change its outputs from batch to batch. Call model.eval() first."
            )
        return self.method(*args, **kwargs)


def evaluation_only(what: str, detector: Detector, given: Any) -> Detector:
    """
    Let ``fit`` and ``predict`` of a detector refuse models in training mode, and return it.

    :param what: the detector in the error message, e.g. ``"Detector 'dpn-mi'"``
    :param detector: any
    :param given: what the detector was created from: a model, its options, or a list of these
    """
    models = list(dict.fromkeys(_modules(given)))
    models += [each.model for each in models if isinstance(each, Backbone)]
    # a plugin may return anything; dpn check reports it
    for name in ("fit", "predict") if models and isinstance(detector, Detector) else ():
        # past __setattr__, because the detector may be a frozen dataclass
        vars(detector)[name] = EvaluationOnly(what, getattr(detector, name), models)
    return detector


def _modules(value: Any) -> Iterator[nn.Module]:
    if isinstance(value, nn.Module):
        yield value
    elif isinstance(value, EvaluationOnly):
        yield from value.models
    elif isinstance(getattr(value, "__self__", None), nn.Module):
        yield value.__self__
    elif isinstance(value, Detector):
        yield from _modules(vars(value))
    elif isinstance(value, dict | list | tuple):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _modules(each)
