"""Data sets that a user's own loaders give, with the outputs of a model in memory."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from dpn_plugin.errors import UserError, UserTypeError

#: gives the outputs of a batch by name
OutputFunction = Callable[[Tensor], dict[str, Tensor]]
Arrays = dict[str, np.ndarray]


class LoadedSet:
    """
    The samples of a loader. They pass through the model once; their outputs stay in memory.

    :param name: for messages, e.g. ``"in_domain"`` or ``"ood['svhn']"``
    :param loader: gives pairs of inputs and labels, anew whenever it is iterated over
    :param device: where the model is
    :param shape: of one input, if it is known
    :param kind: ``"in_domain"`` leaves out samples with labels below 0; ``"ood"`` leaves out the
        others, if there are labels below 0; ``"mixed"`` keeps all
    :raises UserTypeError: if the loader can be iterated over only once, or not at all
    """

    def __init__(
        self,
        name: str,
        loader: Iterable[Any],
        device: torch.device,
        shape: tuple[int, ...] | None = None,
        kind: Literal["in_domain", "ood", "mixed"] = "mixed",
    ) -> None:
        if not isinstance(loader, Iterable) or isinstance(loader, Iterator):
            raise UserTypeError(
                f"{name} must be a loader of pairs (inputs, labels) that can be iterated over "
                f"several times, such as a DataLoader or a list, not a {type(loader).__name__}."
            )
        self.name, self.loader, self.device = name, loader, device
        self.shape, self.kind = shape, kind
        self.arrays: Arrays = {}
        self._marks_ood = False  # whether there are labels below 0
        self._checksums: list[float] = []

    def first_batch(self) -> Tensor:
        """
        Return the inputs of the first batch, on the device, and remember their shape.

        :raises UserError: if there is none
        """
        x, _ = next(self._pairs(), (None, None))
        if x is None:
            raise UserError(f"{self.name} is empty.")
        self.shape = tuple(x.shape[1:])
        return x

    def compute(self, outputs: OutputFunction) -> Arrays:
        """
        Pass all samples through a model, and return and keep its outputs and the labels.

        :param outputs: gives the outputs of a batch
        :raises UserError: if batches are of other shapes, or there are no samples
        """
        parts: list[dict[str, Tensor]] = []
        for x, y in self._pairs():
            self._checksums.append(_checksum(x, y))
            with torch.inference_mode():
                found = {name: each.float().cpu() for name, each in outputs(x).items()}
            parts.append({**found, "labels": y})
        if not parts:
            raise UserError(f"{self.name} is empty.")
        names = parts[0]
        whole = {name: torch.cat([part[name] for part in parts]).numpy() for name in names}
        self._marks_ood = bool((whole["labels"] < 0).any())
        kept = self._kept(torch.from_numpy(whole["labels"])).numpy()
        if not kept.any():
            raise UserError(f"{self.name} has no samples that can be used.")
        self.arrays = whole if kept.all() else {name: each[kept] for name, each in whole.items()}
        if self.kind == "ood":  # the labels of another data set say nothing here
            self.arrays["labels"] = np.full(len(self.arrays["labels"]), -1)
        return self.arrays

    def batches(self, same_order: bool = True) -> Callable[[], Iterator[tuple[Tensor, Tensor]]]:
        """
        Return a function that gives the samples again, batch by batch.

        :param same_order: refuse samples that are not those of :meth:`compute`, in its order
        """

        def again() -> Iterator[tuple[Tensor, Tensor]]:
            for index, (x, y) in enumerate(self._pairs()):
                if same_order and self._checksums[index : index + 1] != [_checksum(x, y)]:
                    raise UserError(
                        f"{self.name} gives other samples when it is iterated over again; use "
                        "shuffle=False and no random augmentation."
                    )
                kept = self._kept(y)
                if kept.any():
                    yield (x, y) if kept.all() else (x[kept.to(x.device)], y[kept])

        return again

    def _kept(self, labels: Tensor) -> Tensor:
        if self.kind == "in_domain":
            return labels >= 0
        if self.kind == "ood" and self._marks_ood:
            return labels < 0
        return torch.ones_like(labels, dtype=torch.bool)

    def _pairs(self) -> Iterator[tuple[Tensor, Tensor]]:
        for batch in self.loader:
            if not isinstance(batch, tuple | list) or len(batch) != 2:
                raise UserTypeError(
                    f"{self.name} must give pairs (inputs, labels), not {_describe(batch)}."
                )
            x, y = batch[0], torch.as_tensor(batch[1])
            self._check(x, y)
            if len(y):
                yield x.to(self.device), y.cpu().long()

    def _check(self, x: Any, y: Tensor) -> None:
        if not isinstance(x, Tensor):
            raise UserTypeError(f"The inputs of {self.name} must be tensors, not {_describe(x)}.")
        if y.ndim != 1 or y.is_floating_point() or len(y) != len(x):
            raise UserError(
                f"The labels of {self.name} must be whole numbers, one for each of {len(x)} "
                f"inputs, not {y.dtype} of shape {tuple(y.shape)}."
            )
        if self.shape is not None and tuple(x.shape[1:]) != self.shape:
            raise UserError(
                f"{self.name} gives inputs of shape {tuple(x.shape[1:])}; those before were "
                f"{self.shape}."
            )


def _checksum(x: Tensor, y: Tensor) -> float:
    return float(x.sum(dtype=torch.float64)) + 1e-3 * float((y * torch.arange(1, len(y) + 1)).sum())


def _describe(value: Any) -> str:
    if isinstance(value, tuple | list):
        return f"a {type(value).__name__} of {len(value)}"
    return f"a {type(value).__name__}"
