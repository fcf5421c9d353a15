"""``openood:BENCHMARK/LIST``: the exact splits of OpenOOD v1.5, by its lists of images."""

from pathlib import Path

from dpn_plugin.data.lazy_images import LazyImages
from dpn_plugin.data.sources import refuse_split
from dpn_plugin.data.sources.image_list import images_of_list
from dpn_plugin.errors import MissingData, unknown_name

_LINK = "https://github.com/Jingkang50/OpenOOD"


def load(argument: str, *, split: str | None, root: Path) -> LazyImages:
    """
    Return the images of one of OpenOOD's lists.

    :param argument: benchmark and list, e.g. ``cifar10/test_tin`` for
        ``benchmark_imglist/cifar10/test_tin.txt``
    :param split: not allowed: every split has a list of its own
    :param root: the folder of ``benchmark_imglist`` and ``images_classic``, as OpenOOD's download
        script creates them
    """
    source = f"openood:{argument}"
    refuse_split(source, split)
    lists, images = Path(root) / "benchmark_imglist", Path(root) / "images_classic"
    known = sorted(str(path.relative_to(lists).with_suffix("")) for path in lists.glob("*/*.txt"))
    if not known or not images.is_dir():
        raise MissingData(
            f"{source} needs the folders benchmark_imglist and images_classic in "
            f"{Path(root).absolute()}. OpenOOD's scripts/download/download.py fetches both: {_LINK}"
        )
    if argument not in known:
        raise unknown_name("OpenOOD list", argument, known)
    return images_of_list(lists / f"{argument}.txt", images, source)
