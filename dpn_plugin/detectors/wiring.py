"""A detector's arguments, filled from a backbone."""

from typing import Any

from torch import nn

from dpn_plugin.backbones import Backbone
from dpn_plugin.detectors.applicability import NotApplicable
from dpn_plugin.detectors.parts import PARTS
from dpn_plugin.detectors.recipes import part_names, values
from dpn_plugin.plugins.options import allowed_options, checked_options

__all__ = ["arguments", "as_backbone", "wired"]

_TIMM = ("forward_features", "forward_head", "get_classifier", "num_classes", "pretrained_cfg")


def wired(factory: Any, model: nn.Module, **options: Any) -> Any:
    """
    :param factory: the class of a detector, of pytorch-ood or anybody else's
    :param model: a :class:`~dpn_plugin.backbones.Backbone` or a timm model; any other module that
        gives logits serves detectors of logits
    :param options: arguments of the detector that shall not come from the model
    :return: a ``pytorch_ood.api.Detector``
    :raises NotApplicable: if the model lacks what the detector needs
    :raises TypeError: if an option is unknown or missing
    """
    what = f"Detector {_name(factory)!r}"
    return factory(**checked_options(what, factory, arguments(what, factory, model, options)))


def arguments(what: str, factory: Any, model: nn.Module, options: dict[str, Any]) -> dict[str, Any]:
    """
    :param what: the detector in the words of a message, e.g. ``"Detector 'gram'"``
    :param factory: its class
    :param model: see :func:`wired`
    :param options: arguments that are given already
    :return: ``options`` and what the model can add to them
    :raises NotApplicable: if the model lacks what the detector needs
    :raises TypeError: if the detector needs more than logits, and the model gives nothing else
    """
    wanted = part_names(factory)
    missing = {name: part for name, part in wanted.items() if name not in options}
    backbone = as_backbone(model)
    if backbone is None:
        filled = _from_logits(what, factory, model, missing)
    else:
        filled = {name: _part(factory, part, backbone) for name, part in missing.items()}
    return {**values(factory), **filled, **options}


def as_backbone(model: nn.Module) -> Backbone | None:
    """
    :param model: any module
    :return: the model itself or, if it is timm's, wrapped; ``None`` for any other
    """
    if isinstance(model, Backbone):
        return model
    if not all(hasattr(model, name) for name in _TIMM):
        return None
    config: Any = model.pretrained_cfg
    channels = next((each.shape[1] for each in model.parameters() if each.ndim == 4), 0)
    size = config["input_size"][1:]
    shape = (channels, *size) if channels else config["input_size"][:1]
    return Backbone(model, config["architecture"], "default", tuple(shape))


def _part(factory: Any, part: str, backbone: Backbone) -> Any:
    try:
        return PARTS[part](backbone)
    except NotApplicable as reason:
        raise NotApplicable(f"{_name(factory)} {reason}.") from None


def _from_logits(
    what: str, factory: Any, model: nn.Module, missing: dict[str, str]
) -> dict[str, Any]:
    if missing and missing.get("model", "stages") == "stages":
        raise TypeError(
            f"{what} takes no model that gives logits alone: {' and '.join(missing)} must be given,"
            f" or come from a timm model. {allowed_options(factory)}"
        )
    return {"model": model} if missing else {}


def _name(factory: Any) -> str:
    # a function that lacks some arguments, as functools.partial makes it, has no name
    return getattr(factory, "__name__", type(factory).__name__)
