"""Whether two specifications name the same data, before anything is loaded."""

import posixpath

from dpn_plugin.data.shifts import clean_spec
from dpn_plugin.data.spec import ClassRange, SourceSpec


def same_data_set(a: SourceSpec, b: SourceSpec) -> bool:
    """Return whether the two come from one data set, any split, and may share a class."""
    return _data_set(a) == _data_set(b) and not _disjoint(a.classes, b.classes)


def same_source(a: SourceSpec, b: SourceSpec) -> bool:
    """
    Return whether the two come from one data set and may have a class in common.

    The splits of a data set count as one data set: its test images have the distribution of its
    training images. Only the splits of ``synthetic:`` count as different sets, since they are
    independent draws from a distribution that is itself the subject of the study.
    """
    if a.scheme == "synthetic" and (a.split or "train") != (b.split or "train"):
        return False
    return same_data_set(a, b)


def _data_set(spec: SourceSpec) -> str:
    spec = clean_spec(spec)
    if spec.scheme in {"torchvision", "pytorch_ood"}:
        return _path(spec).partition("/")[0]  # EMNIST/letters is a part of EMNIST
    return _path(spec)


def same_part(a: SourceSpec, b: SourceSpec) -> bool:
    """Return whether two specifications differ at most in the limit, or in some of the classes."""
    a, b = clean_spec(a), clean_spec(b)
    same = (_path(a), a.split, a.options) == (_path(b), b.split, b.options)
    return same and not _disjoint(a.classes, b.classes)


def _path(spec: SourceSpec) -> str:
    return f"{spec.scheme}:{posixpath.normpath(spec.argument)}"


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
