"""Test sets without the samples that they share with other data."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from dpn_plugin.data.hashes import short_hashes
from dpn_plugin.data.overlap import (
    in_domain_title,
    noun,
    ood_test_title,
    outliers_title,
)
from dpn_plugin.data.samples import Samples
from dpn_plugin.errors import UserError


@dataclass(frozen=True, eq=False)
class DistinctTests:
    """
    Test sets that share no sample with training data, nor in-domain with OOD sets.

    :param in_domain_test: what is left of the in-domain test samples
    :param ood: what is left of the OOD test sets, by name
    :param dropped: how many samples each set has lost, by ``in_domain_test`` or the name of the OOD
        set; sets that are still whole are left out
    """

    in_domain_test: Samples
    ood: dict[str, Samples]
    dropped: dict[str, int]


def drop_shared(
    in_domain: Samples,
    in_domain_test: Samples,
    outliers: Mapping[str, Samples],
    ood: Mapping[str, Samples],
) -> DistinctTests:
    """
    Remove samples from test sets that are, byte for byte, also elsewhere; warn of each set.

    In-domain test samples are compared with the in-domain training data and the outliers; OOD test
    samples with these and with the in-domain test samples. Training data keeps all its samples.

    :param in_domain: in-domain training data
    :param in_domain_test: in-domain test data
    :param outliers: OOD training data by name
    :param ood: OOD test sets by name
    :raises UserError: if nothing is left of a set
    """
    known = {in_domain_title("in_domain"): short_hashes(in_domain)}
    known |= {outliers_title(name): short_hashes(each) for name, each in outliers.items()}
    test_title = in_domain_title("in_domain_test")
    test, count = _without(in_domain_test, test_title, known)
    dropped = {"in_domain_test": count}
    known[test_title] = short_hashes(in_domain_test)
    left = {}
    for name, samples in ood.items():
        left[name], dropped[name] = _without(samples, ood_test_title(name), known)
    return DistinctTests(test, left, {name: count for name, count in dropped.items() if count})


def shared_rows(samples: Samples, others: Sequence[Samples]) -> np.ndarray:
    """
    Return whether each sample is, byte for byte, also in one of the other sets.

    :param samples: N samples
    :param others: the other sets
    :return: boolean, shape (N,)
    """
    own = short_hashes(samples)
    return np.logical_or.reduce([np.isin(own, short_hashes(each)) for each in others])


def _without(samples: Samples, title: str, known: Mapping[str, np.ndarray]) -> tuple[Samples, int]:
    """Return the samples that are in none of the other sets, and how many are not."""
    own = short_hashes(samples)
    shared = {name: np.isin(own, other) for name, other in known.items()}
    drop = np.logical_or.reduce(list(shared.values()))
    count = int(drop.sum())
    if not count:
        return samples, 0
    where = " and in ".join(name for name, found in shared.items() if found.any())
    found = f"{count} of the {len(samples)} {noun(samples)} of {title} are also in {where}"
    if count == len(samples):
        raise UserError(f"{found}: nothing is left to test on. Take another set.")
    warnings.warn(f'{found}; they were dropped (overlap = "drop").')
    return samples.subset(torch.from_numpy(np.flatnonzero(~drop))), count
