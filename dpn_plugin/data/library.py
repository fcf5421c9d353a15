"""Where data sets are looked for, and those that were loaded already."""

from pathlib import Path
from typing import Any

from dpn_plugin.data.loading import load
from dpn_plugin.data.samples import Samples
from dpn_plugin.data.spec import SourceSpec

__all__ = ["Library"]


class Library:
    """
    Loads every data set once, however many runs need it.

    :param root: the folder of downloaded data sets
    :param base: where relative paths of sources start; then ``root``
    """

    def __init__(self, root: str | Path, base: str | Path | None = None) -> None:
        self.root, self.base = root, base
        self._loaded: dict[tuple[Any, ...], Samples] = {}

    def load(
        self,
        spec: SourceSpec,
        *,
        image_size: tuple[int, int] | None = None,
        channels: int | None = None,
        in_domain: bool = False,
    ) -> Samples:
        """:return: what :func:`~dpn_plugin.data.load` gives for these arguments"""
        key = (spec.model_dump_json(), image_size, channels, in_domain)
        if key not in self._loaded:
            self._loaded[key] = load(
                spec,
                root=self.root,
                base=self.base,
                image_size=image_size,
                channels=channels,
                in_domain=in_domain,
            )
        return self._loaded[key]

    def load_like(self, samples: Samples, spec: SourceSpec) -> Samples:
        """:return: OOD samples of ``spec``, brought to the size and channels of ``samples``"""
        shape = samples.inputs.shape
        if len(shape) != 4:
            return self.load(spec)
        return self.load(spec, image_size=(shape[2], shape[3]), channels=shape[1])
