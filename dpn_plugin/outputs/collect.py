"""Run a model over a data set, once."""

from collections.abc import Callable, Iterable, Iterator

import torch
from torch import Tensor

__all__ = ["collect"]


def collect(
    forward: Callable[[Tensor], dict[str, Tensor]],
    batches: Iterable[tuple[Tensor, Tensor]],
    device: torch.device | str = "cpu",
) -> Iterator[dict[str, Tensor]]:
    """
    :param forward: gives named outputs, e.g. ``logits`` and ``features``, each with B rows; the
        model behind it is in evaluation mode, unless its dropout is wanted
    :param batches: pairs of inputs and labels
    :param device: where ``forward`` wants its inputs
    :return: the outputs of one batch after the other, and its ``labels``
    """
    for x, labels in batches:
        # around the call alone: a mode held across ``yield`` would leak into the caller
        with torch.inference_mode():
            outputs = forward(x.to(device))
        yield {**outputs, "labels": labels}
