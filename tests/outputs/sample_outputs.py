"""Keys and batches of outputs for the tests of the store."""

from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

from dpn_plugin.outputs import OutputKey

KEY = OutputKey("w" * 64, "d" * 64, {"size": [3, 32, 32]}, "test")
OTHER_KEY = OutputKey("v" * 64, KEY.data, KEY.transform, KEY.split)


def batches(count: int = 3, rows: int = 5, seed: int = 0) -> Iterator[dict[str, Tensor]]:
    generator = torch.Generator().manual_seed(seed)
    for _ in range(count):
        yield {
            "logits": torch.randn(rows, 4, generator=generator),
            "features": torch.randn(rows, 2, 3, generator=generator, dtype=torch.float64),
            "labels": torch.randint(-1, 4, (rows,), generator=generator),
        }


def visible(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir() if not path.name.startswith("."))


def leftovers(root: Path) -> list[str]:
    """Return temporary files and folders, and their locks."""
    return sorted(path.name for path in root.glob(".*"))
