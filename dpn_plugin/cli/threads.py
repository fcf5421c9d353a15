"""``--workers``: how many threads compute. Data is in memory, so nothing else needs workers."""

from typing import Annotated

import typer

__all__ = ["WorkersOption", "use_threads"]

WorkersOption = Annotated[
    int | None,
    typer.Option(min=1, max=1024, help="Threads that compute.", show_default="torch decides"),
]


def use_threads(count: int | None) -> None:
    """:param count: ``None`` leaves it to torch"""
    if count is not None:
        import torch

        torch.set_num_threads(count)
