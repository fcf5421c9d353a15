"""``dpn bundle``: a trained run with fitted detectors and calibrated thresholds."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpn_plugin.cli.output import (
    DATA_ROOT,
    DataRootOption,
    JsonOption,
    print_json,
    print_note,
    print_table,
)
from dpn_plugin.cli.parsing import assignments, names

if TYPE_CHECKING:  # these import torch, which `dpn bundle --help` does not need
    from dpn_plugin.deploy import BundleRecord, DecisionRule


def bundle(
    run: Annotated[
        Path, typer.Option(metavar="DIR", help="What dpn train wrote with --set calibration=0.1.")
    ],
    detectors: Annotated[str, typer.Option(help="Names, separated by commas.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="The bundle to write.")],
    alpha: Annotated[
        float, typer.Option(help="The share of in-domain images that may be rejected.")
    ] = 0.05,
    confidence: Annotated[
        float | None,
        typer.Option(
            help="Hold alpha with this probability over the draw of the calibration samples.",
            show_default="on average",
        ),
    ] = None,
    by_class: Annotated[
        bool, typer.Option("--by-class", help="Hold alpha within every predicted class.")
    ] = False,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="DETECTOR.KEY=VALUE",
            help="An option of a detector, e.g. dpn-dent.invert=true. Repeatable.",
        ),
    ] = None,
    data_root: DataRootOption = DATA_ROOT,
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1, mps or auto.")] = "auto",
    force: Annotated[bool, typer.Option("--force", help="Replace a bundle in the folder.")] = False,
    as_json: JsonOption = False,
) -> None:
    """
    Fit and calibrate detectors: a trained run, ready for use.

    The bundle holds all that an application needs. The data of the run is read again to make it.
    Images that are like the calibration data are rejected with a probability of at most alpha.
    """
    rule = _rule(alpha, confidence, by_class)
    from dpn_plugin.deploy import BUNDLE_FILE, create_bundle, read_bundle_record
    from dpn_plugin.runs import open_run

    create_bundle(
        open_run(run),
        names(detectors),
        out,
        rule=rule,
        options=assignments(changes or [], "--set"),
        root=data_root,
        device=device,
        replace=force,
        on_detector=lambda name: print_note(f"fitting {name}"),
    )
    record = read_bundle_record(out)
    if as_json:
        print_json({"bundle": str(out), "thresholds": _thresholds(record)})
        return
    rows = [
        (name, each.kept, f"{each.thresholds[0]:.6g}" if len(each.thresholds) == 1 else "by class")
        for name, each in record.detectors.items()
    ]
    title = f"{out / BUNDLE_FILE}: alpha = {alpha:g}, {record.calibration_samples} samples"
    print_table(title, ["detector", "fit kept as", "threshold"], rows)


def _rule(alpha: float, confidence: float | None, by_class: bool) -> "DecisionRule":
    from pydantic import ValidationError

    from dpn_plugin.deploy import DecisionRule
    from dpn_plugin.errors import UserError, validation_message

    try:
        return DecisionRule(alpha=alpha, confidence=confidence, by_class=by_class)
    except ValidationError as error:
        raise UserError(validation_message(error, DecisionRule)) from error


def _thresholds(record: "BundleRecord") -> dict[str, list[float]]:
    return {name: each.thresholds for name, each in record.detectors.items()}
