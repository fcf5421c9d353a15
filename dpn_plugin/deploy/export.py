"""A bundle as one file for other runtimes: ONNX, or a program of ``torch.export``."""

import contextlib
import io
import json
import logging
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dpn_plugin._files import replacing
from dpn_plugin.deploy.bundle import Bundle
from dpn_plugin.deploy.graph import BundleGraph, DetectorGraph
from dpn_plugin.deploy.rewritten import rewritten
from dpn_plugin.deploy.scorer import BundledDetector
from dpn_plugin.errors import UserError, choices, unknown_name

FORMATS = ("onnx", "pt2")
#: the name of the graph's input
INPUT = "images"
_OPSET = 20
_PACKAGES = ("onnx", "onnxscript", "onnxruntime")
#: the first version whose exporter takes translations of single operators and dynamic batches
_TORCH = (2, 9)
#: how far the file's scores may be from the bundle's, relative to the largest one
_TOLERANCE = 1e-3


@dataclass(frozen=True)
class Exported:
    """
    What was exported.

    :param path: the file
    :param outputs: names of its outputs
    :param left_out: detectors that are not in it, and why
    """

    path: Path
    outputs: tuple[str, ...]
    left_out: dict[str, str]


def export_bundle(bundle: Bundle, out: str | Path, format: str = "onnx") -> Exported:
    """
    Write a bundle as one file that takes ``uint8`` images N x C x H x W, for any N.

    The file is compared with the bundle before it appears.

    :param bundle: on the CPU
    :param out: the file to write
    :param format: ``"onnx"`` or ``"pt2"``
    :raises UserError: if packages are missing, or the bundle cannot be a graph
    """
    if format not in FORMATS:
        raise unknown_name("format", format, FORMATS)
    _check_exportable(bundle, format)
    example = torch.randint(0, 256, (3, *bundle.input_shape), dtype=torch.uint8)
    left_out = {each.name: "combinations are not exported" for each in bundle.combinations}
    kept: list[BundledDetector] = []
    for each in bundle.scorer.detectors:
        reason = why_not_exportable(each, bundle, example)
        kept += [each] if reason is None else []
        left_out |= {} if reason is None else {each.name: reason}
    graph = BundleGraph(bundle, kept).eval()
    with replacing(out) as temporary, torch.no_grad():
        names = tuple(graph(example))
        write = _write_onnx if format == "onnx" else _write_pt2
        run = write(graph, example, names, temporary, _metadata(bundle))
        _compare(bundle, kept, run)
    return Exported(Path(out), names, left_out)


def why_not_exportable(bundled: BundledDetector, bundle: Bundle, images: Tensor) -> str | None:
    """
    Return why a detector cannot be part of a graph, ``None`` if it can.

    :param bundled: fitted
    :param bundle: it is part of
    :param images: a few, for a trial
    """
    if bundled.one_by_one:
        return "its score depends on the batch"
    if bundled.reads == "inputs":
        return "it runs the network again, for gradients, inner layers or dropout"
    if bundled.detector is None or rewritten(bundled.detector) is not None:
        return None
    value = bundle.scorer(images)[0][bundled.reads]
    try:
        with _silence():
            torch.export.export(
                _Single(bundled), (value,), dynamic_shapes=({0: torch.export.Dim("batch")},)
            )
    except Exception as error:  # whatever the code of a host or a plugin does not allow
        return f"its code cannot be traced ({type(error).__name__})"
    return None


class _Single(nn.Module):
    """One detector, to find out whether it can be traced."""

    def __init__(self, bundled: BundledDetector) -> None:
        super().__init__()
        self.detector = DetectorGraph(bundled)

    def forward(self, value: Tensor) -> Tensor:
        return self.detector({self.detector.reads: value})


class _Ordered(nn.Module):
    """A graph that returns its outputs in order, because ONNX names them by position."""

    def __init__(self, graph: nn.Module, names: Sequence[str]) -> None:
        super().__init__()
        # not "graph": torch.fx keeps its own under that name
        self.whole, self.names = graph, names

    def forward(self, images: Tensor) -> tuple[Tensor, ...]:
        found = self.whole(images)
        return tuple(found[name] for name in self.names)


def _check_exportable(bundle: Bundle, format: str) -> None:
    if len(bundle.input_shape) != 3:
        raise UserError(f"The bundle in {bundle.folder} takes points; only images can be exported.")
    if bundle.scorer.predictor.method.passes > 1:
        raise UserError("Dropout at test time (mcdp) is random and cannot be part of a graph.")
    if bundle.scorer.device.type != "cpu":
        raise UserError("Load the bundle with device='cpu' to export it.")
    missing = [name for name in _PACKAGES if format == "onnx" and find_spec(name) is None]
    if missing:
        raise UserError(
            f"ONNX needs {' and '.join(missing)}, not installed here: pip install "
            f"'dpn-plugin[export]'. {choices(['pt2'])} needs nothing more."
        )
    found = tuple(int(part) for part in torch.__version__.split(".")[:2])
    if found < _TORCH:
        raise UserError(f"Exporting needs torch 2.9 or later, not {torch.__version__}.")


def _write_pt2(
    graph: BundleGraph, example: Tensor, names: Sequence[str], path: Path, metadata: dict[str, str]
) -> Any:
    shapes = ({0: torch.export.Dim("batch")},)
    with _silence():
        program = torch.export.export(graph, (example,), dynamic_shapes=shapes)
        torch.export.save(program, path, extra_files=dict(metadata))
    module = program.module()
    return lambda images: module(torch.from_numpy(images))


def _write_onnx(
    graph: BundleGraph, example: Tensor, names: Sequence[str], path: Path, metadata: dict[str, str]
) -> Any:
    import onnxruntime

    program = onnx_program(graph, example, names)
    program.model.metadata_props.update(metadata)
    program.save(str(path))
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return lambda images: dict(zip(names, session.run(None, {INPUT: images}), strict=True))


def onnx_program(graph: nn.Module, example: Tensor, names: Sequence[str]) -> Any:
    """
    Return a module as torch's ``ONNXProgram``, with any number of rows.

    :param graph: takes one tensor and returns a dict of tensors
    :param example: an input of a few rows
    :param names: of the outputs, in the order wanted
    """
    with _silence():
        return torch.onnx.export(
            _Ordered(graph, names),
            (example,),
            input_names=[INPUT],
            output_names=list(names),
            dynamic_shapes=({0: torch.export.Dim("batch")},),
            opset_version=_OPSET,
            dynamo=True,
            verbose=False,
            custom_translation_table={torch.ops.aten.log1p.default: _log1p()},
        )


def _log1p() -> Any:
    """Return ln(1 + x) for ONNX, which has no such operator, by Kahan's formula."""
    from onnxscript import opset20 as op

    def log1p(self: Any) -> Any:
        one = op.CastLike(op.Constant(value_float=1.0), self)
        rounded = op.Add(self, one)
        # the error of the sum cancels: ln(u) x / (u - 1) is accurate for the u that was rounded
        scaled = op.Div(op.Mul(op.Log(rounded), self), op.Sub(rounded, one))
        return op.Where(op.Equal(rounded, one), self, scaled)

    return log1p


def _metadata(bundle: Bundle) -> dict[str, str]:
    record = bundle.record
    thresholds = {name: each.thresholds for name, each in record.detectors.items()}
    return {
        "classes": json.dumps(list(bundle.classes)),
        "alpha": json.dumps(record.rule.alpha),
        "thresholds": json.dumps(thresholds),
        "input_shape": json.dumps(list(bundle.input_shape)),
    }


def _compare(bundle: Bundle, detectors: Sequence[BundledDetector], run: Any) -> None:
    """Check other images and another batch size than the graph was traced with."""
    images = torch.randint(0, 256, (5, *bundle.input_shape), dtype=torch.uint8)
    found, expected = run(images.numpy()), bundle(images)
    wanted = {f"{each.name}.score": expected.detectors[each.name].score for each in detectors}
    for name, values in {"probabilities": expected.probabilities, **wanted}.items():
        ours, theirs = np.asarray(found[name], np.float64), values.numpy()
        if not np.allclose(ours, theirs, rtol=_TOLERANCE, atol=_TOLERANCE * np.abs(theirs).max()):
            raise UserError(
                f"The exported {name} differs from the bundle's by "
                f"{np.abs(ours - theirs).max():.3g}; leave that detector out of the bundle."
            )


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Within the block, keep the exporter's reports about the code that it traces to itself."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        with contextlib.redirect_stderr(io.StringIO()):
            before = logging.root.manager.disable
            logging.disable(logging.CRITICAL)
            try:
                yield
            finally:
                logging.disable(before)
