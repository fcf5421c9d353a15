"""The shifted test sets of a suite: loaded with the in-domain classes, and never trained on."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch

from dpn_plugin.bench.suite import Suite
from dpn_plugin.data import (
    DatasetCache,
    Samples,
    check_shift,
    clean_spec,
    match_classes,
    shared_rows,
)
from dpn_plugin.errors import UserError


@dataclass(frozen=True, eq=False)
class ShiftedSets:
    """
    The shifted sets of a suite.

    :param samples: by name, with the labels of the in-domain classes
    :param dropped: how many samples sets have lost because they are made of training samples
    """

    samples: dict[str, Samples]
    dropped: dict[str, int]


def load_shifted_sets(
    suite: Suite, datasets: DatasetCache, train: Samples, outliers: Mapping[str, Samples]
) -> ShiftedSets:
    """
    Load the shifted sets of a suite, and compare what they are made of with the training data.

    :param suite: whose sets are loaded
    :param datasets: gives the data
    :param train: in-domain training data
    :param outliers: OOD training data by name
    :raises UserError: if a set has other classes, or is made of training samples
    """
    found: dict[str, Samples] = {}
    dropped: dict[str, int] = {}
    shared: dict[str, np.ndarray] = {}
    for name, spec in suite.shift.items():
        samples = datasets.load_like(train, spec, in_domain=True)
        found[name] = match_classes(samples, train.classes)
        clean = clean_spec(spec)
        key = clean.model_dump_json()
        if key not in shared:  # the severities of a shift are made of the same images
            source = samples if clean == spec else datasets.load_like(train, clean, in_domain=True)
            if suite.overlap == "drop":
                shared[key] = shared_rows(source, [train, *outliers.values()])
            else:
                known = ("in_domain", suite.in_domain, train)
                check_shift((f"shift.{name}", spec, source), known, bool(suite.in_domain_test))
                shared[key] = np.zeros(len(source), dtype=bool)
        if shared[key].any():
            found[name] = _without(found[name], name, shared[key])
            dropped[name] = int(shared[key].sum())
    return ShiftedSets(found, dropped)


def _without(samples: Samples, name: str, drop: np.ndarray) -> Samples:
    found = f"{int(drop.sum())} of the {len(samples)} images of 'shift.{name}' are made of training"
    if drop.all():
        raise UserError(f"{found} data: nothing is left to test on. Take another set.")
    warnings.warn(f'{found} samples; they were dropped (overlap = "drop").')
    return samples.subset(torch.from_numpy(np.flatnonzero(~drop)))
