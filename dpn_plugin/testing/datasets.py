"""The rules of a data source."""

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dpn_plugin.data import Samples, SourceSpec, fingerprint
from dpn_plugin.data.undecoded import Undecoded
from dpn_plugin.errors import UserError
from dpn_plugin.plugins.options import takes
from dpn_plugin.testing.rules import Check, CheckFailed, CheckSkipped, bound, require

__all__ = ["DatasetCase", "dataset_checks"]

#: how many images of a source that reads files are decoded
FEW = 8
#: what images are brought to, and what sources that make images up are asked for
HINTS: dict[str, Any] = {"base": None, "image_size": (8, 8), "channels": 1}


class DatasetCase:
    """
    :param spec: a source that the loader knows
    :param loader: of the source's scheme
    :param root: the folder of downloaded data sets
    :param base: where relative paths start
    """

    def __init__(
        self, spec: SourceSpec, loader: Callable[..., Any], root: Path, base: Path | None = None
    ) -> None:
        self.spec = spec
        self.loader = loader
        self.root = root
        self.hints = {**HINTS, "base": base}

    def load(self, **changes: Any) -> Any:
        """:return: what the loader gives"""
        given = {"argument": self.spec.argument, "split": self.spec.split, **changes}
        hints = {name: each for name, each in self.hints.items() if takes(self.loader, name)}
        options = {"root": self.root, **hints, **self.spec.options}
        return self.loader(given["argument"], split=given["split"], **options)

    @cached_property
    def found(self) -> Any:
        """What the loader gives; data that has to be fetched first cannot be checked."""
        try:
            return self.load()
        except UserError as missing:
            raise CheckSkipped(str(missing)) from None

    @property
    def labels(self) -> Tensor:
        """All labels."""
        return self.found.labels if isinstance(self.found, Samples) else self.found.all_labels()


def gives_samples(case: DatasetCase) -> None:
    """The loader returns dpn_plugin.data.Samples, or Undecoded for images that are files."""
    require(
        isinstance(case.found, Samples | Undecoded),
        f"the loader gave a {type(case.found).__name__}",
        "Return dpn_plugin.data.Samples(inputs, labels, name, classes)",
    )
    require(len(case.found) > 0, "the source is empty", "Raise UserError where nothing was found")


def gives_the_same_samples_again(case: DatasetCase) -> None:
    """Two calls give the same samples in the same order."""
    require(
        _digest(case.found) == _digest(case.load()),
        "a second call gave other samples",
        "Seed the generator from an argument, and sort the names of files",
    )


def has_a_name_for_every_label(case: DatasetCase) -> None:
    """Where classes have names, every label is the place of one."""
    labels, names = case.labels, case.found.classes
    require(labels.dtype == torch.int64, f"labels are {labels.dtype}", "Use torch.int64")
    if names:
        largest = int(labels.max())
        require(
            largest < len(names),
            f"label {largest} has no name among {len(names)} classes",
            "Give as many names as there are labels, or none",
        )


def can_be_cut_to_classes(case: DatasetCase) -> None:
    """Where there are labels, the samples of one class can be taken."""
    label = int(case.labels.max())
    if label < 0:
        raise CheckSkipped("it has no labels: OOD data alone")
    chosen = torch.nonzero(case.labels == label).flatten()[:FEW]
    taken = _taken(case.found, chosen)
    require(
        bool((taken.labels == label).all()),
        f"samples of class {label} have the labels {sorted(set(taken.labels.tolist()))}",
        "Let read(i) of Undecoded give the label that labels[i] has",
    )


def refuses_unknown_arguments(case: DatasetCase) -> None:
    """What stands behind the colon is checked, and the message is for users."""
    scheme = case.spec.scheme
    try:
        case.load(argument="no-such-argument")
    except UserError:
        return
    except Exception as error:
        seen = f"{scheme}:no-such-argument raised {type(error).__name__}"
        raise CheckFailed(
            f"{seen}. Raise dpn_plugin.errors.UserError with what is allowed."
        ) from error
    raise CheckFailed(f"{scheme}:no-such-argument was accepted. Raise UserError for unknown names.")


RULES = (
    gives_samples,
    gives_the_same_samples_again,
    has_a_name_for_every_label,
    can_be_cut_to_classes,
    refuses_unknown_arguments,
)


def dataset_checks(case: DatasetCase) -> list[Check]:
    """:return: the checks of one source, e.g. ``sklearn:digits``"""
    return bound(f"data source {case.spec.name}", RULES, case)


def _taken(found: Samples | Undecoded, indices: Tensor) -> Samples:
    if isinstance(found, Samples):
        return found.subset(indices)
    return found.decoded(indices, HINTS["image_size"], HINTS["channels"])


def _digest(found: Samples | Undecoded) -> str:
    if isinstance(found, Samples):
        return fingerprint(found)
    return fingerprint(_taken(found, torch.arange(min(FEW, len(found)))))
