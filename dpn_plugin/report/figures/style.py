"""How pictures look, in one place: colours that hold for colour-blind readers, sizes, saving."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import cycle
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpn_plugin.errors import UserError
from dpn_plugin.files import replacing

__all__ = ["KINDS", "MAP", "Kind", "Picture", "lines", "panels", "plain", "styled"]

#: Okabe and Ito, *Color Universal Design*, without the yellow that is lost on white
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
_DASHES = ("-", "--", ":")
#: perceptually even, and readable in grey
MAP = "cividis"
_WIDTH = 9.0
_DPI = 160
#: the format of a picture, and what it calls the time it was made
_DATED = {"png": "Creation Time", "svg": "Date", "pdf": "CreationDate"}


@dataclass(frozen=True)
class Kind:
    """How one kind of samples is drawn: colour and shape both tell it apart."""

    title: str
    colour: str
    marker: str


KINDS = {
    "correct": Kind("in-domain, correct", "#0072B2", "o"),
    "misclassified": Kind("in-domain, misclassified", "#E69F00", "^"),
    "ood": Kind("OOD", "#CC79A7", "x"),
    "near": Kind("near OOD", "#E69F00", "^"),
    "far": Kind("far OOD", "#CC79A7", "x"),
    "in_domain": Kind("in-domain", "#0072B2", "o"),
}

_STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#8a8f98",
    "axes.labelcolor": "#333a44",
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#e7e9ec",
    "grid.linewidth": 0.7,
    "xtick.color": "#59606b",
    "ytick.color": "#59606b",
    "text.color": "#1f2530",
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "svg.hashsalt": "dpn-plugin",  # the same picture is the same file
}


@dataclass(frozen=True)
class Picture:
    """
    A drawn figure with its words.

    :param key: name of its files and anchor
    :param title: what it shows
    :param caption: how to read it
    :param figure: the drawing
    """

    key: str
    title: str
    caption: str
    figure: Figure

    def __post_init__(self) -> None:
        # once: otherwise every file that is written arranges all panels anew
        engine = self.figure.get_layout_engine()
        if engine is not None:
            with styled():
                engine.execute(self.figure)
            self.figure.set_layout_engine("none")

    @property
    def width(self) -> int:
        """Pixels at which its letters have the size of a page's small print."""
        return round(self.figure.get_figwidth() * 112)

    @cached_property
    def png(self) -> bytes:
        """The drawing as PNG, sharp on dense screens."""
        buffer = io.BytesIO()
        with styled():
            self.figure.savefig(buffer, format="png", dpi=_DPI)
        return buffer.getvalue()

    def save(self, folder: Path) -> None:
        """Write PNG and SVG into a folder."""
        with replacing(folder / f"{self.key}.png") as temporary:
            temporary.write_bytes(self.png)
        self.write(folder / f"{self.key}.svg")

    def write(self, path: Path) -> None:
        """
        :param path: a file whose ending says the format: ``.png``, ``.svg`` or ``.pdf``
        :raises UserError: if it is another one, or cannot be written
        """
        kind = path.suffix.lower().lstrip(".")
        if kind not in _DATED:
            raise UserError(f"{path} must end in .png, .svg or .pdf.")
        # without the date the same picture is the same file
        with replacing(path) as temporary, styled():
            self.figure.savefig(temporary, format=kind, dpi=_DPI, metadata={_DATED[kind]: None})


@contextmanager
def styled() -> Iterator[None]:
    """The package's style, and nobody else's matplotlibrc, for as long as the block lasts."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE)
        yield


def panels(
    count: int, columns: int = 3, height: float = 2.5, *, share: bool = True
) -> tuple[Figure, list[Axes]]:
    """
    :param count: how many panels are wanted
    :param columns: how many stand side by side at most
    :param height: of one panel, in inches
    :param share: whether all have the same axes
    :return: a figure and its panels, row by row
    :raises UserError: if there are none
    """
    if not count:
        raise UserError("There are no outputs to draw.")
    columns = min(columns, count)
    rows = -(-count // columns)
    size = (_WIDTH if columns > 1 else _WIDTH / 2, height * rows + 0.4)
    figure = Figure(figsize=size, layout="constrained")
    grid = np.atleast_1d(figure.subplots(rows, columns, sharex=share, sharey=share)).ravel()
    for unused in grid[count:]:
        unused.remove()
    return figure, list(grid[:count])


def lines() -> Iterator[dict[str, Any]]:
    """:return: colour and dashes for one line after the other"""
    return cycle({"color": c, "linestyle": d} for d in _DASHES for c in _COLOURS)


def plain(name: str) -> str:
    """:return: a user's name as matplotlib must get it: a dollar begins no formula"""
    return name.replace("$", r"\$")
