"""Create detectors by name, with the arguments that a model can provide."""

from typing import Any

from torch import nn

from dpn_plugin.detectors.stored import reads
from dpn_plugin.detectors.unit_length import normalized
from dpn_plugin.detectors.wiring import (
    evaluation_only,
    factory_name,
    filled_arguments,
    uses_dropout,
)
from dpn_plugin.errors import UserError
from dpn_plugin.plugins import check_options, registry, takes


def create_detector(name: str, model: nn.Module | None = None, **options: Any) -> Any:
    """
    Return a ``pytorch_ood.api.Detector`` by name.

    :param name: a name or an alias, see :func:`dpn_plugin.list_detectors`
    :param model: a :class:`~dpn_plugin.backbones.Backbone` or a timm model, which provides all that
        the detector needs; any other network that returns logits works for detectors of logits;
        ``None`` to score logits, or the features that an ``encoder`` would return, directly
    :param options: arguments of the detector's class; they replace those from the model. All
        detectors of features take ``normalize=True``, which scales features to unit length
    :raises UserError: if there is no such detector
    :raises NotApplicable: if the model lacks what the detector needs
    :raises UserTypeError: if an option is unknown or missing

    Its ``fit`` and ``predict`` raise a :class:`UserError` while the model is in training mode; only
    detectors that activate dropout themselves (``mcd``) take a model in any mode.
    """
    return _create(f"Detector {name!r}", registry.load("detectors", name), model, options)


def wired(factory: Any, model: nn.Module, **options: Any) -> Any:
    """
    Return a detector of a class that need not be registered, see :func:`create_detector`.

    :param factory: the class of a detector, or a function that returns one
    :param model: as for :func:`create_detector`
    :param options: arguments of the detector's class; they replace those from the model
    :raises NotApplicable: if the model lacks what the detector needs
    :raises UserTypeError: if an option is unknown or missing
    """
    return _create(f"Detector {factory_name(factory)!r}", factory, model, options)


def why_not_applicable(name: str, model: nn.Module) -> str | None:
    """
    Return why a detector cannot be created for a model, ``None`` if it can.

    :param name: a name or an alias of a detector
    :param model: a backbone; it need not be trained
    """
    try:
        create_detector(name, model)
    except UserError as reason:
        return str(reason)
    return None


def _create(what: str, factory: Any, model: nn.Module | None, options: dict[str, Any]) -> Any:
    if model is None:
        absent = {part: None for part in ("model", "encoder") if takes(factory, part)}
        arguments = absent | options
    else:
        arguments = filled_arguments(what, factory, model, options)
    normalize = arguments.pop("normalize", False) if not takes(factory, "normalize") else False
    detector = factory(**check_options(what, factory, arguments))
    if normalize:
        detector = normalized(what, detector, reads(detector))
    return detector if uses_dropout(factory) else evaluation_only(what, detector, [model, options])
