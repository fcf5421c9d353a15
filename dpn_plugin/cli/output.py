"""How commands print: tables for people, JSON for programs."""

import json
import os
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

__all__ = ["JsonOption", "is_primary", "print_json", "print_note", "print_table"]

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def is_primary() -> bool:
    """:return: whether this process speaks for all; torchrun and SLURM number their processes"""
    return os.environ.get("RANK", os.environ.get("SLURM_PROCID", "0")) == "0"


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """
    :param title: the line above the table
    :param columns: the heads of the columns; cells of the first are never broken
    :param rows: the cells, printed as they are: brackets are no markup
    """
    table = Table(
        title=_text(title), title_justify="left", box=None, pad_edge=False, header_style="bold"
    )
    for index, column in enumerate(columns):
        table.add_column(column, no_wrap=index == 0, overflow="fold")
    for row in rows:
        table.add_row(*(_text(str(cell)) for cell in row))
    Console().print(table)


def _text(text: str) -> Text:
    # names come from files and folders of others: one must not steer the terminal, nor break the
    # output because it is not UTF-8
    return Text("".join(c if c.isprintable() or c == "\n" else _escaped(c) for c in text))


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()


def print_note(text: str) -> None:
    """:param text: a remark for people; goes to stderr so that stdout holds the answer alone"""
    Console(stderr=True).print(Text(text, style="dim"))


def print_json(value: Any) -> None:
    """:param value: what to print as JSON, on stdout, without colour"""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))
