"""``openood:BENCHMARK/LIST``: the exact splits of OpenOOD v1.5, by its lists of images."""

import os
from pathlib import Path

from dpn_plugin.data.lazy_images import LazyImages
from dpn_plugin.data.sources import refuse_split
from dpn_plugin.data.sources.image_list import images_of_list
from dpn_plugin.errors import MissingData, unknown_name

#: where lists find their images: small ones, and those of ImageNet and its OOD sets
_IMAGES = ("images_classic", "images_largescale")
_LINK = "https://github.com/Jingkang50/OpenOOD"


def load(argument: str, *, split: str | None, root: Path) -> LazyImages:
    """
    Return the images of one of OpenOOD's lists.

    :param argument: benchmark and list, e.g. ``cifar10/test_tin`` for
        ``benchmark_imglist/cifar10/test_tin.txt``
    :param split: not allowed: every split has a list of its own
    :param root: the folder of ``benchmark_imglist`` and of ``images_classic`` and
        ``images_largescale``, as OpenOOD's download script creates them
    """
    source = f"openood:{argument}"
    refuse_split(source, split)
    lists = Path(root) / "benchmark_imglist"
    known = sorted(str(path.relative_to(lists).with_suffix("")) for path in lists.glob("*/*.txt"))
    folders = [Path(root) / name for name in _IMAGES if (Path(root) / name).is_dir()]
    if not known or not folders:
        raise MissingData(
            f"{source} needs the folders benchmark_imglist and {' or '.join(_IMAGES)} in "
            f"{Path(root).absolute()}. OpenOOD's scripts/download/download.py fetches them: {_LINK}"
        )
    if argument not in known:
        raise unknown_name("OpenOOD list", argument, known)
    path = lists / f"{argument}.txt"
    return images_of_list(path, _image_folder(path, folders), source)


def _image_folder(path: Path, folders: list[Path]) -> Path:
    """
    Return the folder that holds the images of a list.

    No list says which one: those of a benchmark may differ, as the textures of ImageNet do.
    """
    with path.open(encoding="utf-8", errors="replace") as lines:
        first = next((line.rsplit(" ", 1)[0] for line in lines if line.strip()), "")
    return next((each for each in folders if os.path.isfile(each / first)), folders[0])
