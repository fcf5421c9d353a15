"""Images of a file that are brought to another size when they are read."""

from dataclasses import dataclass, replace

import numpy as np
import torch
import torchvision
from torch import Tensor

from dpn_plugin.data.inputs import MappedImages, StreamedImages
from dpn_plugin.data.origins import ArchiveOrigin
from dpn_plugin.data.transform import fit_batch


@dataclass(frozen=True, eq=False)
class FittedImages:
    """
    Brings images of a mapped file to a size and a number of channels, one by one.

    :param inputs: the file
    :param indices: the positions in it of the chosen images, ``int64``
    :param image_shape: channels, height and width wanted
    """

    inputs: MappedImages
    indices: np.ndarray
    image_shape: tuple[int, int, int]

    @property
    def description(self) -> str:
        """How images are resized: a change of it changes pixels."""
        return f"fitted {self.image_shape} torchvision {torchvision.__version__}"

    def states(self) -> list[bytes]:
        """Return the state of each image."""
        return ArchiveOrigin((str(self.inputs.path),)).states(self.indices.tolist())

    def subset(self, positions: Tensor) -> "FittedImages":
        """Return the images at these positions of this one."""
        return replace(self, indices=self.indices[positions.numpy()])

    def streamed(self, workers: int, hashes: np.ndarray | None = None) -> StreamedImages:
        """Return the images, to be resized by so many worker processes."""
        return StreamedImages(
            len(self.indices), self.image_shape, hashes=hashes, decode=self, workers=workers
        )

    def __call__(self, position: int) -> Tensor:
        """Return the pixels of an image, :math:`C \\times H \\times W` bytes."""
        image = self.inputs.read(torch.tensor([int(self.indices[position])]))
        channels, height, width = self.image_shape
        return fit_batch(image, (height, width), channels)[0]
