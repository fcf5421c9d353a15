"""What happens to a batch between memory and network, the same way for training and testing."""

from dataclasses import asdict, dataclass
from typing import Any

from torch import Tensor
from torch.nn import functional as F

from dpn_plugin.data.normalize import to_float

__all__ = ["Transform"]


@dataclass(frozen=True)
class Transform:
    """
    Resize where the network needs another size than the data has, then normalise.

    Images stay at their own size in memory; a batch is resized on its way to the network.

    :param mean: one for each channel (or coordinate)
    :param std: one for each channel (or coordinate)
    :param size: height and width that the network takes; ``None`` for points
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]
    size: tuple[int, int] | None = None

    def __call__(self, batch: Tensor) -> Tensor:
        """
        :param batch: ``uint8`` images (or ``float32`` points), on any device
        :return: ``float32``, ready for the network
        """
        x = to_float(batch, self.mean, self.std)
        if self.size is None or tuple(x.shape[2:]) == self.size:
            return x
        return F.interpolate(x, self.size, mode="bilinear", antialias=True, align_corners=False)

    def description(self) -> dict[str, Any]:
        """:return: what identifies it, for hashes and records"""
        return asdict(self)
