"""A trained run: a folder with weights, configuration and history."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from dpn_plugin._files import DamagedRecord
from dpn_plugin.backbones import Backbone, WeightsDoNotFit, config_of, create_backbone
from dpn_plugin.data import Transform
from dpn_plugin.errors import UserError
from dpn_plugin.runs.checkpoint import read_weights
from dpn_plugin.runs.config import TrainConfig
from dpn_plugin.runs.methods import Method, Network, method_of
from dpn_plugin.runs.record import RUN_FILE, RunRecord, read_run_record


@dataclass(frozen=True, repr=False)
class TrainedRun:
    """
    A finished run.

    :param folder: where it is
    :param record: all of ``run.json``
    """

    folder: Path
    record: RunRecord

    def __repr__(self) -> str:
        config = self.config
        return (
            f"TrainedRun({config.backbone!r}, {config.method!r}, seed={config.seed}, "
            f"folder={str(self.folder)!r})"
        )

    @property
    def config(self) -> TrainConfig:
        """What was trained."""
        return self.record.config

    @cached_property
    def method(self) -> Method:
        """The method, with the options of this run."""
        return method_of(self.config)

    @property
    def num_classes(self) -> int:
        """Number of in-domain classes."""
        return len(self.record.classes)

    @property
    def transform(self) -> Transform:
        """What brings a batch of images or points to the networks."""
        assert self.record.transform is not None  # the record of a finished run has one
        return self.record.transform

    @property
    def weights_hash(self) -> str:
        """The hashes of all networks' weights."""
        return " ".join(network.sha256 for network in self.record.networks.values())

    def load_network(self, network: Network) -> Backbone:
        """
        Load one trained network, in evaluation mode.

        :raises UserError: if its weights are missing or damaged
        """
        known = self.record.networks.get(network.name)
        if known is None:
            raise UserError(f"{self.folder / RUN_FILE} lists no network {network.name!r}.")
        weights = read_weights(self.folder / f"{network.name}.safetensors", known.sha256)
        shape = (len(self.transform.mean), *self.record.input_shape[1:])  # grey images may repeat
        backbone = _build_network(self.config, network, shape, self.num_classes)
        try:
            backbone.model.load_state_dict(weights)
        except RuntimeError as error:
            raise UserError(
                f"The weights of {self.folder} are not those of {self.config.backbone!r}."
            ) from error
        return backbone.eval()


def open_run(folder: str | Path) -> TrainedRun:
    """
    Open a run that was trained before.

    :param folder: a folder that :func:`~dpn_plugin.training.train` wrote
    :raises UserError: if there is no finished run
    """
    folder = Path(folder)
    try:
        record = read_run_record(folder)
    except DamagedRecord as error:
        raise UserError(f"{folder} holds no trained run: {error}") from error
    if record is None:
        raise UserError(f"{folder} holds no trained run: it has no {RUN_FILE}.")
    if not record.finished:
        raise UserError(f"The run in {folder} is not finished; the same dpn train continues it.")
    return TrainedRun(folder, record)


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
        return _build_network(config, network, shape, num_classes)
    given = {"pretrained": config.pretrained, "weights": config.weights}
    own = config_of(config.backbone).input_size[0]
    if len(shape) != 3 or shape[0] in (own, 3):
        return _build_network(config, network, shape, num_classes, **given)
    try:
        return _build_network(config, network, (own, *shape[1:]), num_classes, **given)
    except WeightsDoNotFit as problem:  # they may be those of a network for grey images
        try:
            return _build_network(config, network, shape, num_classes, **given)
        except WeightsDoNotFit:
            raise problem from None


def _build_network(
    config: TrainConfig,
    network: Network,
    shape: tuple[int, ...],
    num_classes: int,
    **given: Any,
) -> Backbone:
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
        2 if network.is_ood_classifier else num_classes,
        in_chans=shape[0],
        image_size=size,
        stem=stem,
        drop_rate=config.recipe.drop_rate,
        **given,
    )
    if len(shape) != len(backbone.input_size):  # points for an image model, or the reverse
        backbone.check_input(shape)
    return backbone
