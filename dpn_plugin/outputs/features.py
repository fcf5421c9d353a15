"""Features of a frozen network, computed once for every data set and shared by all runs."""

from collections.abc import Iterator
from dataclasses import asdict, replace

import numpy as np
import torch
from torch import Tensor

from dpn_plugin.data import Samples, fingerprint
from dpn_plugin.outputs.key import OutputKey
from dpn_plugin.outputs.store import OutputStore
from dpn_plugin.runs import FrozenBase, View


class FrozenFeatures:
    """
    The features of data sets, in a store. A process that finds them there does not compute them;
    of two that compute them at the same time, one stores them.

    :param base: the network
    :param store: where features are kept
    :param device: where to compute
    """

    def __init__(self, base: FrozenBase, store: OutputStore, device: torch.device) -> None:
        self.base, self.store, self.device = base, store, device
        # the last sets, so that the runs of one process read them once
        self._kept: dict[str, Tensor] = {}

    def as_points(self, samples: Samples, view: View | None = None) -> Samples:
        """Return the samples, or a view of them, with features in the place of images."""
        of_view = {} if view is None else {"view": asdict(view)}
        key = OutputKey(
            weights=self.base.sha256,
            data=fingerprint(samples),
            transform=self.base.transform.description(),
            split="features",
            extra={"backbone": self.base.backbone.name, **of_view},
        )
        if key.hash not in self._kept:
            entry = self.store.open(key.hash) or self.store.write(key, self._batches(samples, view))
            self._kept[key.hash] = torch.from_numpy(np.array(entry.arrays["features"]))
        return replace(samples, inputs=self._kept[key.hash])

    def _batches(self, samples: Samples, view: View | None) -> Iterator[dict[str, Tensor]]:
        for features in self.base.features(samples, self.device, view):
            yield {"features": features}
