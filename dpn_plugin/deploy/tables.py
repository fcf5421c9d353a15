"""Tables that are written in parts: csv, json or parquet, as the ending of the file says."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from dpn_plugin._files import replacing
from dpn_plugin.errors import UserError

Write = Callable[[pd.DataFrame], None]


@contextmanager
def writing_table(out: str | Path) -> Iterator[Write]:
    """
    Give a function that appends rows to a file, which appears when the block ends.

    :param out: ends in .csv, .json or .parquet
    :raises UserError: if the ending is another one, or parquet needs a package that is missing
    """
    out = Path(out)
    writer = _WRITERS.get(out.suffix.lower())
    if writer is None:
        raise UserError(f"{out.name!r} must end in {' or '.join(_WRITERS)}.")
    with replacing(out) as temporary, writer(temporary) as write:
        yield write


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows as JSON values; numbers that do not exist are ``None``."""
    rows: list[dict[str, Any]] = [
        {str(key): None if value != value else value for key, value in row.items()}
        for row in table.to_dict("records")
    ]
    return rows


@contextmanager
def _csv(path: Path) -> Iterator[Write]:
    with path.open("w", encoding="utf-8", newline="") as file:
        yield lambda table: table.to_csv(file, index=False, header=file.tell() == 0)


@contextmanager
def _json(path: Path) -> Iterator[Write]:
    with path.open("w", encoding="utf-8") as file:

        def write(table: pd.DataFrame) -> None:
            for row in records(table):
                file.write(",\n " if file.tell() else "[\n ")
                file.write(json.dumps(row, ensure_ascii=False))

        yield write
        file.write("\n]\n" if file.tell() else "[]\n")


@contextmanager
def _parquet(path: Path) -> Iterator[Write]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise UserError(
            "Parquet files need pyarrow, which is not installed: pip install 'dpn-plugin[parquet]',"
            " or write .csv."
        ) from None
    writer: Any = None
    try:

        def write(table: pd.DataFrame) -> None:
            nonlocal writer
            schema = None if writer is None else writer.schema
            rows = pyarrow.Table.from_pandas(table, schema=schema, preserve_index=False)
            writer = writer or parquet.ParquetWriter(path, rows.schema)
            writer.write_table(rows)

        yield write
    finally:
        if writer is not None:
            writer.close()


_WRITERS = {".csv": _csv, ".json": _json, ".parquet": _parquet}
