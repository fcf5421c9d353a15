"""Search the hyperparameters of a detector on held-out data."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from pytorch_ood.api import Detector
from pytorch_ood.utils import GridSearch
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

from dpn_plugin.detectors.stored.fitting import fit
from dpn_plugin.detectors.stored.inputs import Batches, Loader
from dpn_plugin.detectors.stored.reading import reads, stored_array
from dpn_plugin.detectors.wiring import as_maps, device_of, models_of, preserved_state
from dpn_plugin.errors import UserError

ROWS = 4096

#: the attributes of a host that compute what it reads; during the search, stored arrays pass
#: through these functions instead
_SOURCES: dict[str, Callable[[Tensor], Tensor]] = {
    "model": lambda logits: logits,
    "encoder": lambda features: features,
    "backbone": as_maps,
}


def tune(
    detector: Detector,
    train: Mapping[str, np.ndarray],
    batches: Batches,
    held_out: Mapping[str, np.ndarray],
    held_out_batches: Batches,
) -> dict[str, Any]:
    """
    Fit a detector with the best hyperparameters and return them; empty if it has none.

    pytorch-ood's GridSearch tries every combination of the detector's ``hyperparameter_space`` and
    chooses the one with the largest AUROC.

    :param detector: any; one without hyperparameters is only fitted
    :param train: as :func:`~dpn_plugin.detectors.fit` takes it
    :param batches: the same samples
    :param held_out: ``logits``, ``features`` and ``labels`` of held-out in-domain samples and of
        held-out outliers, whose labels are below 0; never test data
    :param held_out_batches: the same samples
    :raises UserError: if ``held_out`` has samples of one kind only
    """
    space = _space(detector, int((train["labels"] >= 0).sum()))
    labels = held_out["labels"]
    if space and not (labels >= 0).any() & (labels < 0).any():
        raise UserError("Tuning needs held-out in-domain samples and held-out outliers.")
    best: dict[str, Any] = {}
    if space:
        search = GridSearch(
            detector,
            fit_loader=Loader(_read(detector, train, batches)),
            val_loader=Loader(_read(detector, held_out, held_out_batches), ood=True),
            hyperparameter_space=space,
            device=device_of(detector),
        )
        with preserved_state(models_of(detector)), _stored_sources(detector):
            best = search.run()
    fit(detector, train, batches)
    return best


def _space(detector: Detector, samples: int) -> dict[str, list[Any]]:
    """Return the host's space without numbers of neighbours above the number of samples."""
    space = dict(detector.hyperparameter_space)
    if "k" in space:
        space["k"] = [k for k in space["k"] if k <= samples] or [detector.k]
    return space


def _read(detector: Detector, outputs: Mapping[str, np.ndarray], batches: Batches) -> Batches:
    """Return batches of what the detector reads: stored arrays, or inputs."""
    kind = reads(detector)
    if kind == "inputs":
        return batches
    array = torch.from_numpy(np.array(stored_array(detector, outputs, kind)))
    labels = torch.from_numpy(np.array(outputs["labels"])).long()
    return lambda: DataLoader(TensorDataset(array, labels), batch_size=ROWS)


@contextmanager
def _stored_sources(detector: Detector) -> Iterator[None]:
    """Within the block, let a detector take stored arrays in place of inputs."""
    replaced = {name: getattr(detector, name) for name in _SOURCES if hasattr(detector, name)}
    if reads(detector) == "inputs":
        replaced = {}
    try:
        for name in replaced:
            setattr(detector, name, _SOURCES[name])
        yield
    finally:
        for name, source in replaced.items():
            setattr(detector, name, source)
