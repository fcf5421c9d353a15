"""What commands share: common options, and output as tables for people or JSON for programs."""

import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]

WorkersOption = Annotated[
    int | None,
    typer.Option(min=1, max=1024, help="Threads that compute.", show_default="torch decides"),
]

LoadersOption = Annotated[
    int | None,
    typer.Option(
        min=0, max=1024, help="Processes that decode images.", show_default="cores, at most 4"
    ),
]

CacheMemoryOption = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Decoded images that are kept, e.g. 8GB; larger sets are decoded when they are used.",
        show_default="a quarter of the memory",
    ),
]

PretrainedOption = Annotated[
    bool, typer.Option("--pretrained", help="Start from the weights that timm publishes.")
]

FreezeOption = Annotated[
    bool,
    typer.Option("--freeze", help="Keep the given weights; train a head on their features."),
]

WeightsOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Start from these weights: safetensors, or a state dict (.pth)."
    ),
]

#: the folder of downloaded data sets if neither the option nor the variable is given
DATA_ROOT = Path("data")

DataRootOption = Annotated[
    Path, typer.Option(envvar="DPN_DATA_ROOT", help="Folder of downloaded data sets.")
]


#: 0.1234, 1,234, -1e-05, 97 %, 86.91 ± 3.43, and what stands for no number
_NUMBER = re.compile(
    r"[-+]?[\d.,]*\d(e[-+]?\d+)?( ?%)?( ± [\d.]+)?|[-+]?(nan|inf)|-|", re.IGNORECASE
)
#: the width to which a column of text may be folded, and the space between columns
_FOLDED, _GAP = 12, 2


def use_threads(count: int | None) -> None:
    """Let torch compute with ``count`` threads; ``None`` keeps its default."""
    if count is not None:
        import torch

        torch.set_num_threads(count)


def is_primary() -> bool:
    """Return whether this process prints; torchrun and SLURM number the processes of a job."""
    return os.environ.get("RANK", os.environ.get("SLURM_PROCID", "0")) == "0"


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """
    Print a table on stdout.

    Numbers are never broken: if a terminal is too narrow, columns of text are folded, and then the
    table is printed in several parts that repeat the columns of text on the left.

    :param title: the line above the table
    :param columns: the headings; cells of the first column are not wrapped if numbers leave room
    :param rows: the cells, printed literally: brackets are not markup
    """
    cells = [[_text(str(cell)) for cell in row] for row in rows]
    made = [_Column(name, [row[index] for row in cells]) for index, name in enumerate(columns)]
    console = Console()
    for number, part in enumerate(_parts(made, console.width)):
        heading = _text(title) if number == 0 else None
        console.print(_table(heading, part, console.width))


class _Column:
    """
    A column of a table and the width that it needs.

    :param name: the heading
    :param cells: below it
    """

    def __init__(self, name: str, cells: list[Text]) -> None:
        self.name, self.cells = name, cells
        self.widest = max((cell.cell_len for cell in cells), default=0)
        texts = [cell.plain for cell in cells]
        self.is_number = any(texts) and all(_NUMBER.fullmatch(text) for text in texts)
        words = name.replace("_", "_ ")
        widest = max([self.widest, *map(len, words.split())])
        self.least = widest if self.is_number else min(widest, _FOLDED)
        lines = wrap(words, max(self.least, 1), break_long_words=False)
        self.heading = "\n".join(line.replace("_ ", "_") for line in lines)


def _parts(columns: list[_Column], width: int) -> Iterator[list[_Column]]:
    """Yield the columns of each part, so that the numbers of a part fit into the width."""
    first = next((i for i, column in enumerate(columns) if column.is_number), len(columns))
    left, part = columns[:first], columns[:first]
    for column in columns[first:]:
        if len(part) > len(left) and _width([*part, column]) > width:
            yield part
            part = left
        part = [*part, column]
    yield part


def _width(columns: list[_Column]) -> int:
    return sum(column.least + _GAP for column in columns)


def _table(title: Text | None, columns: list[_Column], width: int) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    natural = sum(max(each.widest, len(each.name)) + _GAP for each in columns)
    spare = width - _width(columns[1:])
    for index, column in enumerate(columns):
        if column.is_number and natural > width:
            table.add_column(column.heading, width=column.least, no_wrap=True)
        else:
            whole = column.is_number or (index == 0 and column.widest <= spare)
            table.add_column(column.name, no_wrap=whole, overflow="fold")
    for row in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*row)
    return table


def _text(text: str) -> Text:
    # names may come from untrusted files and folders: they must not send control sequences to the
    # terminal, nor break the output because they are not UTF-8
    return Text("".join(c if c.isprintable() or c == "\n" else _escaped(c) for c in text))


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()


def print_note(text: str) -> None:
    """Print a remark for people on stderr, so that stdout holds only the result."""
    Console(stderr=True).print(Text(text, style="dim"))


def print_json(value: Any) -> None:
    """Print ``value`` as JSON on stdout, without colour."""
    typer.echo(json_text(value))


def json_text(value: Any) -> str:
    """Return ``value`` as JSON, indented."""
    return json.dumps(value, indent=2, ensure_ascii=False)
