"""Which detectors go with a backbone."""

from torch import nn

from dpn_plugin.errors import UserError
from dpn_plugin.plugins import registry

__all__ = ["obstacle"]


def obstacle(name: str, model: nn.Module) -> str | None:
    """
    :param name: of a detector
    :param model: a backbone; it need not be trained
    :return: why the detector cannot be made from the model; ``None`` if it can
    """
    try:
        registry.create_detector(name, model)
    except (UserError, TypeError) as reason:
        return str(reason)
    return None
