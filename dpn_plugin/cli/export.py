"""``dpn export``: a bundle for other runtimes."""

from pathlib import Path
from typing import Annotated

import typer

from dpn_plugin.cli.output import JsonOption, print_json


def export(
    bundle: Annotated[Path, typer.Option(metavar="DIR", help="What dpn bundle wrote.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The file to write.")],
    format: Annotated[str, typer.Option(help="onnx, or pt2 for torch.export.load.")] = "onnx",
    as_json: JsonOption = False,
) -> None:
    """
    Export a bundle to ONNX or a torch program.

    The file takes uint8 images N x C x H x W of the bundle's size and returns probabilities, the
    five measures, and the score and p-value of every detector that can be part of a graph. ONNX
    files run in onnxruntime, without torch and without this package.
    """
    from dpn_plugin.deploy import export_bundle, load_bundle

    exported = export_bundle(load_bundle(bundle, "cpu"), out, format)
    if as_json:
        print_json(
            {
                "file": str(exported.path),
                "outputs": list(exported.outputs),
                "left_out": exported.left_out,
            }
        )
        return
    typer.echo(f"{exported.path}: {', '.join(exported.outputs)}")
    for name, reason in exported.left_out.items():
        typer.echo(f"left out {name}: {reason}")
