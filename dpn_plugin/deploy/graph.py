"""A bundle as one module that ``torch.export`` can trace: bytes in, named tensors out."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dpn_plugin import functional
from dpn_plugin.data import Transform
from dpn_plugin.deploy.bundle import Bundle
from dpn_plugin.deploy.calibration import Calibration
from dpn_plugin.deploy.result import MEASURES
from dpn_plugin.deploy.rewritten import rewritten
from dpn_plugin.deploy.scorer import BundledDetector
from dpn_plugin.detectors import score_function


class Preprocessing(nn.Module):
    """
    The transform of a run for images of a fixed size.

    Resizing is linear in the pixels, so it is a product with one matrix per axis; graph formats
    have no antialiased resize that rounds like torch's.

    :param transform: of the run
    :param shape: of the images, C x H x W
    """

    mean: Tensor
    std: Tensor
    rows: Tensor
    columns: Tensor

    def __init__(self, transform: Transform, shape: Sequence[int]) -> None:
        super().__init__()
        for name, values in (("mean", transform.mean), ("std", transform.std)):
            tensor = torch.tensor(values, dtype=torch.float32).view(1, -1, 1, 1) * 255
            self.register_buffer(name, tensor)
        size = transform.size or tuple(shape[1:])
        self.is_resized = tuple(shape[1:]) != tuple(size)
        self.register_buffer("rows", _resizing(shape[1], size[0]))
        self.register_buffer("columns", _resizing(shape[2], size[1]).T.contiguous())

    def forward(self, images: Tensor) -> Tensor:
        """Return the input of the networks for ``uint8`` images."""
        x = (images.float() - self.mean) / self.std
        return self.rows @ x @ self.columns if self.is_resized else x


class PValues(nn.Module):
    """
    Conformal p-values by a binary search in the sorted calibration scores.

    :param calibration: of one detector
    :param classes: number of in-domain classes
    """

    ordered: Tensor
    counts: Tensor

    def __init__(self, calibration: Calibration, classes: int) -> None:
        super().__init__()
        self.by_class = calibration.rule.by_class
        if self.by_class:
            groups = [calibration.scores[calibration.predictions == k] for k in range(classes)]
        else:
            groups = [calibration.scores]
        self.steps = max(len(group) for group in groups).bit_length()
        self.width = 2**self.steps - 1
        padded = [F.pad(g.sort().values, (0, self.width - len(g)), value=math.inf) for g in groups]
        self.register_buffer("ordered", torch.cat(padded))
        self.register_buffer("counts", torch.tensor([float(len(g)) for g in groups]).double())

    def forward(self, scores: Tensor, predicted: Tensor) -> Tensor:
        """Return the p-value of each score; ``predicted`` are the classes."""
        group = predicted if self.by_class else torch.zeros_like(predicted)
        below = torch.zeros_like(predicted)
        for step in reversed(range(self.steps)):
            ahead = below + 2**step
            is_below = self.ordered[group * self.width + ahead - 1] < scores
            below = torch.where(is_below, ahead, below)
        count = self.counts[group]
        return (1 + count - below.double()) / (count + 1)


class BundleGraph(nn.Module):
    """
    Everything that an exported bundle computes.

    Measures are computed in float64: without ``log1p``, which graph formats lack, float32 loses
    the digits of small entropies.

    :param bundle: on the CPU
    :param detectors: those to include
    """

    def __init__(self, bundle: Bundle, detectors: Sequence[BundledDetector]) -> None:
        super().__init__()
        self.preprocessing = Preprocessing(bundle.scorer.run.transform, bundle.input_shape)
        self.predictor = bundle.scorer.predictor
        self.scores = [DetectorGraph(each) for each in detectors]
        self.names = [each.name for each in detectors]
        classes = len(bundle.classes)
        self.p_values = nn.ModuleList(
            PValues(bundle.calibrations[name], classes) for name in self.names
        )

    def forward(self, images: Tensor) -> dict[str, Tensor]:
        """
        Return the named outputs for a batch.

        :param images: ``uint8``, N x C x H x W
        """
        outputs = self.predictor.outputs(self.preprocessing(images))
        logits = outputs["logits"].double()
        predicted = logits.argmax(dim=1)
        found = {"probabilities": torch.softmax(logits, dim=1).float(), **measures_of(outputs)}
        for name, score, p_value in zip(self.names, self.scores, self.p_values, strict=True):
            value = score(outputs).double()
            found[f"{name}.score"] = value.float()
            found[f"{name}.p_value"] = p_value(value, predicted).float()
        return found


class DetectorGraph:
    """
    A detector as a function of the outputs of the networks.

    :param bundled: it does not read inputs
    """

    def __init__(self, bundled: BundledDetector) -> None:
        self.reads = bundled.reads
        detector = bundled.detector
        self.function = None
        if detector is not None:
            self.function = rewritten(detector) or score_function(detector)

    def __call__(self, outputs: dict[str, Tensor]) -> Tensor:
        """Return the scores of a batch."""
        value = outputs[self.reads]
        if self.function is None:
            return value[:, 1] - value[:, 0] if self.reads == "ood_logits" else value
        return self.function(value)


def measures_of(outputs: dict[str, Tensor]) -> dict[str, Tensor]:
    """
    Return the five measures by name, float32, computed in float64.

    :param outputs: of the networks
    """
    measures = functional.dirichlet_measures(outputs["logits"].double())
    found = {name: getattr(measures, name).float() for name in MEASURES}
    if "mutual_information" in outputs:  # averages: probabilities without concentrations
        found["mutual_information"] = outputs["mutual_information"].float()
        for name in MEASURES[3:]:
            found[name] = torch.full_like(found["max_p"], torch.nan)
    return found


def _resizing(before: int, after: int) -> Tensor:
    """Return the matrix that resizes one axis, ``after`` x ``before``."""
    # the other axis keeps its size, which leaves it unchanged
    identity, size = torch.eye(before)[None, None], (after, before)
    resized = F.interpolate(identity, size, mode="bilinear", antialias=True, align_corners=False)
    return resized[0, 0].contiguous()
