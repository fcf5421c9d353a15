"""``dpn monitor``: the evidence that a stream of images has changed."""

import time
from datetime import datetime
from math import log
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpn_plugin.cli.output import JsonOption, print_json
from dpn_plugin.cli.progress import image_progress
from dpn_plugin.errors import UserError, choices

if TYPE_CHECKING:
    from dpn_plugin.deploy import BundleMonitor

_ORDERS = ("name", "time")
_BARS = "▁▂▃▄▅▆▇█"
_WIDTH = 60


def monitor(
    inputs: Annotated[
        list[Path], typer.Argument(metavar="FOLDER|IMAGE...", help="The stream, in order.")
    ],
    bundle: Annotated[Path, typer.Option(metavar="DIR", help="What dpn bundle wrote.")],
    detector: Annotated[
        str | None, typer.Option(help="Whose scores to watch.", show_default="the first")
    ] = None,
    false_alarm: Annotated[
        float,
        typer.Option(help="The probability of ever raising an alarm on in-domain images."),
    ] = 0.01,
    order: Annotated[
        str, typer.Option(help="Order of the images: by name, or by time of modification.")
    ] = "name",
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the evidence: .png, .svg or .pdf.")
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1, mps or auto.")] = "auto",
    as_json: JsonOption = False,
) -> None:
    """
    Raise an alarm when images are no longer like the calibration data.

    A test martingale gathers evidence image by image; the alarm is raised when it reaches
    1 / false-alarm.
    """
    if order not in _ORDERS:
        raise UserError(f"--order must be {choices(_ORDERS)}, not {order!r}.")
    from dpn_plugin.deploy import list_files, load_bundle, plot_evidence

    files = list_files(inputs)
    if order == "time":
        files.sort(key=lambda file: Path(file).stat().st_mtime)
    watcher = load_bundle(bundle, device).monitor(detector, false_alarm)
    start = time.perf_counter()
    names = _watch(watcher, files)
    seconds = time.perf_counter() - start
    if out is not None:
        plot_evidence(watcher, out)
    if as_json:
        print_json(_summary(watcher, names, seconds))
    else:
        _print(watcher, names, seconds)


def _watch(watcher: "BundleMonitor", files: list[str]) -> list[str]:
    """Score all files in order and return the names of the images."""
    from dpn_plugin.deploy import score_files

    names: list[str] = []
    with image_progress(len(files)) as progress:
        for done, table in score_files(watcher.bundle, files):
            watcher.update(table[f"{watcher.detector}.score"].tolist())
            names += table["image"].tolist()
            progress(done)
    return names


def _summary(watcher: "BundleMonitor", names: list[str], seconds: float) -> dict:
    alarm = watcher.alarm
    return {
        "images": len(names),
        "evidence": watcher.evidence.value,
        "alarm": alarm,
        "image": None if alarm is None else names[alarm],
        "seconds": round(seconds, 3),
    }


def _print(watcher: "BundleMonitor", names: list[str], seconds: float) -> None:
    typer.echo(f"{watcher.detector}: {_sparkline(watcher)}")
    limit, value = 1 / watcher.false_alarm, watcher.evidence.value
    typer.echo(f"{len(names)} images in {seconds:.1f} s, evidence {value:.3g}, alarm at {limit:g}")
    if watcher.alarm is None:
        typer.echo("No alarm.")
        return
    image = names[watcher.alarm]
    when = ""
    if Path(image).is_file():
        when = f" of {datetime.fromtimestamp(Path(image).stat().st_mtime):%Y-%m-%d %H:%M:%S}"
    typer.echo(f"Alarm at image {watcher.alarm + 1}: {image}{when}.")


def _sparkline(watcher: "BundleMonitor") -> str:
    """Return the course of the evidence, from nothing to the level of the alarm."""
    limit = log(1 / watcher.false_alarm)
    step = max(1, -(-len(watcher.history) // _WIDTH))
    picked = [max(watcher.history[i : i + step]) for i in range(0, len(watcher.history), step)]
    shares = [min(max(log(max(value, 1e-300)) / limit, 0.0), 1.0) for value in picked]
    return "".join(_BARS[round(share * (len(_BARS) - 1))] for share in shares)
