"""A training run: a folder with weights, configuration and history."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dpn_plugin.backbones import Backbone, create_backbone
from dpn_plugin.data.transform import Transform
from dpn_plugin.errors import UserError
from dpn_plugin.plugins import registry
from dpn_plugin.training.checkpoint import read_weights
from dpn_plugin.training.config import TrainConfig
from dpn_plugin.training.methods import Method, Network
from dpn_plugin.training.record import RECORD, read_record

__all__ = ["Run", "fresh_backbone", "method_of", "open_run"]


@dataclass(frozen=True)
class Run:
    """
    A finished run.

    :param folder: where it is
    :param config: what was asked for
    :param record: all of ``run.json``: versions, hashes, times
    """

    folder: Path
    config: TrainConfig
    record: dict[str, Any]

    @property
    def method(self) -> Method:
        """The method, with the options of this run."""
        return method_of(self.config)

    @property
    def num_classes(self) -> int:
        """Number of in-domain classes."""
        return len(self.record["classes"])

    @property
    def transform(self) -> Transform:
        """What brings a batch to the networks."""
        described = self.record["transform"]
        size = described["size"]
        return Transform(
            tuple(described["mean"]), tuple(described["std"]), None if size is None else tuple(size)
        )

    @property
    def weights_hash(self) -> str:
        """One hash of all networks' weights."""
        return " ".join(each["sha256"] for each in self.record["networks"].values())

    def backbone(self, network: Network) -> Backbone:
        """
        :return: the trained network, in evaluation mode
        :raises UserError: if its weights are missing or damaged
        """
        known = self.record["networks"].get(network.name)
        if known is None:
            raise UserError(f"{self.folder / RECORD} knows nothing of a network {network.name!r}.")
        weights = read_weights(self.folder / f"{network.name}.safetensors", known["sha256"])
        shape = tuple(self.record["input_shape"])
        backbone = fresh_backbone(self.config, network, shape, self.num_classes)
        try:
            backbone.model.load_state_dict(weights)
        except RuntimeError as error:
            raise UserError(
                f"The weights of {self.folder} are not those of {self.config.backbone!r}."
            ) from error
        return backbone.eval()


def open_run(folder: str | Path) -> Run:
    """
    :param folder: what :func:`train` wrote
    :raises UserError: if there is no finished run
    """
    folder = Path(folder)
    try:
        record = read_record(folder)
        config = TrainConfig.model_validate(record["config"]) if record else None
    except ValueError as error:  # a UserError is one, too
        raise UserError(f"{folder / RECORD} cannot be read as the record of a run.") from error
    if config is None:
        raise UserError(f"{folder} holds no trained run: it has no {RECORD}.")
    if not record.get("finished"):
        raise UserError(f"The run in {folder} is not finished; the same dpn train goes on with it.")
    return Run(folder, config, record)


def method_of(config: TrainConfig) -> Method:
    """
    :return: the method, with the configuration's options
    :raises UserError: if there is no such method
    """
    method: Method = registry.load("methods", config.method)
    options: dict[str, Any] = {**method.loss_options, **config.options}
    for key in ("members", "passes"):
        if key in config.options:
            method = replace(method, **{key: _count(method, key, options.pop(key))})
    evidence = None if method.evidence is None else options.get("evidence", method.evidence)
    return replace(method, loss_options=options, evidence=evidence)


def _count(method: Method, key: str, value: Any) -> Any:
    if getattr(method, key) == 1:
        raise UserError(f"Method {method.name!r} has no option {key!r}.")
    if not isinstance(value, int) or value < 2:
        raise UserError(f"{key} must be a whole number of 2 or more, not {value!r}.")
    return value


def fresh_backbone(
    config: TrainConfig, network: Network, shape: tuple[int, ...], num_classes: int
) -> Backbone:
    """
    :param shape: of one input, C x H x W or C
    :return: the untrained network; its weights follow from torch's random state
    :raises UserError: if there is no such backbone, or it cannot take such inputs
    """
    if len(shape) == 3 and shape[1] != shape[2]:
        raise UserError(f"Images must be square, not {shape[1]} x {shape[2]}; set image_size.")
    backbone = create_backbone(
        config.backbone,
        2 if network.told_apart else num_classes,
        in_chans=shape[0],
        image_size=shape[1] if len(shape) == 3 else None,
        stem=config.stem,
        drop_rate=config.recipe.drop_rate,
        pretrained=config.pretrained,
    )
    if len(shape) != len(backbone.input_size):  # points for an image model, or the other way round
        backbone.check_input(shape)
    return backbone
