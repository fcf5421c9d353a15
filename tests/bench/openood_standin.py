"""A stand-in of OpenOOD's ImageNet data: its folders and image lists with a few tiny JPEG files."""

from pathlib import Path

import numpy as np
from PIL import Image

_OOD = {
    "test_ssb_hard": ("images_largescale", "ssb_hard"),
    "test_ninco": ("images_largescale", "ninco"),
    "test_inaturalist": ("images_largescale", "inaturalist/images"),
    "test_textures": ("images_classic", "texture/banded"),
    "test_openimage_o": ("images_largescale", "openimage_o/images"),
}


def write_standin(root: Path, benchmark: str, classes: int) -> dict[str, int]:
    """
    Write lists and images of ``imagenet`` or ``imagenet200``.

    Lists name files several times: 1,000 classes need as many lines, and not as many files.

    :param root: the data root
    :param benchmark: the folder of its lists
    :param classes: the number of its classes
    :return: the number of lines of every list
    """
    name = "imagenet" if benchmark == "imagenet" else "imagenet200"
    every = [*range(classes)]
    lists = {
        # some classes are frequent, so that a part of them can be held out
        f"train_{name}": (
            "images_largescale",
            "imagenet_1k/train",
            [*every, *[0, 1, 2, 3] * classes],
        ),
        f"test_{name}": ("images_largescale", "imagenet_1k/val", every),
        f"test_{name}_v2": ("images_largescale", "imagenet_v2/0", every[::2]),
        f"test_{name}_c": ("images_largescale", "imagenet_c/fog/3", every),
        f"test_{name}_r": ("images_largescale", "imagenet_r/n01443537", [1, 5, 9] * 20),
        **{key: (folder, path, [-1] * 40) for key, (folder, path) in _OOD.items()},
    }
    if benchmark == "imagenet200":
        lists["train_imagenet800"] = ("images_largescale", "imagenet_1k/train/n02085620", [-1] * 60)
    rng = np.random.default_rng(0)
    for list_name, (folder, path, labels) in lists.items():
        files = _write_images(root / folder, path, rng)
        lines = [f"{files[k % len(files)]} {label}\n" for k, label in enumerate(labels)]
        target = root / "benchmark_imglist" / benchmark / f"{list_name}.txt"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("".join(lines))
    return {list_name: len(labels) for list_name, (_, _, labels) in lists.items()}


def _write_images(folder: Path, path: str, rng: np.random.Generator) -> list[str]:
    """Write eight images of different sizes, and return their paths."""
    (folder / path).mkdir(parents=True, exist_ok=True)
    tint = rng.integers(0, 200, 3)
    names = []
    for k in range(8):
        pixels = rng.integers(0, 56, (24 + k, 32, 3)) + tint
        names.append(f"{path}/{k}.JPEG")
        Image.fromarray(pixels.astype(np.uint8)).save(folder / names[-1], quality=95)
    return names
