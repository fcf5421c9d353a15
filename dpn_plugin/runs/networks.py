"""The networks of a run before their training: from random or from given weights."""

from typing import Any

from dpn_plugin.backbones import Backbone, WeightsDoNotFit, config_of, create_backbone
from dpn_plugin.errors import UserError
from dpn_plugin.losses import FeatureLoss
from dpn_plugin.plugins import registry
from dpn_plugin.runs.config import TrainConfig
from dpn_plugin.runs.methods import Network
from dpn_plugin.runs.readout import num_outputs


def create_network(
    config: TrainConfig, network: Network, shape: tuple[int, ...], num_classes: int
) -> Backbone:
    """
    Create an untrained network, with the given weights or those of torch's random state.

    A network with given weights keeps its stem, its size and, for grey images, its channels.

    :param config: the configuration of the run
    :param network: which network of the method
    :param shape: of one input, C x H x W or D
    :param num_classes: number of in-domain classes
    :raises UserError: if there is no such backbone, it cannot take such inputs, or the weights
        cannot be had or do not fit
    """
    if not config.has_given_weights:
        return build_network(config, network, shape, num_classes)
    given = {"pretrained": config.pretrained, "weights": config.weights}
    own = config_of(config.backbone).input_size[0]
    if len(shape) != 3 or shape[0] in (own, 3):
        return build_network(config, network, shape, num_classes, **given)
    try:
        return build_network(config, network, (own, *shape[1:]), num_classes, **given)
    except WeightsDoNotFit as problem:  # they may be those of a network for grey images
        try:
            return build_network(config, network, shape, num_classes, **given)
        except WeightsDoNotFit:
            raise problem from None


def build_network(
    config: TrainConfig,
    network: Network,
    shape: tuple[int, ...],
    num_classes: int,
    **given: Any,
) -> Backbone:
    """
    Create a network with random weights, or those that ``given`` names.

    :param config: the configuration of the run
    :param network: which network of the method
    :param shape: of one input, C x H x W or D
    :param num_classes: number of in-domain classes
    :param given: ``pretrained`` and ``weights`` of ``create_backbone``
    :raises UserError: if there is no such backbone, or it cannot take such inputs
    """
    if len(shape) == 3 and shape[1] != shape[2]:
        raise UserError(
            f"Images must be square, not {shape[1]} x {shape[2]}; set image_size, e.g. with --set "
            "image_size=32 (in a suite: input_size = [3, 32, 32])."
        )
    size, stem = shape[1] if len(shape) == 3 else None, config.stem
    if config.has_given_weights:
        size, stem = config.network_size, "default" if stem == "auto" else stem
    backbone = create_backbone(
        config.backbone,
        num_outputs(network, num_classes),
        in_chans=shape[0],
        image_size=size,
        stem=stem,
        drop_rate=config.recipe.drop_rate,
        **given,
    )
    if len(shape) != len(backbone.input_size):  # points for an image model, or the reverse
        backbone.check_input(shape)
    attach_branch(backbone, network)
    return backbone


def attach_branch(backbone: Backbone, network: Network) -> None:
    """
    Give a network the branch that its loss needs, with weights from torch's random state.

    :param backbone: the network
    :param network: which network of the method
    :raises UserError: if the loss reads features and the backbone has none
    """
    if not reads_features(network):
        return
    kind = registry.load("losses", network.loss)
    if not backbone.splits:
        raise UserError(
            f"The loss {network.loss!r} reads the features below the classifier, and the logits of "
            f"{backbone.name!r} do not follow from its features through one head."
        )
    if kind.needs_linear_head and not backbone.is_linear:
        raise UserError(
            f"The loss {network.loss!r} needs a classifier that is one linear layer, and that of "
            f"{backbone.name!r} is {backbone.head_description}."
        )
    classes = backbone.num_classes
    loss = registry.create_loss(network.loss, num_classes=classes, **network.loss_options)
    backbone.attach_branch(loss.create_branch(backbone.num_features))


def reads_features(network: Network) -> bool:
    """Return whether the loss of a network reads its features, not its logits alone."""
    kind = registry.load("losses", network.loss)
    return isinstance(kind, type) and issubclass(kind, FeatureLoss)
