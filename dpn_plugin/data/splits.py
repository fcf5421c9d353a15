"""A part of the training data kept aside."""

import torch

from dpn_plugin.data.samples import Samples
from dpn_plugin.errors import UserError

__all__ = ["hold_out"]


def hold_out(samples: Samples, fraction: float, seed: int) -> tuple[Samples, Samples]:
    """
    Split at random, class by class, so that both parts have the classes in the same proportions.

    A class of two samples or more is in both parts.

    :param fraction: share of the held-out part, between 0 and 1
    :param seed: the same seed gives the same split
    :return: what stays, and what is held out, both in the order of ``samples``
    :raises UserError: if the fraction is out of range, or a part would be empty
    """
    if not 0 < fraction < 1:
        raise UserError(f"fraction must be between 0 and 1, not {fraction}.")
    generator = torch.Generator().manual_seed(seed)
    held = torch.zeros(len(samples), dtype=torch.bool)
    for label in torch.unique(samples.labels):
        members = torch.nonzero(samples.labels == label).flatten()
        order = torch.randperm(len(members), generator=generator)
        count = min(max(1, round(fraction * len(members))), len(members) - 1)
        held[members[order[:count]]] = True
    if not held.any():
        raise UserError(f"{samples.name} has too few samples ({len(samples)}) to hold some out.")
    return samples.subset(torch.nonzero(~held)[:, 0]), samples.subset(torch.nonzero(held)[:, 0])
