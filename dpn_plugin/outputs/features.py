"""Features of a frozen network, computed once for every data set and shared by all runs."""

from collections.abc import Iterator
from dataclasses import asdict, replace

from torch import Tensor

from dpn_plugin._distributed import Processes
from dpn_plugin.data import Samples, fingerprint
from dpn_plugin.outputs.entry import StoredOutputs
from dpn_plugin.outputs.forward_pass import BATCH, ForwardPass
from dpn_plugin.outputs.key import OutputKey
from dpn_plugin.outputs.mapped import MappedPoints
from dpn_plugin.outputs.store import OutputStore
from dpn_plugin.runs import NO_VIEW, FrozenBase, View


class FrozenFeatures:
    """
    The features of data sets, in a store. A process that finds them there does not compute them.

    :param base: the network
    :param store: where features are kept
    :param processes: this process, with the device that it computes on, and the others of
        ``torchrun``, each of which computes a part
    """

    def __init__(self, base: FrozenBase, store: OutputStore, processes: Processes) -> None:
        self.base, self.store, self.processes = base, store, processes
        # the last sets, so that the runs of one process verify them once
        self._kept: dict[str, MappedPoints] = {}

    def as_points(self, samples: Samples, view: View | None = None) -> Samples:
        """
        Return the samples, or a view of them, with features in the place of images.

        The features stay in the store and are memory-mapped. All processes must call this.
        """
        of_view = {} if view is None else {"view": asdict(view)}
        key = OutputKey(
            weights=self.base.sha256,
            data=fingerprint(samples),
            transform=self.base.transform.description(),
            split="features",
            extra={"backbone": self.base.backbone.name, **of_view},
        )
        if key.hash not in self._kept:
            entry = self._stored(key, samples, view or NO_VIEW)
            self._kept[key.hash] = MappedPoints.of(entry.arrays["features"])
        return replace(samples, inputs=self._kept[key.hash])

    def _stored(self, key: OutputKey, samples: Samples, view: View) -> StoredOutputs:
        def outputs(start: int = 0, step: int = 1) -> Iterator[dict[str, Tensor]]:
            images = view.batches(samples, BATCH, start, step)
            for features in self.base.features(images, self.processes.device):
                yield {"features": features}

        if self.processes.broadcast(lambda: self.store.open(key.hash) is None):
            ForwardPass(self.store, key, len(samples), outputs, self.processes).run()
        # another machine that does not share the folder computes all of them
        return self.store.open(key.hash) or self.store.write(key, outputs())
