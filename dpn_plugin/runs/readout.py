"""How the outputs of a network become logits, for losses that define it."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from dpn_plugin.backbones import Backbone
from dpn_plugin.plugins import registry
from dpn_plugin.runs.methods import Network

Readout = Callable[[Tensor], Tensor]


def num_outputs(network: Network, num_classes: int) -> int:
    """
    Return how many outputs a network has: one per class, unless its loss needs others.

    A loss says so with ``columns``, the number of columns that it takes.

    :param network: which network of the method
    :param num_classes: number of in-domain classes
    """
    if network.is_ood_classifier:
        return 2
    loss = _output_loss(network, num_classes)
    if loss is None or network.distils:  # the other columns are those of other networks
        return num_classes
    return getattr(loss, "columns", num_classes)


def attach_readout(backbone: Backbone, network: Network, num_classes: int) -> Backbone:
    """
    Let a backbone with other outputs than one per class return logits, and return it.

    :param backbone: the trained network
    :param network: which network of the method
    :param num_classes: number of in-domain classes
    """
    loss = _output_loss(network, num_classes)
    if loss is not None and num_outputs(network, num_classes) != num_classes:
        backbone.read_out(loss.log_concentrations, num_classes)
    return backbone


def log_concentrations(network: Network, num_classes: int) -> Readout | None:
    """
    Return what turns the outputs of a backbone into log-concentrations, ``None`` if they are.

    :param network: which network of the method
    :param num_classes: number of in-domain classes
    """
    loss = _output_loss(network, num_classes)
    if loss is None or num_outputs(network, num_classes) != num_classes:
        return None
    return loss.log_concentrations


def has_relu_evidence(network: Network, num_classes: int) -> bool:
    """Return whether the outputs of a network are evidence where they are positive."""
    return getattr(_output_loss(network, num_classes), "evidence", None) == "relu"


def _output_loss(network: Network, num_classes: int) -> Any:
    """Return the loss of a network if it defines log-concentrations, else ``None``."""
    if not hasattr(registry.load("losses", network.loss), "log_concentrations"):
        return None
    return registry.create_loss(network.loss, num_classes=num_classes, **network.loss_options)
