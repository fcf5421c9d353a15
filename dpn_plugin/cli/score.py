"""``dpn score``: the scores of images, from a bundle or a trained run."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpn_plugin.cli.output import JsonOption, print_json, print_table
from dpn_plugin.cli.progress import image_progress
from dpn_plugin.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

_ENDINGS = (".csv", ".json", ".parquet")


def score(
    inputs: Annotated[
        list[Path], typer.Argument(metavar="IMAGE...|FOLDER|FILE.npz", help="What to score.")
    ],
    bundle: Annotated[
        Path | None, typer.Option(metavar="DIR", help="What dpn bundle wrote.")
    ] = None,
    run: Annotated[
        Path | None, typer.Option(metavar="DIR", help="What dpn train wrote, without a bundle.")
    ] = None,
    detector: Annotated[
        str | None,
        typer.Option(help="With --run: a detector that scores logits.", show_default="dpn-mi"),
    ] = None,
    fdr: Annotated[
        float | None,
        typer.Option(
            help="With --bundle: reject so many images of all given ones that at most this share "
            "of the rejected ones is in-domain.",
            show_default="the level of the bundle, image by image",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the table instead of printing it, as its ending says: .csv, .json or "
            ".parquet.",
        ),
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1, mps or auto.")] = "auto",
    as_json: JsonOption = False,
) -> None:
    """
    Score images with a bundle or a trained run.

    A row for each image: prediction, the five measures, and with a bundle the score, p-value and
    decision of every detector (a larger score is more OOD), and if a detector gives them the
    probabilities of correct, misclassified and OOD. A folder may hold any number of images.
    """
    if out is not None:
        _check_ending(out, as_json)
    _check_source(bundle, run, detector, fdr)
    if bundle is not None:
        tables = _bundle_tables(inputs, bundle, fdr, device)
    else:
        assert run is not None
        tables = _run_tables(inputs, run, detector or "dpn-mi", device)
    if out is not None:
        _write(tables, out)
    else:
        _print(tables, str(bundle) if bundle else f"{detector or 'dpn-mi'} of {run}", as_json)


def _check_source(
    bundle: Path | None, run: Path | None, detector: str | None, fdr: float | None
) -> None:
    if (bundle is None) == (run is None):
        raise UserError("dpn score takes either --bundle or --run.")
    if bundle is not None and detector is not None:
        raise UserError("--detector is for --run; a bundle scores with all of its detectors.")
    if run is not None and fdr is not None:
        raise UserError("--fdr needs p-values, which a bundle has and a run has not.")
    if fdr is not None and not 0 < fdr < 1:
        raise UserError(f"--fdr must be between 0 and 1, not {fdr:g}.")


def _bundle_tables(
    inputs: list[Path], folder: Path, fdr: float | None, device: str
) -> "Iterator[pd.DataFrame]":
    from dpn_plugin.deploy import decide_together, list_files, load_bundle, score_files

    loaded = load_bundle(folder, device)
    files = list_files(inputs)

    def tables() -> "Iterator[pd.DataFrame]":
        with image_progress(len(files)) as progress:
            for done, table in score_files(loaded, files):
                progress(done)
                yield table

    if fdr is None:
        return tables()
    return decide_together(tables(), list(loaded.record.detectors), fdr)


def _run_tables(
    inputs: list[Path], run: Path, detector: str, device: str
) -> "Iterator[pd.DataFrame]":
    from dpn_plugin.deploy import score_images
    from dpn_plugin.runs import open_run

    yield score_images(open_run(run), detector, inputs, device)


def _check_ending(out: Path, as_json: bool) -> None:
    allowed = (".json",) if as_json else _ENDINGS
    if out.suffix.lower() not in allowed:
        given = "--json with --out" if as_json else "--out"
        raise UserError(
            f"{given} takes a file that ends in {' or '.join(allowed)}, not {out.name!r}: the "
            "ending decides the format."
        )


def _write(tables: "Iterator[pd.DataFrame]", out: Path) -> None:
    from dpn_plugin.deploy import writing_table

    rows = 0
    with writing_table(out) as write:
        for table in tables:
            write(table)
            rows += len(table)
    typer.echo(f"{rows} rows in {out}")


def _print(tables: "Iterator[pd.DataFrame]", title: str, as_json: bool) -> None:
    import pandas as pd

    from dpn_plugin.deploy import records

    table = pd.concat(list(tables), ignore_index=True)
    if as_json:
        print_json(records(table))
        return
    rows = ([_cell(value) for value in row] for row in table.itertuples(index=False))
    print_table(title, list(table.columns), rows)


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
