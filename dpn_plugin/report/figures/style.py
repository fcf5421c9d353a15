"""The style of all figures: colours that colour-blind readers can distinguish, sizes, files."""

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

from dpn_plugin._files import replacing
from dpn_plugin.errors import UserError

#: Okabe and Ito, *Color Universal Design*, without yellow, which is hard to see on white
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
_DASHES = ("-", "--", ":")
#: perceptually uniform, and readable in grey
COLOUR_MAP = "cividis"
_WIDTH = 9.0
_DPI = 160
#: the file formats, and the name of the date in their metadata
_DATE_KEYS = {"png": "Creation Time", "svg": "Date", "pdf": "CreationDate"}


@dataclass(frozen=True)
class SampleKind:
    """How one kind of samples is drawn: kinds differ in colour and in shape."""

    title: str
    colour: str
    marker: str


SAMPLE_KINDS = {
    "correct": SampleKind("in-domain, correct", "#0072B2", "o"),
    "misclassified": SampleKind("in-domain, misclassified", "#E69F00", "^"),
    "ood": SampleKind("OOD", "#CC79A7", "x"),
    "near": SampleKind("near OOD", "#E69F00", "^"),
    "far": SampleKind("far OOD", "#CC79A7", "x"),
    "in_domain": SampleKind("in-domain", "#0072B2", "o"),
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
    "svg.hashsalt": "dpn-plugin",  # the same figure is the same file
}


@dataclass(frozen=True)
class ReportFigure:
    """
    A figure with its title and caption.

    :param key: name of its files and anchor
    :param title: what it shows
    :param caption: how to read it
    :param figure: matplotlib's figure
    """

    key: str
    title: str
    caption: str
    figure: Figure

    def __post_init__(self) -> None:
        # once, because otherwise the layout is computed again for every file
        engine = self.figure.get_layout_engine()
        if engine is not None:
            with report_style():
                engine.execute(self.figure)
            self.figure.set_layout_engine("none")

    @property
    def width(self) -> int:
        """The width in pixels at which its text is as large as the small text of the page."""
        return round(self.figure.get_figwidth() * 112)

    @cached_property
    def png(self) -> bytes:
        """The figure as PNG, with a resolution for high-density screens."""
        buffer = io.BytesIO()
        with report_style():
            self.figure.savefig(buffer, format="png", dpi=_DPI)
        return buffer.getvalue()

    def save(self, folder: str | Path) -> None:
        """Write the figure as PNG and SVG into a folder."""
        folder = Path(folder)
        with replacing(folder / f"{self.key}.png") as temporary:
            temporary.write_bytes(self.png)
        self.write(folder / f"{self.key}.svg")

    def write(self, path: str | Path) -> None:
        """
        Write the figure to a file.

        :param path: ends in ``.png``, ``.svg`` or ``.pdf``, which decides the format
        :raises UserError: if it has another suffix, or cannot be written
        """
        path = Path(path)
        file_format = path.suffix.lower().lstrip(".")
        if file_format not in _DATE_KEYS:
            raise UserError(f"{path} must end in .png, .svg or .pdf.")
        # without the date the same figure is the same file
        metadata = {_DATE_KEYS[file_format]: None}
        with replacing(path) as temporary, report_style():
            self.figure.savefig(temporary, format=file_format, dpi=_DPI, metadata=metadata)


@contextmanager
def report_style() -> Iterator[None]:
    """Use the style of reports in the block, independent of the user's matplotlibrc."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE)
        yield


def panels(
    count: int, columns: int = 3, height: float = 2.5, *, share: bool = True
) -> tuple[Figure, list[Axes]]:
    """
    Return a figure and its panels, row by row.

    :param count: the number of panels
    :param columns: the largest number of panels side by side
    :param height: of one panel, in inches
    :param share: whether all panels share their axes
    """
    columns = min(columns, count)
    rows = -(-count // columns)
    size = (_WIDTH if columns > 1 else _WIDTH / 2, height * rows + 0.4)
    figure = Figure(figsize=size, layout="constrained")
    grid = np.atleast_1d(figure.subplots(rows, columns, sharex=share, sharey=share)).ravel()
    for unused in grid[count:]:
        unused.remove()
    return figure, list(grid[:count])


def line_styles() -> Iterator[dict[str, Any]]:
    """Return colour and dashes for one line after the other."""
    return cycle({"color": c, "linestyle": d} for d in _DASHES for c in _COLOURS)


def escape_dollars(name: str) -> str:
    """Return a name that matplotlib shows unchanged: a dollar does not start a formula."""
    return name.replace("$", r"\$")
