"""Networks of equal configuration, which are trained once and copied to the other runs."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from dpn_plugin._files import file_hash
from dpn_plugin._records import DamagedRecord, json_hash
from dpn_plugin.plugins import code_identity
from dpn_plugin.runs.config import Recipe, TrainConfig
from dpn_plugin.runs.method_options import method_of
from dpn_plugin.runs.methods import Network
from dpn_plugin.runs.record import NetworkRecord, read_run_record

#: fields of a configuration that say which networks there are, not how one is trained
_ABOUT_THE_METHOD = {"method", "options", "init_from", "outliers", "recipe"}


class TrainedNetwork(NamedTuple):
    """
    A network in the folder of another run.

    :param path: its weights file
    :param record: its record
    """

    path: Path
    record: NetworkRecord


def network_identity(config: TrainConfig, network: Network) -> str:
    """
    Return a hash of everything that decides the weights of a network.

    Two networks with equal identities on the same data end with equal weights, whatever their
    methods are: the classifier of ``mcdp`` is that of ``baseline``.
    """
    outliers = config.outliers if network.uses_outliers else ()
    return json_hash(
        {
            "config": {k: v for k, v in config.identity().items() if k not in _ABOUT_THE_METHOD},
            "recipe": adapted_recipe(config.recipe, network).model_dump(mode="json"),
            "outliers": [spec.model_dump(mode="json") for spec in outliers],
            "loss": [network.loss, loss_options(config.recipe, network)],
            "mixing": [network.mixing, dict(network.mixing_options)],
            "is_ood_classifier": network.is_ood_classifier,
            "is_trained": network.is_trained,
            "seed_offset": network.seed_offset,
            "starts_from": _start_identity(config, network),
            "distils": [_identity_of(config, name) for name in network.distils],
            "code": [
                code_identity("losses", network.loss),
                code_identity("backbones", config.backbone),
            ],
        }
    )


def adapted_recipe(recipe: Recipe, network: Network) -> Recipe:
    """Return the recipe that a network is trained with."""
    if network.lr_factor != 1:
        recipe = recipe.model_copy(update={"lr": network.lr_factor * recipe.lr})
    if network.adam_only and recipe.optimizer.startswith("sgd"):
        return recipe.model_copy(update={"optimizer": "adam", "lr": 5e-4})
    return recipe


def loss_options(recipe: Recipe, network: Network) -> dict[str, object]:
    """Return the options of a network's loss, with those that the recipe decides."""
    options = dict(network.loss_options)
    if network.gamma_option:
        options.setdefault(network.gamma_option, recipe.gamma)
    if network.annealing_option:
        options.setdefault(network.annealing_option, max(1, round(recipe.total_epochs * 2 / 3)))
    return options


def find_trained_network(
    folders: Iterable[Path], identity: str, data: Mapping[str, str]
) -> TrainedNetwork | None:
    """
    Return an undamaged network with this identity, or ``None`` if there is none.

    :param folders: of runs, which need not exist
    :param identity: see :func:`network_identity`
    :param data: the fingerprints of the data that it must have been trained on
    """
    for folder in folders:
        try:
            record = read_run_record(folder)
        except DamagedRecord:  # reported when that run is carried out
            continue
        if record is None or any(record.data.get(name) != data[name] for name in data):
            continue
        for name, network in record.networks.items():
            path = folder / f"{name}.safetensors"
            if network.identity == identity and _is_intact(path, network.sha256):
                return TrainedNetwork(path, network)
    return None


def _is_intact(path: Path, sha256: str) -> bool:
    return path.is_file() and file_hash(path) == sha256


def _start_identity(config: TrainConfig, network: Network) -> str | None:
    return None if network.starts_from is None else _identity_of(config, network.starts_from)


def _identity_of(config: TrainConfig, name: str) -> str:
    networks = {each.name: each for each in method_of(config).trained_networks}
    return network_identity(config, networks[name])
