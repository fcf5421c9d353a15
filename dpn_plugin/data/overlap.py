"""The checks that no sample is used twice: for training and testing, or as in-domain and OOD."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

import numpy as np

from dpn_plugin.data.hashes import short_hashes
from dpn_plugin.data.same_source import same_data_set, same_part, same_source
from dpn_plugin.data.samples import Samples
from dpn_plugin.data.shifts import clean_spec
from dpn_plugin.data.spec import SourceSpec
from dpn_plugin.errors import UserError

NamedData: TypeAlias = tuple[str, SourceSpec, Samples | None]
"""The name of a data set in the suite, its specification, and its samples once they are loaded."""

#: real data sets contain exact duplicates; a larger share of the test data is a mistake
TOLERATED_SHARE = 0.01


@dataclass(frozen=True, eq=False)
class _Part:
    """A data set of a suite, with its name in messages."""

    title: str
    spec: SourceSpec
    samples: Samples | None
    in_domain: bool = False
    is_test: bool = False


def check_no_overlap(
    outliers: Sequence[NamedData],
    tests: Sequence[NamedData],
    in_domain: Sequence[NamedData] = (),
) -> None:
    """
    Raise if in-domain data, training outliers and OOD test sets share their source or an image.

    Sources are compared first, so a plan can be checked before anything is loaded; images are
    compared where both sets are loaded. Samples that are held out or kept for calibration are a
    part of the in-domain data or of the outliers, and are compared with them.

    :param outliers: OOD data used in training
    :param tests: OOD data used in tests
    :param in_domain: in-domain data for training and for tests
    :raises UserError: naming both sets
    """
    pairs = [*_ood_pairs(outliers, tests, in_domain)]
    for part, other in pairs:
        if _same_source(part, other):
            raise UserError(
                f"{_capitalised(part.title)} ({part.spec.name}) and {other.title} "
                f"({other.spec.name}) come from one data set. Take another set for one of them, or "
                "classes that differ, given as numbers on both sides or as names on both sides."
            )
    sets = {id(s): s for pair in pairs for s in (pair[0].samples, pair[1].samples) if s is not None}
    hashes = {key: short_hashes(samples) for key, samples in sets.items()}
    for part, other in pairs:
        if part.samples is None or other.samples is None:
            continue
        count = _shared(hashes[id(part.samples)], hashes[id(other.samples)])
        if count:
            raise UserError(
                f"{count} of the {len(other.samples)} {noun(other.samples)} of {other.title} are "
                f"also in {part.title}. Take another set for one of them{_or_drop(part, other)}."
            )


def check_in_domain_test(
    in_domain: SourceSpec,
    test: SourceSpec | None,
    samples: tuple[Samples, Samples] | None = None,
) -> None:
    """
    Raise if the in-domain test data was trained on; warn if it has a few such images.

    :param in_domain: the training data
    :param test: the test data; ``None`` if it is kept back from ``in_domain``
    :param samples: both, once they are loaded: for training and for tests
    :raises UserError: if both are the same part of a source, or if more than 1 % of the test
        samples are also training samples
    """
    if test is not None and same_part(in_domain, test):
        raise UserError(
            f"'in_domain' and 'in_domain_test' are the same part of {in_domain.name}, so the "
            "accuracy would be that on training data. Take another split or file for "
            f"'in_domain_test', or {_LEAVE_OUT}."
        )
    if samples is None:
        return
    train, tested = samples
    count = shared_images(train, tested)
    if not count:
        return
    found, remedy = _duplicates(in_domain, test, count, tested)
    if count > TOLERATED_SHARE * len(tested):
        raise UserError(f"{found}: their accuracy says nothing. {remedy}.")
    warnings.warn(f"{found}, so the accuracy is slightly too high. {remedy}.")


def check_calibration(calibration: NamedData, others: Sequence[NamedData]) -> None:
    """
    Raise if calibration data was trained on or is test data; warn if it has a few such images.

    :param calibration: the calibration data
    :param others: in-domain data for training and for tests
    :raises UserError: if they are the same part of a source, or if more than 1 % of the calibration
        samples are also in another set
    """
    name, spec, samples = calibration
    for other, other_spec, other_samples in others:
        if same_part(spec, other_spec):
            raise UserError(
                f"{name!r} and {other!r} are the same part of {spec.name}, so thresholds would not "
                f"keep their promise. Take another split or file for {name!r}, or set a share of "
                "the training data aside: calibration = 0.1 in [train]."
            )
        if samples is not None and other_samples is not None:
            _compare_calibration((name, samples), (other, other_samples))


def check_shift(shift: NamedData, in_domain: NamedData, tested: bool = True) -> None:
    """
    Raise if a shifted set is made of training data; warn if it has a few such images.

    :param shift: a set of ``[shift]`` with its samples before they were corrupted, once loaded
    :param in_domain: the in-domain training data
    :param tested: whether the suite names in-domain test data, which the set can be made of
    :raises UserError: if both are the same part of a source, or if more than 1 % of the samples
        of the shifted set are also training samples
    """
    name, spec, samples = shift
    _, train_spec, train = in_domain
    remedy = "Make it of the in-domain test data" + (
        "." if tested else ": name some in [in_domain_test]."
    )
    if same_part(spec, train_spec):
        raise UserError(
            f"{name!r} is made of the training data 'in_domain' ({train_spec.name}), so its "
            f"accuracy would be that on training data. {remedy}"
        )
    if samples is None or train is None:
        return
    count = shared_images(train, samples)
    found = (
        f"{count} of the {len(samples)} {noun(samples)} that {name!r} is made of "
        f"({clean_spec(spec).name}) are also in the training data 'in_domain'"
    )
    if count > TOLERATED_SHARE * len(samples):
        raise UserError(f"{found}: their accuracy says nothing. {remedy}")
    if count:
        warnings.warn(f"{found}, so the accuracy is slightly too high. {remedy}")


def check_set_aside(calibration: Samples, rest: Sequence[Samples]) -> None:
    """
    Warn if calibration samples that were set aside are, as duplicates, also trained on.

    :param calibration: the samples that were set aside
    :param rest: the other samples of the same data
    """
    count = sum(shared_images(each, calibration) for each in rest)
    if count:
        warnings.warn(
            f"{count} of the {len(calibration)} {noun(calibration)} of {calibration.name} that "
            "are set aside for calibration are duplicates of training data, so thresholds reject "
            "slightly more than they promise. Remove the duplicates."
        )


def _compare_calibration(calibration: tuple[str, Samples], other: tuple[str, Samples]) -> None:
    (name, samples), (other_name, other_samples) = calibration, other
    count = shared_images(other_samples, samples)
    found = f"{count} of the {len(samples)} {noun(samples)} of {name!r} are also in {other_name!r}"
    if count > TOLERATED_SHARE * len(samples):
        raise UserError(f"{found}: thresholds would not keep their promise. Take other data.")
    if count:
        warnings.warn(f"{found}. Remove them from one of the two.")


_DROP = 'set overlap = "drop" in the suite, which removes them from the test set'
_LEAVE_OUT = "leave it out: then a fifth of 'in_domain' is kept back for tests"


def _duplicates(
    in_domain: SourceSpec, test: SourceSpec | None, count: int, samples: Samples
) -> tuple[str, str]:
    """Return what is shared and how to avoid it."""
    share = f"{count} of the {len(samples)} {noun(samples)} ({count / len(samples):.1%})"
    if test is None:
        kept_back = f"{share} that are kept back from 'in_domain' ({in_domain.name}) for tests"
        return f"{kept_back} are also among its training data", f"Remove its duplicates, or {_DROP}"
    return (
        f"{share} of 'in_domain_test' ({test.name}) are also in the training data 'in_domain' "
        f"({in_domain.name})",
        f"Remove them from one of the two, {_DROP}, take another 'in_domain_test', or {_LEAVE_OUT}",
    )


def outliers_title(name: str) -> str:
    """Return what messages call a set of training outliers."""
    return f"the outliers {name!r}"


def ood_test_title(name: str) -> str:
    """Return what messages call an OOD test set."""
    return f"the OOD test set {name!r}"


def in_domain_title(name: str) -> str:
    """Return what messages call ``in_domain`` or ``in_domain_test``."""
    return f"the in-domain data {name!r}"


def _ood_pairs(
    outliers: Sequence[NamedData], tests: Sequence[NamedData], in_domain: Sequence[NamedData]
) -> Iterator[tuple[_Part, _Part]]:
    for_training = [_Part(outliers_title(name), a, b) for name, a, b in outliers]
    for_tests = [_Part(ood_test_title(name), a, b, is_test=True) for name, a, b in tests]
    known = [
        _Part(in_domain_title(name), a, b, in_domain=True, is_test=name == "in_domain_test")
        for name, a, b in in_domain
    ]
    yield from product(for_training, for_tests)
    yield from product(known, [*for_training, *for_tests])


def _same_source(part: _Part, other: _Part) -> bool:
    if part.in_domain:  # another draw from the in-domain distribution is not OOD
        return same_data_set(part.spec, other.spec)
    return same_source(part.spec, other.spec)


def shared_images(a: Samples, b: Samples) -> int:
    """Return how many samples of ``b`` are, byte for byte, in ``a``."""
    return _shared(short_hashes(a), short_hashes(b))


def _shared(a: np.ndarray, b: np.ndarray) -> int:
    return int(np.isin(b, a).sum())


def _or_drop(*parts: _Part) -> str:
    """Return the other way out, if one of the sets can lose samples: a test set."""
    return f", or {_DROP}" if any(part.is_test for part in parts) else ""


def noun(samples: Samples) -> str:
    """Return what messages call the samples."""
    return "images" if samples.inputs.ndim == 4 else "points"


def _capitalised(text: str) -> str:
    return text[0].upper() + text[1:]
