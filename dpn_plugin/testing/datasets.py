"""The rules of a data source."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dpn_plugin.data import LazyImages, Samples, SourceSpec, fingerprint
from dpn_plugin.errors import UserError
from dpn_plugin.plugins import takes
from dpn_plugin.testing.checks import Check, CheckFailed, CheckSkipped, checks_of, require

#: how many images of a source that reads files are decoded
FEW = 8
#: the size that images are resized to, and that sources which generate images are asked for
HINTS: dict[str, Any] = {"base": None, "image_size": (8, 8), "channels": 1}


class DatasetCase:
    """
    A data source under test.

    :param spec: a source that the loader can load
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
        self._loaded_once = cache(self.load)

    def load(self, **changes: Any) -> Any:
        """Call the loader and return its result."""
        given = {"argument": self.spec.argument, "split": self.spec.split, **changes}
        hints = {name: each for name, each in self.hints.items() if takes(self.loader, name)}
        options = {"root": self.root, **hints, **self.spec.options}
        return self.loader(given["argument"], split=given["split"], **options)

    def samples(self) -> Any:
        """Return the result of the loader; skip the check if data has to be downloaded first."""
        try:
            return self._loaded_once()
        except UserError as missing:
            raise CheckSkipped(str(missing)) from None

    def labels(self) -> Tensor:
        """Return all labels."""
        found = self.samples()
        return found.labels if isinstance(found, Samples) else found.read_labels()


def gives_samples(case: DatasetCase) -> None:
    """The loader returns dpn_plugin.data.Samples, or LazyImages for images in files."""
    found = case.samples()
    require(
        isinstance(found, Samples | LazyImages),
        f"the loader returned a {type(found).__name__}",
        "Return dpn_plugin.data.Samples(inputs, labels, name, classes)",
    )
    require(len(found) > 0, "the source is empty", "Raise UserError where nothing was found")


def gives_the_same_samples_again(case: DatasetCase) -> None:
    """Two calls give the same samples in the same order."""
    require(
        _digest(case.samples()) == _digest(case.load()),
        "a second call returned other samples",
        "Seed the generator from an argument, and sort the names of files",
    )


def has_a_name_for_every_label(case: DatasetCase) -> None:
    """Where classes have names, every label is the index of one."""
    labels, names = case.labels(), case.samples().classes
    require(labels.dtype == torch.int64, f"labels are {labels.dtype}", "Use torch.int64")
    if names:
        largest = int(labels.max())
        require(
            largest < len(names),
            f"label {largest} has no name among {len(names)} classes",
            "Give as many names as there are labels, or none",
        )


def can_be_cut_to_classes(case: DatasetCase) -> None:
    """Where there are labels, the samples of one class can be selected."""
    labels = case.labels()
    label = int(labels.max())
    if label < 0:
        raise CheckSkipped("it has no labels: it can only be used as OOD data")
    indices = torch.nonzero(labels == label).flatten()[:FEW]
    chosen = _subset(case.samples(), indices)
    require(
        bool((chosen.labels == label).all()),
        f"samples of class {label} have the labels {sorted(set(chosen.labels.tolist()))}",
        "Let read(i) of LazyImages give the label that labels[i] has",
    )


def refuses_unknown_arguments(case: DatasetCase) -> None:
    """An unknown argument behind the colon raises UserError."""
    scheme = case.spec.scheme
    try:
        case.load(argument="no-such-argument")
    except UserError:
        return
    except Exception as error:
        observed = f"{scheme}:no-such-argument raised {type(error).__name__}"
        raise CheckFailed(
            f"{observed}. Raise dpn_plugin.errors.UserError with what is allowed."
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
    """Return the checks of one source, e.g. ``sklearn:digits``."""
    return checks_of(f"data source {case.spec.name}", RULES, case)


def _subset(found: Samples | LazyImages, indices: Tensor) -> Samples:
    if isinstance(found, Samples):
        return found.subset(indices)
    return found.decode(indices, HINTS["image_size"], HINTS["channels"])


def _digest(found: Samples | LazyImages) -> str:
    if isinstance(found, Samples):
        return fingerprint(found)
    return fingerprint(_subset(found, torch.arange(min(FEW, len(found)))))
