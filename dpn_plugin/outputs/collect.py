"""Run a model over a data set, once, alone or together with other processes."""

from collections.abc import Callable, Iterable, Iterator

import torch
from torch import Tensor

from dpn_plugin.training.processes import Processes

__all__ = ["collect", "collect_shares"]


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


def collect_shares(
    mine: Iterator[dict[str, Tensor]], count: int, processes: Processes
) -> Iterator[dict[str, Tensor]]:
    """
    :param mine: what :func:`collect` gives for the batches of this process: of ``world``, every
        one from number ``rank`` on
    :param count: of all batches
    :param processes: this process and the others, all of which must call this
    :return: in the primary process, the outputs of all batches in their order; elsewhere nothing
    """
    for _ in range(0, count, processes.world):
        share = next(mine, None)
        on_cpu = share and {name: tensor.cpu() for name, tensor in share.items()}
        yield from (each for each in processes.to_primary(on_cpu) if each is not None)
