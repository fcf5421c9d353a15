"""``hf:PATH``: a data set of Hugging Face ``datasets`` in a local folder; nothing is downloaded."""

import io
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from dpn_plugin.data.image_files import open_image
from dpn_plugin.data.lazy_images import LazyImages
from dpn_plugin.data.origins import ArchiveOrigin
from dpn_plugin.data.sources import find_path, refuse_split
from dpn_plugin.data.sources.dataset_adapter import check_length
from dpn_plugin.errors import MissingData, UserError, choices, unknown_name


def load(
    argument: str,
    *,
    split: str | None,
    root: Path,
    base: str | Path | None = None,
    image: str | None = None,
    label: str | None = None,
) -> LazyImages:
    """
    Return the images of a data set that ``save_to_disk`` wrote, or of Parquet files.

    :param argument: path of the folder, or of one ``.parquet`` file
    :param split: of a data set that has several, e.g. ``"train"``; with Parquet files, those whose
        names begin with it
    :param root: folder of downloaded data sets
    :param base: where relative paths start; then ``root``
    :param image: the column of the images; the first that holds images if not given
    :param label: the column of the labels; the first that holds classes if not given
    :raises MissingData: if the path, or the package ``datasets``, is missing
    :raises UserError: if the data is damaged, or has no such split or column
    """
    source = f"hf:{argument}"
    path = find_path("hf", argument, root, base)
    try:
        import datasets
    except ImportError as error:
        raise MissingData(f"{source} needs a package: pip install 'dpn-plugin[hf]'") from error
    try:
        found, files = _open(datasets, path, split, source)
    except UserError:
        raise
    # a damaged file makes datasets and pyarrow raise all kinds of errors
    except Exception as error:
        raise UserError(f"{source}: {path} cannot be read: {error}") from error
    check_length(found, source)
    image = _image_column(datasets, found, image, source)
    label = _label_column(datasets, found, label, source)
    encoded = found.cast_column(image, datasets.Image(decode=False))
    labels = None if label is None else _labels(found, label, source)
    return LazyImages(
        _Reader(encoded, image, labels, source),
        len(found),
        source,
        torch.full((len(found),), -1) if labels is None else labels,
        tuple(getattr(found.features.get(label), "names", None) or ()),
        unlabelled="" if label else f"{path} has no column of classes; give label=COLUMN",
        origin=ArchiveOrigin(tuple(files)),
    )


def _open(datasets: Any, path: Path, split: str | None, source: str) -> tuple[Any, list[str]]:
    """Return the data set and its files."""
    parquet = _parquet_files(path, split)
    if parquet:
        return datasets.Dataset.from_parquet(parquet), parquet
    found = datasets.load_from_disk(str(path))
    if isinstance(found, datasets.DatasetDict):
        if split is None and len(found) > 1:
            raise UserError(f"{source} has several splits: give split, {choices(found)}.")
        split = split or next(iter(found))
        if split not in found:
            raise unknown_name(f"split of {source}:", split, found)
        found = found[split]
    else:
        refuse_split(source, split)
    return found, [each["filename"] for each in found.cache_files]


def _parquet_files(path: Path, split: str | None) -> list[str]:
    if path.suffix == ".parquet":
        return [str(path)]
    return sorted(str(each) for each in path.rglob(f"{split or ''}*.parquet"))


def _image_column(datasets: Any, found: Any, name: str | None, source: str) -> str:
    features = found.features.items()
    known = [each for each, kind in features if isinstance(kind, datasets.Image)]
    if name is None and known:
        return known[0]
    if name is not None and name in known:
        return name
    if name is not None:
        raise unknown_name(f"column of {source}:", name, known or found.features)
    raise UserError(f"{source} has no column of images, only {_list(found.features)}.")


def _label_column(datasets: Any, found: Any, name: str | None, source: str) -> str | None:
    features = found.features
    if name is not None:
        if name not in features:
            raise unknown_name(f"column of {source}:", name, features)
        return name
    known = [each for each, kind in features.items() if isinstance(kind, datasets.ClassLabel)]
    return next(iter(known), "label" if "label" in features else None)


def _labels(found: Any, name: str, source: str) -> Tensor:
    values = np.asarray(found.select_columns([name]).with_format("numpy")[:][name])
    if values.dtype.kind not in "iu" or values.ndim != 1:
        raise UserError(
            f"{source}: the column {name!r} must hold whole numbers, one for each image."
        )
    return torch.from_numpy(values.astype(np.int64))


@dataclass(frozen=True, eq=False)
class _Reader:
    """Reads the image and the label of a position, in this process or in a worker."""

    encoded: Any
    image: str
    labels: Tensor | None
    source: str

    def __call__(self, index: int) -> tuple[Image.Image, int]:
        label = -1 if self.labels is None else int(self.labels[index])
        try:
            found = self.encoded[index][self.image]
            content = found["path"] if found["bytes"] is None else io.BytesIO(found["bytes"])
        except Exception as error:  # any error of pyarrow, or of a column that is empty here
            raise UserError(f"{self.source}: image {index} cannot be read: {error}") from error
        return open_image(content, f"{self.source}: image {index}"), label


def _list(names: Iterable[str]) -> str:
    return ", ".join(names) or "nothing"
