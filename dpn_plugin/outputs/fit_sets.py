"""The sets that detectors are fitted to, bounded in size."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from dpn_plugin._records import json_hash
from dpn_plugin.data import Samples
from dpn_plugin.outputs.run_outputs import HELD_OUT

#: Detectors hold the features that they are fitted to in memory, some of them in float64: for
#: 2,048 features, so many samples are 0.8 GB in float32.
FIT_SAMPLES = 100_000


@dataclass(frozen=True)
class FitSets:
    """
    All sets of a run, in which those that detectors are fitted to (training and held-out data) have
    about ``most`` samples at most: a random part of every class, the same one every time.

    :param samples: all sets by name
    :param fingerprints: the hash of each of them
    :param positions: the samples that were kept, of the sets that were larger
    """

    samples: dict[str, Samples]
    fingerprints: dict[str, str]
    positions: dict[str, Tensor]

    @classmethod
    def of(
        cls, samples: Mapping[str, Samples], fingerprints: Mapping[str, str], most: int
    ) -> "FitSets":
        """
        Return the sets with at most ``most`` samples to fit to, and at least one of every class.

        :param samples: all sets by name; ``train``, ``held_out`` and ``held_out_outliers`` are
            those that detectors are fitted to
        :param fingerprints: the hash of each of them
        :param most: how many samples are kept
        """
        large = [n for n in ("train", *HELD_OUT) if n in samples and len(samples[n]) > most]
        positions = {name: _part_of_every_class(samples[name].labels, most) for name in large}
        parts = {name: samples[name].subset(kept) for name, kept in positions.items()}
        hashes = {name: json_hash([fingerprints[name], {"fit_samples": most}]) for name in large}
        return cls({**samples, **parts}, {**fingerprints, **hashes}, positions)

    def part(self, name: str, points: Samples) -> Samples:
        """Return the samples of ``points``, features of all of a set, that were kept."""
        return points.subset(self.positions[name]) if name in self.positions else points


def _part_of_every_class(labels: Tensor, most: int) -> Tensor:
    """Return the positions of about ``most`` samples, in order, with all classes in proportion."""
    generator = torch.Generator().manual_seed(0)
    kept = torch.zeros(len(labels), dtype=torch.bool)
    for label in torch.unique(labels):
        members = torch.nonzero(labels == label)[:, 0]
        count = max(1, len(members) * most // len(labels))
        kept[members[torch.randperm(len(members), generator=generator)[:count]]] = True
    return torch.nonzero(kept)[:, 0]
