"""What the layout of a table consists of: rows, columns, grids."""

from dataclasses import dataclass

#: the identity of a figure: some of paper_task, table, dataset, method, detector, metric
Keys = dict[str, str]


@dataclass(frozen=True)
class Line:
    """
    A row or a column.

    :param heads: its titles, from the outermost to its own
    :param keys: what its figures have in common
    :param contest: its figures compete for bold with those of lines of the same contest
    """

    heads: tuple[str, ...]
    keys: Keys
    contest: str = ""


@dataclass(frozen=True)
class Grid:
    """
    A part of a table with its own columns.

    :param title: its task, empty if it has columns of several tasks
    :param rows: from the top
    :param columns: from the left
    :param keys: what all its figures have in common
    :param row_titles: what the heads of rows are
    """

    title: str
    rows: tuple[Line, ...]
    columns: tuple[Line, ...]
    keys: Keys
    row_titles: tuple[str, ...] = ("Method",)


@dataclass(frozen=True)
class Layout:
    """
    A table of the paper.

    :param number: as the paper numbers it
    :param name: for files
    :param caption: what it shows
    :param grids: its parts
    """

    number: int
    name: str
    caption: str
    grids: tuple[Grid, ...]
