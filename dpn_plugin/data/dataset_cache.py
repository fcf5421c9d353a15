"""The data sets of a benchmark or a training, each loaded once."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from dpn_plugin.data.inputs import MappedImages
from dpn_plugin.data.loading import Selection, select, taken_hints
from dpn_plugin.data.samples import Samples
from dpn_plugin.data.spec import SourceSpec
from dpn_plugin.data.storage import ImageStore, StorageOptions
from dpn_plugin.plugins import registry

SharedSets: TypeAlias = Mapping[tuple[Any, ...], Samples]
"""Data sets in mapped files, which one process can hand to another without their pixels."""


class DatasetCache:
    """
    Loads every data set once, however many runs use it.

    :param root: the folder of downloaded data sets
    :param base: where relative paths of sources start; then ``root``
    :param storage: where images are kept
    :param shared: what :attr:`shared` of another process gave
    """

    def __init__(
        self,
        root: str | Path,
        base: str | Path | None = None,
        storage: StorageOptions | None = None,
        shared: SharedSets | None = None,
    ) -> None:
        self.root, self.base = root, base
        self._store = ImageStore(storage or StorageOptions())
        self._loaded: dict[tuple[Any, ...], Samples] = dict(shared or {})
        self._selected: dict[tuple[Any, ...], Selection] = {}

    def find(
        self,
        spec: SourceSpec,
        *,
        image_size: tuple[int, int] | None = None,
        channels: int | None = None,
        in_domain: bool = False,
    ) -> None:
        """
        Check that a data set is there, without decoding its images; :meth:`load` continues there.

        :raises MissingData: if it is not
        :raises UserError: if it is damaged, or empty after filtering
        """
        hints = {"base": self.base, "image_size": image_size, "channels": channels}
        key = self._key(spec, hints, in_domain)
        if key not in self._selected and not self._is_loaded(spec, in_domain):
            self._selected[key] = select(spec, Path(self.root), hints, in_domain)

    def load(
        self,
        spec: SourceSpec,
        *,
        image_size: tuple[int, int] | None = None,
        channels: int | None = None,
        in_domain: bool = False,
    ) -> Samples:
        """Return what :func:`load` gives for these arguments."""
        key = (spec.model_dump_json(), image_size, channels, in_domain)
        if key not in self._loaded:
            self.find(spec, image_size=image_size, channels=channels, in_domain=in_domain)
            hints = {"base": self.base, "image_size": image_size, "channels": channels}
            selected = self._key(spec, hints, in_domain)
            if selected not in self._selected:  # it is loaded at another size
                self._selected[selected] = select(spec, Path(self.root), hints, in_domain)
            selection = self._selected.pop(selected)
            self._loaded[key] = selection.read(image_size, channels, self._store)
        return self._loaded[key]

    @property
    def shared(self) -> SharedSets:
        """The data sets that lie in mapped files, which another process need not load again."""
        found = self._loaded.items()
        return {key: each for key, each in found if isinstance(each.inputs, MappedImages)}

    def _is_loaded(self, spec: SourceSpec, in_domain: bool) -> bool:
        text = spec.model_dump_json()
        return any(key[0] == text and key[-1] == in_domain for key in self._loaded)

    def forget_found(self) -> None:
        """Release the memory of data sets that were found and not loaded."""
        self._selected.clear()

    def _key(self, spec: SourceSpec, hints: dict[str, Any], in_domain: bool) -> tuple[Any, ...]:
        # most sources do not depend on the image size, which is known once training data is loaded
        taken = taken_hints(registry.load("datasets", spec.scheme), hints)
        return (spec.model_dump_json(), *taken.values(), in_domain)

    def load_like(self, samples: Samples, spec: SourceSpec, *, in_domain: bool = False) -> Samples:
        """
        Return the data of ``spec``, brought to the image size and channels of ``samples``.

        :param samples: data that was loaded before, e.g. the training data
        :param spec: what to load
        :param in_domain: keep labels, as in :func:`load`; otherwise all samples are OOD
        """
        shape = samples.inputs.shape
        if len(shape) != 4:
            return self.load(spec, in_domain=in_domain)
        image_size = (shape[2], shape[3])
        return self.load(spec, image_size=image_size, channels=shape[1], in_domain=in_domain)
