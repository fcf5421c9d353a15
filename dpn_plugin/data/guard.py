"""Training outliers and OOD test sets may not share data."""

import posixpath
from collections.abc import Sequence
from hashlib import blake2b
from typing import TypeAlias

import numpy as np

from dpn_plugin.data.samples import Samples, row_bytes
from dpn_plugin.data.spec import ClassRange, SourceSpec
from dpn_plugin.errors import UserError

__all__ = ["Named", "check_no_overlap", "same_source", "shared_images"]

Named: TypeAlias = tuple[str, SourceSpec, Samples | None]
"""What the suite calls a data set, its specification, and its samples once they are loaded."""


def check_no_overlap(outliers: Sequence[Named], tests: Sequence[Named]) -> None:
    """
    Refuse a test set that shares its source, or an image, with the outliers of training.

    Sources are compared first, so a plan can be checked before anything is loaded; images are
    compared where both sides carry samples.

    :param outliers: OOD data used in training
    :param tests: OOD data used in tests
    :raises UserError: naming both sets
    """
    pairs = [(outlier, test) for outlier in outliers for test in tests]
    for (name, spec, _), (test_name, test_spec, _) in pairs:
        if same_source(spec, test_spec):
            raise UserError(
                f"The outliers {name!r} ({spec.name}) and the OOD test set {test_name!r} "
                f"({test_spec.name}) come from one data set. Take another set for one of them, or "
                "classes that differ, given as numbers on both sides or as names on both sides."
            )
    hashes = {id(s): _hashes(s) for _, _, s in [*outliers, *tests] if s is not None}
    for (name, _, samples), (test_name, _, test_samples) in pairs:
        if samples is None or test_samples is None:
            continue
        count = int(np.isin(hashes[id(test_samples)], hashes[id(samples)]).sum())
        if count:
            raise UserError(
                f"{count} of the {len(test_samples)} images of the OOD test set {test_name!r} are "
                f"also in the outliers {name!r}. Take another set for one of them."
            )


def same_source(a: SourceSpec, b: SourceSpec) -> bool:
    """
    :return: whether the two come from one data set and may have a class in common

    The splits of a data set count as one data set: its test images come from the distribution that
    its training images taught. Only the splits of ``synthetic:`` differ, being independent draws
    from a recipe that is the subject of the study.
    """
    if _data_set(a) != _data_set(b):
        return False
    if a.scheme == "synthetic" and (a.split or "train") != (b.split or "train"):
        return False
    return not _disjoint(a.classes, b.classes)


def shared_images(a: Samples, b: Samples) -> int:
    """:return: how many samples of ``b`` are, byte for byte, in ``a``"""
    return int(np.isin(_hashes(b), _hashes(a)).sum())


def _data_set(spec: SourceSpec) -> str:
    argument = posixpath.normpath(spec.argument)
    if spec.scheme in {"torchvision", "pytorch_ood"}:
        argument = argument.partition("/")[0]  # EMNIST/letters is a part of EMNIST
    return f"{spec.scheme}:{argument}"


def _disjoint(a: object, b: object) -> bool:
    if isinstance(a, ClassRange) and isinstance(b, ClassRange):
        low, high = sorted((a, b), key=lambda classes: classes.start)
        return low.stop is not None and low.stop <= high.start
    if isinstance(a, ClassRange):
        a, b = b, a
    if not isinstance(a, tuple):
        return False
    if isinstance(b, ClassRange):
        return all(isinstance(label, int) and not _within(label, b) for label in a)
    # names and numbers cannot be compared without the data, so they do not count as disjoint
    return isinstance(b, tuple) and type(a[0]) is type(b[0]) and not set(a) & set(b)


def _within(label: int, classes: ClassRange) -> bool:
    return classes.start <= label and (classes.stop is None or label < classes.stop)


def _hashes(samples: Samples) -> np.ndarray:
    # 64 bits: among a million images against a million the chance of a false alarm is 5e-8
    digests = b"".join(
        blake2b(row, digest_size=8).digest() for rows in row_bytes(samples.inputs) for row in rows
    )
    return np.frombuffer(digests, dtype=np.uint64)
