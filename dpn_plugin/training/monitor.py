"""Progress of a training."""

from typing import NamedTuple, Protocol

from dpn_plugin.runs import EpochRecord


class StepMetrics(NamedTuple):
    """
    The figures of one training step.

    :param loss: the sum of the next two
    :param loss_in: mean over in-domain samples
    :param loss_out: mean over OOD samples, weighted
    :param accuracy: of the in-domain samples
    """

    loss: float
    loss_in: float
    loss_out: float
    accuracy: float


class TrainingMonitor(Protocol):
    """Receives progress events of a training, e.g. to show a progress bar."""

    def started(self, steps: int, done: int) -> None:
        """Training of a network starts; ``done`` of its ``steps`` were done before."""

    def stepped(self, images: int, metrics: StepMetrics) -> None:
        """A step is done, on that many images of all processes."""

    def finished_epoch(self, epoch: EpochRecord) -> None:
        """An epoch is done."""


class SilentMonitor:
    """Ignores all progress events."""

    def started(self, steps: int, done: int) -> None:
        """Ignore the event."""

    def stepped(self, images: int, metrics: StepMetrics) -> None:
        """Ignore the event."""

    def finished_epoch(self, epoch: EpochRecord) -> None:
        """Ignore the event."""
