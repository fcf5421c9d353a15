"""A network that is evaluated as it was given: with its weights and its own classifier."""

import warnings
from collections.abc import Sequence

from dpn_plugin.backbones import Backbone, find_class_mismatch
from dpn_plugin.errors import UserError
from dpn_plugin.runs.config import TrainConfig
from dpn_plugin.runs.methods import Network
from dpn_plugin.runs.networks import create_network

#: why a network cannot be evaluated as it is
NEEDS_WEIGHTS = (
    "as-is evaluates a network with the weights that are given, and none are: use --pretrained or "
    "--weights FILE (in a suite: pretrained = true or weights in [train])"
)


def load_as_it_is(
    config: TrainConfig, network: Network, shape: tuple[int, ...], classes: Sequence[str]
) -> Backbone:
    """
    Return a network with the weights and the classifier that are given.

    :param config: the configuration of the run
    :param network: which network of the method
    :param shape: of one input, C x H x W or D
    :param classes: the names of the in-domain classes, in order
    :raises UserError: if no weights are given, or they have no classifier for these classes
    """
    if not config.has_given_weights:
        raise UserError(f"{NEEDS_WEIGHTS}.")
    # that a new classifier starts from random weights is not true here: it is refused
    with warnings.catch_warnings(record=True) as remarks:
        warnings.simplefilter("always")
        backbone = create_network(config, network, shape, len(classes))
    _check_classes(backbone, classes)
    for each in remarks:
        warnings.warn(each.message)
    return backbone.eval()


def _check_classes(backbone: Backbone, classes: Sequence[str]) -> None:
    has = backbone.weights_classes
    if has is None:
        raise UserError(
            f"The weights of {backbone.name!r} have no classifier, and as-is trains none: the data "
            f"has {len(classes)} classes."
        )
    if has != len(classes):
        raise UserError(
            f"The classifier of {backbone.name!r} has {has} classes and the in-domain data has "
            f"{len(classes)}. as-is needs the same classes in the same order; 'baseline' "
            "trains a new classifier."
        )
    different = find_class_mismatch(backbone.model, classes)
    if different:
        raise UserError(
            f"The classes of {backbone.name!r} and of the in-domain data are as many, but not the "
            f"same: {different}."
        )
