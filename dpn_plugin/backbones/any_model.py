"""Any network that returns logits as a backbone, whether timm knows it or not."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from dpn_plugin.backbones.backbone import Backbone
from dpn_plugin.backbones.heads import is_linear
from dpn_plugin.errors import UserError, UserTypeError, unknown_name

#: a module, a function, or the dotted name of a module inside the model
Part = nn.Module | Callable[[Tensor], Tensor] | str

#: attributes of a timm model
_TIMM = ("forward_features", "forward_head", "get_classifier", "num_classes", "pretrained_cfg")
_HINT = "pass encoder= (features B x D) and head= (logits from features)"


def is_timm_model(model: nn.Module) -> bool:
    """Return whether a model has timm's interface."""
    return all(hasattr(model, name) for name in _TIMM)


def as_backbone(
    model: nn.Module, x: Tensor, *, encoder: Part | None = None, head: Part | None = None
) -> Backbone | None:
    """
    Return a model as a backbone; ``None`` if it gives logits and nothing else can be found.

    A timm model needs nothing more. In others the head is the last linear layer, if its outputs
    are the logits; otherwise it can be named.

    :param model: gives logits B x K, or an object with such ``logits``; in evaluation mode
    :param x: a batch that it takes
    :param encoder: what gives the features; the input of the head if left out
    :param head: what turns features into logits
    :raises UserError: if the model gives no logits, or ``head`` and ``encoder`` do not give the
        logits of the model
    """
    with torch.no_grad():
        logits = logits_of(model(x))
    if logits.ndim != 2 or len(logits) != len(x):
        raise UserError(
            f"The model must give logits B x K, not a tensor of shape {tuple(logits.shape)} for "
            f"{len(x)} samples."
        )
    if encoder is None and head is None and is_timm_model(model):
        found: nn.Module = model
    else:
        parts = _find_parts(model, x, logits, encoder, head)
        if parts is None:
            return None
        found = SplitModel(model, *parts, num_classes=logits.shape[1], channels=x.shape[1])
    backbone = Backbone(found, model_name(model), "default", tuple(x.shape[1:]))
    backbone.eval().measure(x[:1])
    if not backbone.splits and found is not model:
        raise UserError(
            f"The head does not turn the features into the logits of {model_name(model)}: {_HINT}."
        )
    return backbone


def model_name(model: nn.Module) -> str:
    """Return the timm id of a model, or the name of its class."""
    config = getattr(model, "pretrained_cfg", None) or {}
    return str(config.get("architecture") or type(model).__name__)


def logits_of(output: Any) -> Tensor:
    """
    Return the logits in the output of a model.

    :param output: a tensor, or an object with a tensor ``logits``
    :raises UserTypeError: if it is neither
    """
    found = getattr(output, "logits", output)
    if not isinstance(found, Tensor):
        raise UserTypeError(
            f"The model must return logits as a tensor, not a {type(output).__name__}."
        )
    return found


class SplitModel(nn.Module):
    """
    A model with timm's interface, from a model, its encoder and its head.

    :param model: gives logits
    :param encoder: gives features B x D
    :param head: turns features into logits
    :param num_classes: the number of logits
    :param channels: of its inputs
    """

    def __init__(
        self,
        model: nn.Module,
        encoder: Callable[[Tensor], Tensor],
        head: nn.Module,
        num_classes: int,
        channels: int,
    ) -> None:
        super().__init__()
        self.model = model
        # not registered: the model contains them, and parameters would have two names
        self.__dict__["encode"], self.__dict__["head"] = encoder, head
        self.num_classes = num_classes
        self.num_features = 0  # of feature maps, which it has none of
        #: how inputs are normalised is not known
        self.pretrained_cfg = {"mean": (0.0,) * channels, "std": (1.0,) * channels}

    def get_classifier(self) -> nn.Module:
        """Return the head."""
        return self.__dict__["head"]

    def forward_features(self, x: Tensor) -> Tensor:
        """Return features B x D."""
        return self.__dict__["encode"](x).flatten(1)

    def forward_head(self, features: Tensor, pre_logits: bool = False) -> Tensor:
        """
        Return logits, or the features themselves.

        :param features: B x D
        :param pre_logits: stop before the head
        """
        return features if pre_logits else self.__dict__["head"](features)

    def forward(self, x: Tensor) -> Tensor:
        """Return logits."""
        return logits_of(self.model(x))


class _Function(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, features: Tensor) -> Tensor:
        return self.function(features)


def _find_parts(
    model: nn.Module, x: Tensor, logits: Tensor, encoder: Part | None, head: Part | None
) -> tuple[Callable[[Tensor], Tensor], nn.Module] | None:
    encode = None if encoder is None else _encoder(model, encoder)
    found = _named(model, head, "head") if head is not None else _last_layer(model, x, logits)
    if found is None:
        if encode is None:
            return None
        raise UserError(f"No head was found in {model_name(model)}: pass head= beside encoder=.")
    module = found if isinstance(found, nn.Module) else _Function(found)
    if encode is None:
        if not any(module is each for each in model.modules()):
            raise UserError(
                f"head is no module of {model_name(model)}, so its input is not known: pass "
                "encoder= too."
            )
        encode = partial(_input_of, model, module)
    return encode, module


def _encoder(model: nn.Module, encoder: Part) -> Callable[[Tensor], Tensor]:
    if isinstance(encoder, str):
        return partial(_output_of, model, _named(model, encoder, "encoder"))
    return encoder


def _named(model: nn.Module, part: Part, argument: str) -> Any:
    if not isinstance(part, str):
        if not callable(part):
            raise UserTypeError(
                f"{argument} must be a module, a function or the name of a module, not {part!r}."
            )
        return part
    modules = {name: module for name, module in model.named_modules() if name}
    if part not in modules:
        raise unknown_name(f"module ({argument})", part, modules)
    return modules[part]


def _last_layer(model: nn.Module, x: Tensor, logits: Tensor) -> nn.Module | None:
    """Return the linear layer whose outputs are the logits."""
    ran: list[tuple[nn.Module, Tensor]] = []
    layers = [module for module in model.modules() if is_linear([module])]
    hooks = [
        each.register_forward_hook(lambda module, _, output: ran.append((module, output)))
        for each in layers
    ]
    try:
        with torch.no_grad():
            model(x)
    finally:
        for hook in hooks:
            hook.remove()
    for module, output in reversed(ran):
        if output.numel() == logits.numel() and torch.equal(output.reshape(logits.shape), logits):
            return module
    return None


def _input_of(model: nn.Module, module: nn.Module, x: Tensor) -> Tensor:
    """Run a model and return what one of its modules got."""
    return _recorded(model, module, x, lambda inputs, output: inputs[0])


def _output_of(model: nn.Module, module: nn.Module, x: Tensor) -> Tensor:
    """Run a model and return what one of its modules gave."""
    return _recorded(model, module, x, lambda inputs, output: output)


def _recorded(
    model: nn.Module, module: nn.Module, x: Tensor, choose: Callable[[Any, Any], Tensor]
) -> Tensor:
    found: list[Tensor] = []
    hook = module.register_forward_hook(lambda _, inputs, out: found.append(choose(inputs, out)))
    try:
        model(x)
    finally:
        hook.remove()
    if not found or not isinstance(found[-1], Tensor):
        raise UserError(f"A {type(module).__name__} of the model gives no features: {_HINT}.")
    return found[-1]
