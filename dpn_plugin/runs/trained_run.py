"""A trained run: a folder with weights, configuration and history."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from torch import Tensor

from dpn_plugin._records import DamagedRecord
from dpn_plugin.backbones import Backbone, attach_head
from dpn_plugin.data import Transform
from dpn_plugin.errors import UserError
from dpn_plugin.runs.checkpoint import read_weights
from dpn_plugin.runs.config import TrainConfig
from dpn_plugin.runs.frozen import head_of, load_base
from dpn_plugin.runs.method_options import method_of
from dpn_plugin.runs.methods import Method, Network
from dpn_plugin.runs.networks import build_network
from dpn_plugin.runs.readout import attach_readout
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
        if self.record.base:
            return self._with_head(network, weights)
        shape = (len(self.transform.mean), *self.record.input_shape[1:])  # grey images may repeat
        backbone = build_network(self.config, network, shape, self.num_classes)
        try:
            backbone.model.load_state_dict(weights)
        except RuntimeError as error:
            raise UserError(
                f"The weights of {self.folder} are not those of {self.config.backbone!r}."
            ) from error
        return attach_readout(backbone.eval(), network, self.num_classes)

    def _with_head(self, network: Network, weights: dict[str, Tensor]) -> Backbone:
        """Return the frozen network with a trained head."""
        given = self.config.weights
        what = "timm's published weights" if given is None else f"the weights {given.path}"
        try:
            base = load_base(self.config, self.record.input_shape)
        except UserError as error:
            raise UserError(
                f"The run in {self.folder} is a head on {what} of {self.config.backbone!r}: {error}"
            ) from error
        if base.sha256 != self.record.base:
            raise UserError(
                f"The run in {self.folder} is a head on {what} of {self.config.backbone!r}, which "
                "are not those that it was trained on. Restore them, or train the run again."
            )
        width = base.backbone.num_features
        head = head_of(self.config, network, width, self.num_classes)
        head.model.load_state_dict(weights)
        backbone = attach_head(base.backbone, head)
        return attach_readout(backbone, network, self.num_classes)


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
